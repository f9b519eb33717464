"""docs/compare.md: its two programs make IDs on one PostgreSQL, and frazil reads those of the other library."""

import os
import re
import subprocess
import sys
from pathlib import Path

import frazil
import psycopg
from heeranjid.sql import postgres

PAGE = (Path(__file__).resolve().parents[2] / "docs/compare.md").read_text(encoding="utf-8")
PROGRAMS = dict(re.findall(r"^```py\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
URL = os.environ["FRAZIL_TEST_POSTGRESQL"]


def printed(name, folder, url=URL):
    """Runs a program of the page; returns the ID and the node number of each line."""
    (folder / name).write_text(PROGRAMS[name])
    done = subprocess.run(
        [sys.executable, name], env=os.environ | {"DATABASE_URL": url}, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return [tuple(map(int, line.split())) for line in done.stdout.splitlines()]


def check(lines, layout):
    layout = frazil.Layout(layout)
    ids = [id for id, _ in lines]
    assert len(ids) == 3 and ids == sorted(set(ids))
    assert [layout.decode(id).node for id in ids] == [node for _, node in lines]


def test_heeranjid(tmp_path):
    schema = "heeranjid"
    with psycopg.connect(URL, autocommit=True) as database:
        database.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        database.execute(f"CREATE SCHEMA {schema}")
    url = f"{URL}{'&' if '?' in URL else '?'}options=-csearch_path%3D{schema}"
    with psycopg.connect(url, autocommit=True) as database:
        for part in (postgres.SCHEMA, postgres.SEED, postgres.SESSION, postgres.GENERATE_HEERID):
            database.execute(part)
    (layout,) = re.findall(r"^\| HeeRanjID \| `(time:.*)` \|$", PAGE, re.MULTILINE)
    check(printed("heeranjid_orders.py", tmp_path, url), layout)


def test_frazil(tmp_path):
    check(printed("frazil_orders.py", tmp_path), "standard")
