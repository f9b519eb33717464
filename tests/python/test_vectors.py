"""The files of cases in tests/vectors, which every language's suite reads."""

import re

import frazil
import pytest
from conftest import at, vectors


def error_class(name):
    return getattr(frazil.errors, "".join(word.capitalize() for word in name.split("_")) + "Error")


def test_known_ids():
    for case in vectors("known_ids")["vectors"]:
        layout = frazil.Layout(case["layout"])
        parts = layout.decode(int(case["id"]))
        for name, value in case["fields"].items():
            assert getattr(parts, name) == value, case
        if "unix_ms" in case:
            assert parts.time == at(case["unix_ms"]), case
        assert layout.compose(parts.time, sequence=parts.sequence, **parts.fields) == parts.id == int(case["id"])


def test_texts():
    cases = vectors("texts")
    for case in cases["valid"]:
        number = int(case["id"])
        for form in ("decimal", "base62", "base32", "hex", "check"):
            assert frazil.format_id(number, form) == case[form]
            assert frazil.parse_id(case[form], form) == number
        assert frazil.parse_id(case["id"], "decimal") == number
    for case in cases["invalid"]:
        with pytest.raises(frazil.errors.IdInvalidError):
            frazil.parse_id(case["text"], case["format"])
    for case in cases["spelled"]:
        assert frazil.parse_id(case["text"], case["format"], prefix=case["prefix"]) == int(case["id"])
    for case in cases["refused"]:
        with pytest.raises(frazil.errors.IdInvalidError, match=re.escape(case["says"])):
            frazil.parse_id(case["text"], case["format"], prefix=case["prefix"])


def test_layouts():
    cases = vectors("layouts")
    for case in cases["valid"]:
        layout = frazil.Layout(case["text"])
        assert layout.text == str(layout) == case["canonical"]
        assert layout == frazil.Layout(case["canonical"])
        assert hash(layout) == hash(frazil.Layout(case["canonical"]))
        assert layout.time_bits == case["time_bits"]
        assert layout.tick_ms == case["tick_ms"]
        assert layout.epoch == at(case["epoch_ms"])
        assert list(layout.field_bits.items()) == [tuple(field) for field in case["fields"]]
        assert layout.sequence_bits == case["sequence_bits"]
        assert layout.nodes == int(case["nodes"])
        assert layout.ids_per_second == pytest.approx(case["ids_per_second"])
        end = case["expires_at_ms"]
        assert layout.expires_at == (None if end is None else at(end))
    for case in cases["invalid"]:
        with pytest.raises(error_class(case["error"])) as raised:
            frazil.Layout(case["text"])
        for words in case["says"]:
            assert words in str(raised.value), case


def test_specs():
    cases = vectors("specs")
    for case in cases["canonical"]:
        assert frazil.Snowflake(case["spec"]).spec == case["canonical"]
    for case in cases["invalid"]:
        with pytest.raises(error_class(case["error"])) as raised:
            frazil.Snowflake(case["spec"])
        for words in case["says"]:
            assert words in str(raised.value), case


def test_mistakes():
    ids = frazil.Snowflake("standard node=1 detached=true")
    calls = {
        "decode": ids.layout.decode,
        "batch": ids.batch,
        "sequence": lambda value: ids.layout.compose(at(1735689600000), node=1, sequence=value),
        "text": ids.text,
    }
    for case in vectors("mistakes")["mistakes"]:
        with pytest.raises(frazil.FrazilError) as raised:
            if "option" in case:
                frazil.Snowflake(case["spec"], **{case["option"]: case["value"]})
            else:
                calls[case["call"]](case["value"])
        assert raised.value.name == case["error"], case
        for words in case["says"]:
            assert words in str(raised.value), (case, str(raised.value))


def walk(ids, steps, name):
    for number, (step, *values) in enumerate(steps):
        where = f"{name}: step {number}"
        match step:
            case "set_time":
                ids.set_time(at(values[0]))
            case "next":
                assert ids.next() == int(values[0]), where
            case "error":
                with pytest.raises(frazil.FrazilError) as raised:
                    ids.next()
                assert raised.value.name == values[0], where
            case "batch":
                count, first, last = values
                batch = ids.batch(count)
                assert (len(batch), batch[0], batch[-1]) == (count, int(first), int(last)), where
            case "credit":
                assert ids.credit() == values[0], where
            case _:
                raise AssertionError(f"{where}: unknown step {step}")


def test_replays():
    for replay in vectors("replays")["replays"]:
        walk(frazil.Snowflake(replay["spec"]), replay["steps"], replay["name"])


@pytest.mark.parametrize("row", vectors("takeover")["takeovers"], ids=lambda row: row["system"])
def test_takeover(row):
    last = int(row["last"])
    opened = frazil.Snowflake(row["spec"], after=last)
    parts = opened.layout.decode(last)
    assert opened.layout.text == row["layout"]
    assert parts.time == at(row["unix_ms"])
    assert {**parts.fields, "sequence": parts.sequence} == row["fields"]
    walk(opened, row["steps"], row["system"])

    observing = frazil.Snowflake(row["spec"])
    observing.set_time(parts.time)
    observing.observe(last)
    walk(observing, row["steps"], row["system"])


def test_error_table():
    rows = [(row["code"], row["name"], row["meaning"]) for row in vectors("errors")["errors"]]
    assert list(frazil.ERRORS) == rows
    for code, name, meaning in rows:
        kind = error_class(name)
        assert issubclass(kind, frazil.FrazilError)
        assert (kind.code, kind.name, kind.__doc__, kind.__module__) == (code, name, f"{code} {name}: {meaning}", "frazil.errors")
    assert issubclass(frazil.errors.WrongTypeError, TypeError)
    assert issubclass(frazil.errors.OutOfRangeError, ValueError)
