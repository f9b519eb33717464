"""The databases of `frazil sql`, with the same interface: install functions, call them with a column, get refusals."""

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from typing import ClassVar
from urllib.parse import urlsplit

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ROWS = 200


@functools.cache
def frazil(*arguments):
    """Runs the command, and returns its output."""
    done = subprocess.run([sys.executable, "-m", "frazil", *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def text_of(unix_us):
    """Formats an instant in Unix microseconds as `2025-01-01 00:00:00.000000`."""
    return (EPOCH + timedelta(microseconds=unix_us)).replace(tzinfo=None).isoformat(" ", "microseconds")


class Refused(Exception):
    """An error of the database, with the database's own text."""


class Database:
    """One database. `name` is its dialect."""

    name = ""
    # The SQL types of the parameters: an ID, an instant, a text.
    types: ClassVar = {"id": "BIGINT", "instant": "", "digits": "VARCHAR(200)"}
    errors = (Exception,)

    def query(self, text):
        """Runs a statement, and returns its rows."""
        raise NotImplementedError

    def tried(self, text):
        """Runs a query like `query`, and raises the database's errors as one type."""
        try:
            return self.query(text)
        except self.errors as error:
            raise Refused(str(error)) from error

    def install(self, layout, *options):
        """Runs the script of a layout, statement by statement."""
        self.script = frazil("sql", self.name, layout, *options)
        for statement in statements(self.script):
            self.query(statement)

    def instant(self, unix_us):
        raise NotImplementedError

    def text(self, value):
        return "'" + value.replace("'", "''") + "'"

    def as_text(self, value):
        """Returns an expression that shows an instant in UTC, at least to the millisecond."""
        raise NotImplementedError

    def call(self, function, value):
        """Returns a call as an expression."""
        return f"frazil_{function}({value})"

    def literal(self, kind, value):
        """Returns a literal of an ID, an instant or a text."""
        if value is None:
            return "NULL"
        return {"id": str, "instant": self.instant, "digits": self.text}[kind](value)

    def create(self, kind):
        """Returns the statement that makes a table for values."""
        return f"CREATE TABLE v (n INTEGER, x {self.types[kind]})"

    def column(self, function, kind, values):
        """Returns a function's results for a column of values."""
        self.query("DROP TABLE IF EXISTS v")
        self.query(self.create(kind))
        for start in range(0, len(values), ROWS):
            rows = (f"({start + n}, {self.literal(kind, value)})" for n, value in enumerate(values[start : start + ROWS]))
            self.query(f"INSERT INTO v VALUES {', '.join(rows)}")
        call = self.call(function, "x")
        return [row[0] for row in self.tried(f"SELECT {self.as_text(call) if function == 'time' else call}, n FROM v ORDER BY n")]

    def one(self, function, kind, value):
        call = self.call(function, self.literal(kind, value))
        return self.tried(f"SELECT {self.as_text(call) if function == 'time' else call}")[0][0]


def statements(script):
    """Splits a script into its statements, at semicolons at the end of a line, like clients."""
    return [text.strip() for text in re.split(r";$", script, flags=re.MULTILINE) if text.strip()]


class Postgresql(Database):
    """PostgreSQL, through psycopg."""

    name = "postgresql"
    types: ClassVar = Database.types | {"instant": "timestamptz"}

    def __init__(self):
        import psycopg

        self.connection = psycopg.connect(os.environ["FRAZIL_TEST_POSTGRESQL"], autocommit=True)
        self.errors = (psycopg.Error,)

    def query(self, text):
        cursor = self.connection.execute(text)
        return cursor.fetchall() if cursor.description else []

    def instant(self, unix_us):
        return f"timestamptz '{text_of(unix_us)}+00'"

    def as_text(self, value):
        return f"to_char({value} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')"


class Mariadb(Database):
    """MariaDB, through PyMySQL."""

    name = "mariadb"
    types: ClassVar = Database.types | {"instant": "DATETIME(6)", "digits": "VARCHAR(200) CHARACTER SET utf8mb4"}

    def __init__(self):
        import pymysql

        url = urlsplit(os.environ["FRAZIL_TEST_MARIADB"])
        account = {"host": url.hostname, "port": url.port, "user": url.username, "password": url.password}
        self.connection = pymysql.connect(**account, database=url.path[1:], autocommit=True)
        self.errors = (pymysql.MySQLError,)

    def query(self, text):
        with self.connection.cursor() as cursor:
            cursor.execute(text)
            return cursor.fetchall()

    def instant(self, unix_us):
        return f"TIMESTAMP'{text_of(unix_us)}'"

    def as_text(self, value):
        return f"CAST({value} AS CHAR)"


class Mysql(Mariadb):
    """MySQL's functions, on MariaDB."""

    name = "mysql"


class Sqlite(Database):
    """SQLite of Python's standard library."""

    name = "sqlite"
    types: ClassVar = {"id": "INTEGER", "instant": "INTEGER", "digits": "TEXT"}

    def __init__(self):
        import sqlite3

        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.errors = (sqlite3.Error,)

    def query(self, text):
        return self.connection.execute(text).fetchall()

    def install(self, layout, *options):
        self.script = frazil("sql", self.name, layout, *options)
        found = re.findall(r'^SELECT (.*?)\nAS "frazil_(\w+)" FROM \(SELECT :(\w+) AS \w+\);$', self.script, re.MULTILINE | re.DOTALL)
        self.expressions = {name: (expression, parameter) for expression, name, parameter in found}
        assert len(found) == len(statements(self.script))

    def instant(self, unix_us):
        return str(unix_us // 1000)

    def as_text(self, value):
        return value

    def call(self, function, value):
        expression, parameter = self.expressions[function]
        return f"(SELECT {expression} FROM (SELECT {value} AS {parameter}))"


class Duckdb(Database):
    """DuckDB from PyPI."""

    name = "duckdb"
    types: ClassVar = Database.types | {"instant": "TIMESTAMPTZ"}

    def __init__(self):
        import duckdb

        self.connection = duckdb.connect()
        self.errors = (duckdb.Error,)

    def query(self, text):
        return self.connection.execute(text).fetchall()

    def instant(self, unix_us):
        return f"TIMESTAMPTZ '{text_of(unix_us)}+00'"

    def as_text(self, value):
        return f"strftime({value} AT TIME ZONE 'UTC', '%Y-%m-%d %H:%M:%S.%f')"


class Clickhouse(Database):
    """ClickHouse's server code in this process, by chdb."""

    name = "clickhouse"
    types: ClassVar = {"id": "Nullable(Int64)", "instant": "Nullable(DateTime64(6, 'UTC'))", "digits": "Nullable(String)"}

    def __init__(self):
        from chdb import session

        self.folder = tempfile.TemporaryDirectory(prefix="frazil-chdb-")
        self.session = session.Session(self.folder.name)

    def query(self, text):
        # Numbers are written as text, because JSON numbers would be rounded.
        settings = "SETTINGS output_format_json_quote_64bit_integers = 1" if text.startswith("SELECT") else ""
        try:
            response = self.session.query(f"{text} {settings}", "JSONCompact")
        except Exception:
            # The next answer contains what chdb had written before the error.
            self.session.query("SELECT 1")
            raise
        return json.loads(str(response))["data"] if str(response) else []

    def create(self, kind):
        return f"CREATE TABLE v (n Int64, x {self.types[kind]}) ENGINE = Memory"

    def column(self, function, kind, values):
        return [number(function, value) for value in super().column(function, kind, values)]

    def one(self, function, kind, value):
        return number(function, super().one(function, kind, value))

    def instant(self, unix_us):
        return f"toDateTime64('{text_of(unix_us)}', 6, 'UTC')"

    def text(self, value):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def as_text(self, value):
        return f"toString({value})"


class Bigquery(Database):
    """BigQuery's language by ZetaSQL. Its analyser reads each statement, and its reference implementation runs each body."""

    name = "bigquery"
    types: ClassVar = {"id": "INT64", "instant": "TIMESTAMP", "digits": "STRING"}

    def __init__(self):
        import wasmtime
        from zetasql.core import exceptions, wasm_client

        class Cached(wasmtime.Config):
            """A configuration with a cache, because a compilation takes a minute."""

            def __init__(self):
                super().__init__()
                self.cache = True

        wasm_client.Config = Cached
        from zetasql import types
        from zetasql.api import CatalogBuilder, Value
        from zetasql.core.local_service import ZetaSqlLocalService

        language = types.LanguageOptions.maximum_features()
        functions = types.ZetaSQLBuiltinFunctionOptions(language_options=language)
        self.value, self.service = Value, ZetaSqlLocalService.get_instance()
        catalog = self.service.register_catalog(simple_catalog=CatalogBuilder("c").with_builtin_functions(functions).build())
        self.options = lambda: {"options": types.AnalyzerOptions(language_options=language), "registered_catalog_id": catalog.registered_id}
        self.errors = (exceptions.ZetaSQLError,)

    def query(self, text):
        """Evaluates an expression, an array of texts, and returns one row for each."""
        number = {"prepared_expression_id": self.service.prepare(sql=text, **self.options()).prepared.prepared_expression_id}
        try:
            made = self.value.from_proto(self.service.evaluate(**number).value)
        finally:
            self.service.unprepare(**number)
        rows = (made.get_array_element(n) for n in range(made.get_array_size()))
        return [(None if row.is_null() else row.get_string(),) for row in rows]

    def install(self, layout, *options):
        self.script = frazil("sql", self.name, layout, *options)
        self.bodies = {}
        for statement in statements(self.script):
            self.service.analyze(sql_statement=statement, **self.options())
            signature = r"^CREATE OR REPLACE FUNCTION `frazil_(\w+)`\((\w+) \w+\) RETURNS \w+ AS \((.*)\)$"
            [(name, parameter, body)] = re.findall(signature, statement, re.MULTILINE | re.DOTALL)
            self.bodies[name] = (parameter, f"({body})")

    def instant(self, unix_us):
        return f"TIMESTAMP '{text_of(unix_us)}+00'"

    def text(self, value):
        return json.dumps(value)

    def as_text(self, value):
        return f"FORMAT_TIMESTAMP('%E4Y-%m-%d %H:%M:%E6S', {value}, 'UTC')"

    def column(self, function, kind, values):
        parameter, body = self.bodies[function]
        shown = self.as_text(body) if function == "time" else f"CAST({body} AS STRING)"
        literals = ", ".join(f"CAST({self.literal(kind, value)} AS {self.types[kind]})" for value in values)
        rows = self.tried(f"ARRAY(SELECT {shown} FROM UNNEST([{literals}]) AS {parameter} WITH OFFSET n ORDER BY n)")
        return [number(function, value) for (value,) in rows]

    def one(self, function, kind, value):
        return self.column(function, kind, [value])[0]


def number(function, value):
    """Converts a text to a number if the function returns numbers."""
    return value if value is None or function in ("time", "base62") else int(value)
