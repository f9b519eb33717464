"""The table of docs/spec.md on where each text form of an ID stays distinct and sorts like the IDs, against the databases."""

import random
import re
from pathlib import Path

import databases
import frazil
import pytest
from conftest import opened

GUIDE = (Path(__file__).resolve().parents[2] / "docs/spec.md").read_text(encoding="utf-8")
SECTION = re.search(r"^### Text as a key\n(.*?)(?=^##)", GUIDE, re.MULTILINE | re.DOTALL)[1]
HEAD, _, *ROWS = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in SECTION.splitlines() if line.startswith("|")]
FORMS = {
    "base32": lambda number: frazil.format_id(number, "base32"),
    "check": lambda number: frazil.format_id(number, "check"),
    "decimal, 19 digits": lambda number: frazil.format_id(number, "decimal"),
    "hex": lambda number: frazil.format_id(number, "hex"),
    "base62": lambda number: frazil.format_id(number, "base62"),
    "without padding": str,
}
# A column's type for each place of the table.
TYPES = {
    ("PostgreSQL", "citext"): "citext",
    ("PostgreSQL", "und-u-ks-level2"): "text COLLATE ignores_case",
    ("PostgreSQL", "en_US.utf8"): "text COLLATE en_us",
}
KINDS = {"PostgreSQL": databases.Postgresql, "MariaDB": databases.Mariadb, "SQLite": databases.Sqlite}
PREPARED = {
    "PostgreSQL": [
        "CREATE EXTENSION IF NOT EXISTS citext",
        "CREATE COLLATION IF NOT EXISTS ignores_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        "CREATE COLLATION IF NOT EXISTS en_us (provider = libc, locale = 'en_US.utf8')",
    ]
}


def numbers():
    """Returns sorted IDs of all sizes, with some whose base62 forms differ only in case."""
    draw = random.Random(1)
    drawn = {draw.getrandbits(draw.randrange(1, 64)) for _ in range(400)} | {0, 9, 10, 99, 100, 2**63 - 1}
    for number in [number for number in drawn if number < 2**62]:
        text = frazil.format_id(number, "base62")
        for at, letter in enumerate(text):
            if letter.isalpha() and at > 2:
                drawn.add(int(frazil.parse_id(text[:at] + letter.swapcase() + text[at + 1 :], "base62")))
    return sorted(drawn)


NUMBERS = numbers()


def in_database(where, collation, texts):
    database = opened(KINDS[where])
    for statement in PREPARED.get(where, ()):
        database.query(statement)
    kind = TYPES.get((where, collation)) or (f'text COLLATE "{collation}"' if where == "PostgreSQL" else f"VARCHAR(20) COLLATE {collation}")
    database.query("DROP TABLE IF EXISTS texts")
    database.query(f"CREATE TABLE texts (n INTEGER, x {kind})")
    for start in range(0, len(texts), 500):
        database.query(
            f"INSERT INTO texts VALUES {', '.join(f'({n}, {text!r})' for n, text in enumerate(texts[start : start + 500], start))}"
        )
    [[distinct]] = database.query("SELECT count(DISTINCT x) FROM texts")
    ordered = [n for (n,) in database.query("SELECT n FROM texts ORDER BY x, n")]
    return "collides" if distinct < len(texts) else "sorts" if ordered == list(range(len(texts))) else "distinct"


def in_folder(folder, texts):
    for text in texts:
        (folder / text).touch()
    return "distinct" if len(list(folder.iterdir())) == len(texts) else "collides"


def test_the_table_has_every_form_and_place():
    assert HEAD[2:] == list(FORMS) and {len(row) for row in ROWS} == {len(HEAD)}
    assert set(FORMS) - {"decimal, 19 digits", "without padding"} == {"base32", "check", "hex", "base62"}
    assert {where.removesuffix(" †") for where, *_ in ROWS} == {*KINDS, "MySQL", "SQL Server", "file names"}
    assert [where for where, *_ in ROWS if where.removesuffix(" †") in KINDS and "†" in where] == []


@pytest.mark.parametrize("row", [row for row in ROWS if "†" not in row[0]], ids=lambda row: f"{row[0]} {row[1]}")
def test_each_cell(row, tmp_path):
    where, collation, *cells = row
    named = re.search(r"`(.*?)`", collation)
    found = {}
    for form, text_of in FORMS.items():
        texts = [text_of(number) for number in NUMBERS]
        if where == "file names":
            (folder := tmp_path / form).mkdir()
            found[form] = in_folder(folder, texts)
        else:
            found[form] = in_database(where, named[1], texts)
    assert found == dict(zip(HEAD[2:], cells, strict=True))


def test_a_key_of_base62_loses_rows_and_one_of_base32_does_not():
    """The key of a table has 3,000 IDs of one burst, in a collation that ignores case."""
    database = opened(databases.Mariadb)
    ids = frazil.Snowflake("standard node=1 detached=true")
    for form, collation, keeps in [
        ("base62", "utf8mb4_general_ci", False),
        ("base62", "ascii_bin", True),
        ("base32", "utf8mb4_general_ci", True),
        ("base32", "ascii_bin", True),
    ]:
        texts = [ids.text(form) for _ in range(3_000)]
        database.query("DROP TABLE IF EXISTS items")
        database.query(f"CREATE TABLE items (id VARCHAR(13) COLLATE {collation} PRIMARY KEY)")
        database.query(f"INSERT IGNORE INTO items VALUES {', '.join(f'({text!r})' for text in texts)}")
        stored = {text for (text,) in database.query("SELECT id FROM items")}
        assert (stored == set(texts)) == keeps, (form, collation, len(stored))
        found = [database.query(f"SELECT id FROM items WHERE id = {text!r}") for text in texts[-50:]]
        assert ([text for [[text]] in found] == texts[-50:]) == keeps, (form, collation)
