"""The stores, each with a server of its own."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import servers

STORES = ("file", *servers.KINDS)


@pytest.fixture(scope="session", params=STORES)
def store(request, tmp_path_factory):
    """A store's kind, its URL, and its server."""
    if request.param == "file":
        yield request.param, f"file:{tmp_path_factory.mktemp('store')}", None
        return
    with servers.start(request.param) as server:
        yield request.param, server.url, server
