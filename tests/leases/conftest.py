"""Stores, each with its own server."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import servers

STORES = ("file", *servers.ALL)


def pytest_configure(config):
    config.addinivalue_line("markers", "stores(*kinds): the stores that a test is about; all of them without it")


def pytest_generate_tests(metafunc):
    if "store" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("stores")
        metafunc.parametrize("store", marker.args if marker else STORES, indirect=True, scope="session")


@pytest.fixture(scope="session")
def store(request, tmp_path_factory):
    """A store's kind, its URL, and its server."""
    if request.param == "file":
        yield request.param, f"file:{tmp_path_factory.mktemp('store')}", None
        return
    with servers.start(request.param) as server:
        yield request.param, server.url, server
