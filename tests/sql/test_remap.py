"""The output of `frazil merge-audit --remap`, run by each database's own program, as in docs/merge-audit.md."""

import os
import sqlite3
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

# IDs of `game`, server 7, from a day in 2026. Both worlds have those from 500 to 599.
IDS = [(n + 40_000_000) << 32 | 7 << 12 for n in range(1000)]
MADE = (
    "CREATE TABLE remap_items (id BIGINT NOT NULL PRIMARY KEY)",
    "CREATE TABLE remap_mails (item BIGINT NOT NULL, FOREIGN KEY (item) REFERENCES remap_items (id){deferrable})",
)


class Sqlite:
    """A database file with the program sqlite3."""

    deferrable, source = "", "us.txt"

    def __init__(self, folder):
        self.path = folder / "us.db"

    def query(self, *statements):
        database = sqlite3.connect(self.path)
        rows = [database.execute(statement).fetchall() for statement in statements]
        database.commit()
        database.close()
        return rows[-1]

    def command(self):
        return ["sqlite3", str(self.path)]


class Server:
    """A server's database, whose IDs a query reads."""

    def __init__(self, database):
        self.database, self.source = database, "env:REMAP_STORE"
        self.url = os.environ[f"FRAZIL_TEST_{database.name.upper()}"]
        self.deferrable = " DEFERRABLE" if database.name == "postgresql" else ""

    def query(self, *statements):
        return [self.database.query(statement) for statement in statements][-1]

    def command(self):
        if self.database.name == "postgresql":
            return ["psql", "--no-psqlrc", "--quiet", self.url]
        url = urlsplit(self.url)
        return [
            "mariadb",
            f"--host={url.hostname}",
            f"--port={url.port}",
            f"--user={url.username}",
            f"--password={url.password}",
            url.path[1:],
        ]


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def world(request, tmp_path):
    """Makes the second server's database, with a table that refers to the items."""
    world = Sqlite(tmp_path) if request.param == "sqlite" else Server(request.getfixturevalue(request.param))
    world.name = request.param
    world.query(*(made.format(deferrable=world.deferrable) for made in MADE))
    rows = ", ".join(f"({item})" for item in IDS[500:])
    world.query(*(f"INSERT INTO {table} VALUES {rows}" for table in ("remap_items", "remap_mails")))
    for name, ids in {"eu": IDS[:600], "us": IDS[500:]}.items():
        (tmp_path / f"{name}.txt").write_text("".join(f"{item}\n" for item in ids))
    yield world
    world.query("DROP TABLE remap_mails", "DROP TABLE remap_items")


def remap(world, folder, *columns):
    """Audits, runs the script, and returns the output of its program."""
    arguments = ["merge-audit", "game", "eu.txt", world.source, "--remap", "game server=99", "--dialect", world.name]
    if world.source.startswith("env:"):
        arguments += ["--query", "SELECT id FROM remap_items"]
    for column in columns:
        arguments += ["--apply-to", column]
    environment = os.environ | ({"REMAP_STORE": world.url} if world.source.startswith("env:") else {})
    done = subprocess.run(
        [sys.executable, "-m", "frazil", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stderr
    printed = done.stdout + done.stderr + "".join(path.read_text() for path in (folder / "merge-audit").iterdir())
    assert "secret" not in printed, "the password of the server"
    with (folder / "merge-audit/remap-2.sql").open() as script:
        return subprocess.run(world.command(), stdin=script, capture_output=True, text=True, check=False)


def test_the_script_renames_rows_and_what_refers_to_them(world, tmp_path):
    done = remap(world, tmp_path, "remap_items.id", "remap_mails.item")
    assert (done.returncode, done.stderr) == (0, "")
    table = [line.split(",")[:2] for line in (tmp_path / "merge-audit/remap.csv").read_text().splitlines()[1:]]
    assert [int(old) for old, _ in table] == IDS[500:600]
    expected = sorted([int(new) for _, new in table] + IDS[600:])
    for column, name in ("id", "remap_items"), ("item", "remap_mails"):
        assert [int(row[0]) for row in world.query(f"SELECT {column} FROM {name} ORDER BY {column}")] == expected


def test_a_script_that_fails_changes_nothing(world, tmp_path):
    done = remap(world, tmp_path, "remap_items.id", "remap_mails.itme")
    assert "itme" in done.stderr
    for column, name in ("id", "remap_items"), ("item", "remap_mails"):
        assert [int(row[0]) for row in world.query(f"SELECT {column} FROM {name} ORDER BY {column}")] == IDS[500:], name
