"""docs/sql.md: every block runs unchanged, in its section's order, and prints what the page shows. docs/moving.md: keys that count."""

import os
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import databases
import pytest
from conftest import opened

GUIDE = (Path(__file__).resolve().parents[2] / "docs/sql.md").read_text(encoding="utf-8")
MOVING = (Path(__file__).resolve().parents[2] / "docs/moving.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\w+).*?\n(.*?)(?=^## |\Z)", GUIDE, re.MULTILINE | re.DOTALL))


def blocks(section):
    return re.findall(r"^```(\w+)\n(.*?)^```$", SECTIONS[section], re.MULTILINE | re.DOTALL)


def shown(cell):
    if isinstance(cell, datetime):
        return cell.isoformat(" ", "milliseconds").replace("+00:00", "+00")
    return str(cell)


def shell(code, folder, database):
    """Runs a shell block, whose clients find the private servers."""
    (folder / "bin").mkdir(exist_ok=True)
    url = urlsplit(os.environ["FRAZIL_TEST_MARIADB"])
    client = folder / "bin/mariadb"
    account = f"--user={url.username} --password={url.password} --host={url.hostname} --port={url.port} --protocol=tcp"
    client.write_text(f'#!/bin/sh\n[ "$*" = shop ] && exec /usr/bin/mariadb --no-defaults {account} frazil\n')
    client.chmod(0o755)
    path = f"{folder}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "DATABASE_URL": os.environ["FRAZIL_TEST_POSTGRESQL"]}
    # The clients stop at the first error, because a pipe has the status of its last command.
    subprocess.run(["sh", "-ec", code], check=True, cwd=folder, env=environment, timeout=120)
    if (script := folder / "ids.sql").exists():
        for statement in databases.statements(script.read_text()):
            database.query(statement)


@pytest.mark.parametrize(
    "section, kind, tables",
    [
        ("PostgreSQL", databases.Postgresql, "items, events"),
        ("MariaDB", databases.Mariadb, "items, events"),
        ("SQLite", databases.Sqlite, "items"),
        ("DuckDB", databases.Duckdb, "items"),
        ("ClickHouse", databases.Clickhouse, "items"),
    ],
)
def test_sections(section, kind, tables, tmp_path):
    database = opened(kind)
    for table in tables.split(", "):
        database.query(f"DROP TABLE IF EXISTS {table}")
    if kind is not databases.Sqlite:
        # Removes a function of another test, so that only the guide's blocks install it.
        database.query(f"DROP {'MACRO' if kind is databases.Duckdb else 'FUNCTION'} IF EXISTS frazil_base62")
    answered = 0
    for language, code in blocks(section):
        if language == "sh":
            shell(code, tmp_path, database)
            continue
        assert language == "sql"
        # A statement, with the row of its answer in the comment after it.
        for statement, answer in re.findall(r"(.+?);\n(?:-- ([^\n]*)\n)?", code, re.DOTALL):
            rows = database.query(statement.strip())
            if answer and not answer.endswith("."):
                assert [" | ".join(map(shown, row)) for row in rows] == [answer], statement
                answered += 1
    assert answered >= 1
    for table in tables.split(", "):
        database.query(f"DROP TABLE IF EXISTS {table}")


def test_partitions_of_the_guide_are_pruned():
    """EXPLAIN confirms the guide's claims about its monthly partitions."""
    for kind, section in [(databases.Postgresql, "PostgreSQL"), (databases.Mariadb, "MariaDB")]:
        database = opened(kind)
        database.install("twitter")
        database.query("DROP TABLE IF EXISTS events")
        made = [code for language, code in blocks(section) if language == "sql" and "PARTITION" in code]
        assert len(made) == 1
        for statement in databases.statements(made[0].partition("DROP TABLE")[0].partition("INSERT")[0]):
            database.query(statement)
        within = "id >= frazil_min_id('2025-02-10') AND id < frazil_min_id('2025-02-11')"
        verb = "EXPLAIN" if section == "PostgreSQL" else "EXPLAIN PARTITIONS"
        plan = str(database.query(f"{verb} SELECT * FROM events WHERE {within}"))
        assert re.search(r"events_2025_02|p2025_02", plan) and not re.search(r"2025_01|2025_03", plan), plan
        database.query("DROP TABLE events")


def test_the_guides_expressions_are_what_the_command_prints():
    """The expressions are SQLite's time (except for numbers that are not IDs) and MariaDB's generated column."""
    for dialect, section in [("sqlite", "SQLite"), ("mariadb", "MariaDB")]:
        script, guide = (" ".join(text.split()) for text in (databases.frazil("sql", dialect, "twitter"), SECTIONS[section]))
        [wanted] = re.findall(r"AS \( (CASE WHEN .*?) \|\| id\)|AS (\(TIMESTAMP'.*?\) MICROSECOND\))", guide)
        assert "".join(wanted) in script, wanted


COUNTERS = {
    databases.Postgresql: ("INTEGER PRIMARY KEY GENERATED ALWAYS AS IDENTITY", 2),
    databases.Mariadb: ("BIGINT PRIMARY KEY AUTO_INCREMENT", 1541815603606036482),
    databases.Sqlite: ("INTEGER PRIMARY KEY", 1541815603606036482),
}


@pytest.mark.parametrize("kind", COUNTERS)
def test_a_counter_beside_ids_of_a_generator(kind):
    """A row without a key gets what the table of docs/moving.md says; the page's statements end that."""
    database, (column, after_an_id) = opened(kind), COUNTERS[kind]
    database.query("DROP TABLE IF EXISTS orders")
    database.query(f"CREATE TABLE orders (id {column}, item {'VARCHAR(9)' if kind is databases.Mariadb else 'TEXT'})")
    database.query("INSERT INTO orders (item) VALUES ('old')")
    insert = "INSERT INTO orders (id, item) VALUES (1541815603606036481, 'new')"
    of_page = re.findall(rf"```sql\n-- {kind.name}\n(.*?)```", MOVING, re.DOTALL)
    last = databases.statements("".join(of_page))
    assert last
    if kind is databases.Postgresql:
        database.query(last[0])
        with pytest.raises(databases.Refused, match="GENERATED ALWAYS"):
            database.tried(insert)
        database.query(last[1])
        last = last[2:]
    database.query(insert)
    database.query("INSERT INTO orders (item) VALUES ('old')")
    assert list(database.query("SELECT id FROM orders ORDER BY id")) == sorted([(1,), (1541815603606036481,), (after_an_id,)])
    for statement in last:
        database.query(statement)
    with pytest.raises(databases.Refused, match="(?i)null|default"):
        database.tried("INSERT INTO orders (item) VALUES ('old')")
    database.query("DROP TABLE orders")
