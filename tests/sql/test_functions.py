"""The functions on every database, against the vectors that every language's suite reads."""

from datetime import UTC, datetime, timedelta

import frazil
import pytest
from databases import Refused, statements
from layouts import LAYOUTS, vectors

layouts = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.text.replace(" ", "_"))


def at(unix_us):
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=unix_us)


def test_the_core_says_what_is_expected():
    for layout in LAYOUTS:
        core = frazil.Layout(layout.text)
        for number in layout.ids():
            parts = core.decode(number)
            assert parts.time == at(layout.unix_ms(number) * 1000), layout.text
            assert parts.fields | {"sequence": parts.sequence} == {name: layout.field(name, number) for name in layout.fields}
        for unix_us in layout.instants():
            assert (core.min_id(at(unix_us)), core.max_id(at(unix_us))) == (layout.min_id(unix_us), layout.max_id(unix_us)), layout.text
        if layout.last_id < 2**63 - 1:
            with pytest.raises(frazil.errors.IdInvalidError):
                core.decode(layout.last_id + 1)


def test_known_ids(database):
    for case in vectors("known_ids")["vectors"]:
        database.install(case["layout"])
        number = int(case["id"])
        if "unix_ms" in case:
            assert database.one("unix_ms", "id", number) == case["unix_ms"]
        for name, value in case["fields"].items():
            assert database.one(name, "id", number) == value, (case, name)


@layouts
def test_layouts(database, layout):
    database.install(layout.text)
    ids, instants = layout.ids(), layout.instants()
    assert database.column("unix_ms", "id", ids) == [layout.unix_ms(number) for number in ids]
    shown = database.column("time", "id", ids)
    # Times to the microsecond, if the database shows them.
    assert [text[:23] for text in shown] == [layout.time(number) for number in ids]
    assert {text[23:].strip("0") for text in shown} == {""}
    for name in layout.fields:
        assert database.column(name, "id", ids) == [layout.field(name, number) for number in ids], name
    assert database.column("min_id", "instant", instants) == [layout.min_id(unix_us) for unix_us in instants]
    assert database.column("max_id", "instant", instants) == [layout.max_id(unix_us) for unix_us in instants]
    # A literal gives the same result as a column.
    assert database.one("time", "id", layout.last_id)[:23] == layout.time(layout.last_id)
    assert database.one("min_id", "instant", instants[-1]) == layout.min_id(instants[-1])
    assert database.one("max_id", "instant", instants[0]) == layout.max_id(instants[0])


@layouts
def test_values_that_are_not_ids_or_instants_of_the_layout(database, layout):
    database.install(layout.text)
    # Only some databases have instants after the year 9999. None has IDs above 2^63 - 1.
    beyond = [("min_id", "instant", layout.epoch_ms * 1000 - 1000, "BEFORE_EPOCH")] if layout.epoch_ms > -62135596800000 else []
    if layout.beyond == "LAYOUT_EXPIRED":
        beyond.append(("max_id", "instant", layout.last_ms * 1000 + 1000, "LAYOUT_EXPIRED"))
    ids = [-1, layout.last_id + 1 if layout.last_id < 2**63 - 1 else -(2**63)]
    for function in ("time", "unix_ms", "sequence"):
        beyond += [(function, "id", number, "ID_INVALID") for number in ids]
    for function, kind, value, code in beyond:
        for call in (database.one, lambda function, kind, value: database.column(function, kind, [value])):
            with pytest.raises(Refused, match=f"frazil: {code}: "):
                call(function, kind, value)


def test_texts(database):
    database.install("standard")
    cases = vectors("texts")
    good = cases["valid"]
    assert database.column("base62", "id", [int(case["id"]) for case in good]) == [case["base62"] for case in good]
    assert database.column("from_base62", "digits", [case["base62"] for case in good]) == [int(case["id"]) for case in good]
    bad = [case["text"] for case in cases["invalid"] if case["format"] == "base62"]
    # A line break at the end, spaces, letters that a collation equates with others, a long text.
    bad += [
        "1ptWyK4WgZU\n",
        "1ptWyK4WgZU ",
        " 1ptWyK4WgZ",
        "1ptWyK4WgZ\u212a",
        "1ptWyK4Wg\u017fU",
        "１ptWyK4WgZU",
        "1ptWyK4WgZ_",
        "1" * 150,
        "'; --",
    ]
    for text in bad:
        with pytest.raises(Refused, match=r"(?s)frazil: ID_INVALID: .*base62|Data too long"):
            database.one("from_base62", "digits", text)
    with pytest.raises(Refused, match="frazil: ID_INVALID: "):
        database.one("base62", "id", -1)


def test_null_gives_null(database):
    database.install("twitter")
    for function, kind in (
        *((name, "id") for name in ("time", "unix_ms", "datacenter", "worker", "sequence", "base62")),
        ("from_base62", "digits"),
        *((name, "instant") for name in ("min_id", "max_id")),
    ):
        assert database.column(function, kind, [None]) == [None], function
        assert database.one(function, kind, None) is None, function
    assert database.column("unix_ms", "id", [0, None, 4194304]) == [1288834974657, None, 1288834974658]


def test_a_script_runs_twice(database):
    database.install("twitter")
    first = database.script
    database.install("twitter")
    assert database.script == first
    assert len(statements(first)) >= 9
