"""The databases, each once for all tests."""

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
    """A database of each dialect."""
    return opened(request.param)


@pytest.fixture
def postgresql():
    """PostgreSQL alone."""
    return opened(databases.Postgresql)


@pytest.fixture
def mariadb():
    """MariaDB alone."""
    return opened(databases.Mariadb)


@pytest.fixture
def sqlite():
    """SQLite alone."""
    return opened(databases.Sqlite)


@pytest.fixture
def duckdb():
    """DuckDB alone."""
    return opened(databases.Duckdb)


@pytest.fixture
def clickhouse():
    """ClickHouse alone."""
    return opened(databases.Clickhouse)


def opened(kind):
    if kind not in _open:
        _open[kind] = kind()
    return _open[kind]
