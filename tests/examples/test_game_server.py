"""The game servers play, and their databases are merged: play.sh checks each step itself. And the guide's commands, on such databases."""

import os
import re
import sqlite3
import subprocess

from .application import ROOT

COMMAND = ROOT / "target/debug"


def test_two_servers_are_merged():
    environment = os.environ | {"PKG_CONFIG_PATH": f"{ROOT}/build/c/lib/pkgconfig", "FRAZIL": f"{COMMAND}/frazil"}
    played = subprocess.run(
        [ROOT / "examples/game-server/play.sh", "2"], check=False, env=environment, capture_output=True, text=True, timeout=300
    )
    assert played.returncode == 0, played.stdout + played.stderr
    merged = re.findall(r"^merged: (\d+) items, \d+ mails, each with its item$", played.stdout, re.MULTILINE)
    assert len(merged) == 2 and all(int(items) > 10_000 for items in merged), played.stdout
    assert int(re.search(r"^(\d+) items of the second server have new IDs$", played.stdout, re.MULTILINE)[1]) > 0


def test_the_guide(tmp_path):
    # IDs of `game`, server 7, of a day in 2026; from 500 to 599 both worlds have them.
    ids = [(n + 40_000_000) << 32 | 7 << 12 for n in range(1000)]
    for world, items in {"eu": ids[:600], "us": ids[500:]}.items():
        with sqlite3.connect(tmp_path / f"{world}.db") as database:
            database.execute("CREATE TABLE items (id INTEGER PRIMARY KEY)")
            database.execute("CREATE TABLE mails (item INTEGER NOT NULL REFERENCES items)")
            for table in "items", "mails":
                database.executemany(f"INSERT INTO {table} VALUES (?)", [(item,) for item in items])
        database.close()
    guide = (ROOT / "docs/merge-audit.md").read_text()
    environment = os.environ | {"PATH": f"{COMMAND}:{os.environ['PATH']}"}
    for code in re.findall(r"^```sh\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL):
        subprocess.run(["sh", "-ec", code], cwd=tmp_path, env=environment, check=True, timeout=120)
    assert (tmp_path / "after/duplicates.csv").read_text() == "id,source,line\n"
    assert len((tmp_path / "merge-audit/remap.csv").read_text().splitlines()) == 101
    database = sqlite3.connect(tmp_path / "us.db")
    [(renamed, mails)] = database.execute("SELECT count(*), sum(id IN (SELECT item FROM mails)) FROM items WHERE id >> 12 & 0xfffff = 99")
    database.close()
    assert (renamed, mails) == (100, 100)
