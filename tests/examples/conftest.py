"""The examples, one after the other, each with its own PostgreSQL."""

import pytest
import servers

from . import application, browser


@pytest.fixture(scope="session", params=application.names())
def example(request):
    """Copies and installs an example."""
    found = application.Example(request.param)
    found.prepare()
    return found


@pytest.fixture(scope="session")
def database(example):
    """Starts a PostgreSQL server for one example."""
    with servers.start("postgresql") as server:
        yield server


@pytest.fixture(scope="session")
def running(example, database):
    with example.start(database.url) as application:
        yield application


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    with browser.Browser(tmp_path_factory.mktemp("browser")) as running:
        yield running
