"""The databases, each opened once for all tests."""

import databases
import pytest

DIALECTS = [
    databases.Postgresql,
    databases.Mariadb,
    databases.Mysql,
    databases.Sqlite,
    databases.Duckdb,
    databases.Clickhouse,
    databases.Bigquery,
]
_open = {}


@pytest.fixture(params=DIALECTS, ids=lambda kind: kind.name)
def database(request):
    """Opens a database of each dialect in turn."""
    return opened(request.param)


@pytest.fixture
def postgresql():
    return opened(databases.Postgresql)


@pytest.fixture
def mariadb():
    return opened(databases.Mariadb)


@pytest.fixture
def sqlite():
    return opened(databases.Sqlite)


@pytest.fixture
def duckdb():
    return opened(databases.Duckdb)


@pytest.fixture
def clickhouse():
    return opened(databases.Clickhouse)


def opened(kind):
    if kind not in _open:
        _open[kind] = kind()
    return _open[kind]
