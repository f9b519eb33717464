"""One example after the other, each with a PostgreSQL of its own."""

import pytest
import servers

from . import application, browser


@pytest.fixture(scope="session", params=application.names())
def example(request):
    """An example that is copied and installed."""
    found = application.Example(request.param)
    found.prepare()
    return found


@pytest.fixture(scope="session")
def database(example):
    """A PostgreSQL server for one example."""
    with servers.start("postgresql") as server:
        yield server


@pytest.fixture(scope="session")
def running(example, database):
    """The example, running."""
    with example.start(database.url) as application:
        yield application


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """A browser."""
    with browser.Browser(tmp_path_factory.mktemp("browser")) as running:
        yield running
