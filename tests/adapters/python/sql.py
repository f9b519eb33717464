"""The databases of the tests, and the statements that a block of code sends to one."""

import contextlib
import os

import sqlalchemy

DATABASES = ("postgresql", "mariadb", "sqlite")
ASYNC_DRIVERS = {
    "postgresql": ("postgresql+asyncpg", "postgresql+psycopg"),
    "mariadb": ("mysql+aiomysql",),
    "sqlite": ("sqlite+aiosqlite",),
}
_DRIVERS = {"postgresql": "postgresql+psycopg", "mariadb": "mysql+pymysql", "sqlite": "sqlite"}


def url(database, folder, driver=None):
    """Returns SQLAlchemy's URL of a database. SQLite's is a file in the folder."""
    driver = driver or _DRIVERS[database]
    if database == "sqlite":
        return f"{driver}:///{folder}/test.sqlite"
    return f"{driver}:{os.environ[f'FRAZIL_TEST_{database.upper()}'].partition(':')[2]}"


@contextlib.contextmanager
def statements(engine):
    """Records the text of each statement that the engine sends in the `with` block. A driver's executemany is one."""
    sent = []

    def sending(_connection, _cursor, statement, _parameters, _context, _many):
        sent.append(statement)

    sqlalchemy.event.listen(engine, "before_cursor_execute", sending)
    try:
        yield sent
    finally:
        sqlalchemy.event.remove(engine, "before_cursor_execute", sending)
