"""Many IDs at once: numpy's arrays, and columns of tables."""

import array
import ctypes
import itertools
import subprocess
import sys
from datetime import UTC, datetime

import frazil
import frazil.numpy
import numpy
import pandas
import pytest
from conftest import ascends, at, open_manual

TWITTER = frazil.Layout("twitter")
KNOWN = 1541815603606036480
LAYOUTS = [
    "twitter",
    "sonyflake",
    "js53",
    "time:41@1ms a:3 sequence:5 b:14 epoch:1950-01-01",
    "time:31@1h node:10 sequence:12 epoch:2025-01-01",
]


def some_ids(text, count=500):
    """Returns IDs over the whole range of a layout, with those at its ends."""
    layout = frazil.Layout(text)
    bits = layout.time_bits + layout.sequence_bits + sum(layout.field_bits.values())
    end = layout.max_id(datetime(9999, 12, 31, tzinfo=UTC)) if layout.expires_at is None else 2**bits - 1
    return layout, [0, end, *(end * number // count for number in range(count))]


@pytest.mark.parametrize("text", LAYOUTS)
def test_decode_many_agrees_with_decode(text):
    layout, ids = some_ids(text)
    parts = layout.decode_many(ids)
    one_by_one = [layout.decode(id) for id in ids]
    assert list(parts) == list(one_by_one[0]._asdict()) == ["time", *layout.field_bits, "sequence", "tick"]
    for name, column in parts.items():
        assert column.dtype == ("datetime64[ms]" if name == "time" else numpy.int64)
        assert column.flags.owndata or column.base.flags.owndata
    times = [at(int(ms)) for ms in parts.pop("time").astype(numpy.int64)]
    assert times == [each.time for each in one_by_one]
    for name, column in parts.items():
        assert column.tolist() == [each._asdict()[name] for each in one_by_one], name


@pytest.mark.parametrize(
    "make",
    [
        numpy.array,
        lambda ids: numpy.array(ids, dtype=numpy.uint64),
        lambda ids: numpy.array([[id, 0] for id in ids])[:, 0],
        lambda ids: numpy.array(ids)[::-1][::-1],
        lambda ids: numpy.array(ids, dtype=object),
        lambda ids: numpy.array([str(id) for id in ids]),
        lambda ids: numpy.array(ids, dtype=">i8"),
        lambda ids: numpy.array(ids, dtype=">u8"),
        lambda ids: numpy.array(ids, dtype="<u8"),
        lambda ids: numpy.frombuffer(b"x" + numpy.array(ids).tobytes(), dtype=numpy.uint8)[1:].view(numpy.int64),
        lambda ids: numpy.ma.masked_array(ids, mask=False),
        lambda ids: (ctypes.c_int64 * len(ids))(*ids),
        lambda ids: (ctypes.c_uint64.__ctype_be__ * len(ids))(*ids),
        lambda ids: array.array("q", ids),
        lambda ids: array.array("Q", ids),
        lambda ids: memoryview(array.array("q", ids)),
        lambda ids: [str(id) for id in ids],
        lambda ids: [frazil.format_id(id, "decimal") for id in ids],
        tuple,
        iter,
        pandas.Series,
        lambda ids: pandas.Series(ids, dtype="Int64"),
        lambda ids: pandas.Series([str(id) for id in ids]),
        pandas.Index,
    ],
)
def test_containers_of_ids(make):
    ids = [KNOWN + number for number in range(100)]
    parts = TWITTER.decode_many(make(ids))
    assert parts["sequence"].tolist() == list(range(100))
    assert set(parts["time"].astype(str).tolist()) == {"2022-06-28T16:07:40.105"}


def shapes(ids):
    """Returns an int64 array in memory layouts of different kinds."""
    native = numpy.array(ids, dtype=numpy.int64)
    odd = numpy.frombuffer(b"x" + native.tobytes(), dtype=numpy.uint8)[1:].view(numpy.int64)
    read_only = native.copy()
    read_only.flags.writeable = False
    wide = numpy.repeat(native, 3)
    return {
        "native": native,
        "unsigned": native.astype(numpy.uint64),
        "strided": wide[1::3],
        "backwards": native[::-1].copy()[::-1],
        "repeated": numpy.broadcast_to(native[0], native.shape),
        "odd": odd,
        "read-only": read_only,
        "big-endian": native.astype(">i8"),
        "big-endian, strided": wide.astype(">u8")[::3],
    }


@pytest.mark.parametrize("count", [1, 1023, 1024, 1025, 3000])
def test_memory_of_any_shape(count):
    layout, ids = some_ids("sonyflake", 3000)
    ids = ids[1 : count + 1]
    expected = layout.decode_many([str(id) for id in ids])
    for name, array_ in shapes(ids).items():
        parts = layout.decode_many(array_)
        for column in expected:
            wanted = expected[column] if name != "repeated" else numpy.repeat(expected[column][:1], count)
            assert (parts[column] == wanted).all(), (name, column)
        assert frazil.numpy.ids(array_).tolist() == [int(id) for id in array_], name


@pytest.mark.parametrize("bad", [[0], [1024], [2999], [1023, 1024, 2500], [*range(3000)]], ids=len)
def test_the_bad_rows_are_counted(bad):
    few = frazil.Layout("time:31@1s node:2 sequence:8 epoch:2025-01-01")
    for number, says in ((-5, "-5 is negative"), (2**50, f"{2**50} has more bits than the layout's 41")):
        ids = [number if row in bad else row for row in range(3000)]
        note = f"ids[{bad[0]}] is the only bad row" if len(bad) == 1 else f"ids[{bad[0]}] is the first of {len(bad)} bad rows"
        for name, array_ in shapes(ids).items():
            if name == "unsigned" and number < 0 or name.startswith("big-endian,") and number < 0 or name == "repeated":
                continue
            with pytest.raises(frazil.errors.IdInvalidError) as refused:
                few.decode_many(array_)
            assert str(refused.value).startswith(says) and str(refused.value).endswith(note), name
    for ids in (
        [row if row not in bad else "x" for row in range(3000)],
        numpy.array([row if row not in bad else None for row in range(3000)]),
    ):
        with pytest.raises(frazil.FrazilError) as refused:
            few.decode_many(ids)
        assert str(refused.value).endswith(note)
    with pytest.raises(
        frazil.errors.IdInvalidError, match=r"ids\[1\]=18446744073709551615 is out of range: .*; ids\[1\] is the only bad row"
    ):
        few.decode_many(numpy.array([1, 2**64 - 1], dtype=numpy.uint64))
    # An endless generator is refused at its first bad row.
    with pytest.raises(frazil.errors.IdInvalidError, match="negative: an ID is 0 to 9223372036854775807$"):
        few.decode_many(itertools.count(-1))


def test_times_after_the_year_9999_are_counted():
    layout = frazil.Layout("time:41@1h node:2 sequence:8 epoch:2025-01-01")
    last = layout.max_id(datetime(9999, 12, 31, 23, tzinfo=UTC))
    assert layout.decode_many([last])["time"].astype(str).tolist() == ["9999-12-31T23:00:00.000"]
    ids = numpy.array([last, 7, last + 1, last + 2000])
    with pytest.raises(frazil.errors.IdInvalidError, match=r"a time after the year 9999 .*; ids\[2\] is the first of 2 bad rows"):
        layout.decode_many(ids)
    # Combined by OR, the bits of these IDs exceed the last ID, but each ID is at most the last one.
    ids = numpy.array([last, last >> 1, last >> 2 << 1])
    assert layout.decode_many(ids)["tick"].tolist() == [int(id) >> 10 for id in ids]


def test_some_columns():
    ids = numpy.array([KNOWN, KNOWN + 1])
    every = TWITTER.decode_many(ids)
    for fields in (["sequence"], ("tick", "time"), iter(["worker"]), {"datacenter": 1}, []):
        names = list(fields) if not hasattr(fields, "__next__") else ["worker"]
        parts = TWITTER.decode_many(ids, fields=fields)
        assert list(parts) == names and all((parts[name] == every[name]).all() and parts[name].dtype == every[name].dtype for name in names)
    for fields, kind, why in (
        (["workers"], frazil.errors.UnknownKeyError, 'no column "workers", did you mean worker|no column "workers"'),
        (["tick", "tick"], frazil.errors.SpecError, "the column tick is given twice"),
        ("tick", frazil.errors.WrongTypeError, "fields must be an iterable of names of columns, not str"),
        (5, frazil.errors.WrongTypeError, "fields must be an iterable of names of columns, not int"),
        ([5], frazil.errors.WrongTypeError, "a name of fields must be a str, not int"),
    ):
        with pytest.raises(kind, match=why):
            TWITTER.decode_many(ids, fields=fields)


def test_arrays_are_reused():
    first = TWITTER.decode_many(numpy.array([KNOWN, KNOWN + 4096]))
    again = TWITTER.decode_many([KNOWN + 1, KNOWN + 2], out=first)
    assert list(again) == list(first) and all(again[name] is first[name] for name in first)
    assert first["sequence"].tolist() == [1, 2] and first["time"].dtype == "datetime64[ms]"
    assert first["time"].astype(str).tolist() == ["2022-06-28T16:07:40.105"] * 2
    own = {"tick": array.array("q", [0, 0]), "time": numpy.zeros(2, dtype=numpy.int64), "worker": numpy.zeros(2, dtype=numpy.uint64)}
    assert list(TWITTER.decode_many([KNOWN, KNOWN], out=own)) == ["tick", "time", "worker"]
    assert list(own["tick"]) == [KNOWN >> 22] * 2 and own["time"].tolist() == [1656432460105] * 2 and own["worker"].tolist() == [26] * 2
    assert list(TWITTER.decode_many([7, 8], fields=["sequence"], out=first)) == ["sequence"]
    assert first["sequence"].tolist() == [7, 8] and first["worker"].tolist() == [26, 26]


def test_arrays_that_cannot_be_reused():
    ids = numpy.array([KNOWN, KNOWN])

    def refused(why, out, ids=ids, kind=frazil.errors.WrongTypeError, **options):
        before = {name: numpy.array(array_) for name, array_ in out.items()} if isinstance(out, dict) else {}
        with pytest.raises(kind, match=why):
            TWITTER.decode_many(ids, out=out, **options)
        assert all((numpy.array(out[name]) == array_).all() for name, array_ in before.items())

    wrong = r"out\['tick'\] must be a writable, C-contiguous, aligned buffer of int64 or uint64"
    for bad in (
        numpy.zeros(2),
        numpy.zeros(2, dtype=numpy.int32),
        numpy.zeros(2, dtype=">i8"),
        numpy.zeros(4, dtype=numpy.int64)[::2],
        numpy.frombuffer(bytes(16), dtype=numpy.int64),
        numpy.zeros(17, dtype=numpy.uint8)[1:].view(numpy.int64),
        numpy.zeros(2, dtype="datetime64[ms]"),
        [0, 0],
    ):
        refused(wrong, {"tick": bad})
    refused(r"out\['time'\] must be a writable", {"time": numpy.zeros(2, dtype="datetime64[s]")})
    refused(r"out\['time'\] must be a writable", {"time": pandas.Series(numpy.zeros(2, dtype="datetime64[ms]"))})
    for count in (0, 1, 3):
        refused(f"out\\['tick'\\] must have 2 numbers, as many as ids, not {count}", {"tick": numpy.zeros(count, dtype=numpy.int64)})
    one = numpy.zeros(3, dtype=numpy.int64)
    for out in (
        {"tick": one[:2], "worker": one[:2]},
        {"tick": one[:2], "worker": one[1:]},
        {"tick": one[:2], "time": one[1:].view("datetime64[ms]")},
    ):
        refused("the arrays of out must share no memory with each other or with ids", out)
    refused("share no memory with each other or with ids", {"tick": ids})
    wide = numpy.arange(4)
    refused("share no memory with each other or with ids", {"tick": wide[1:3]}, wide[::3])
    refused("share no memory with each other or with ids", {"tick": wide[1:3]}, wide[::-3])
    refused("out must be a dict of arrays, not list", [one])
    refused("out has no array for the column worker", {"tick": one[:2]}, fields=["worker"])
    refused('no column "tock"', {"tock": one[:2]}, kind=frazil.errors.UnknownKeyError)
    assert TWITTER.decode_many([], out={"tick": numpy.zeros(0, dtype=numpy.int64)})["tick"].tolist() == []


def test_empty_arrays():
    for none in ([], numpy.zeros(0, dtype=numpy.int64), pandas.Series([], dtype="int64"), array.array("Q")):
        assert {name: len(column) for name, column in TWITTER.decode_many(none).items()} == {
            "time": 0, "datacenter": 0, "worker": 0, "sequence": 0, "tick": 0,
        }  # fmt: skip
    ids = open_manual()
    assert ids.array(0).tolist() == []


def test_values_that_are_not_ids():
    def refused(kind, ids, why):
        with pytest.raises(kind, match=why):
            TWITTER.decode_many(ids)

    refused(frazil.errors.WrongTypeError, "1541815603606036480", "ids must be a one-dimensional array .* not str")
    for value in (None, 7, b"12345678", bytearray(8), object(), numpy.int64(7)):
        refused(frazil.errors.WrongTypeError, value, "ids must be a one-dimensional array")
    refused(frazil.errors.WrongTypeError, numpy.zeros((2, 2), dtype=numpy.int64), "ids must be one-dimensional")
    refused(frazil.errors.WrongTypeError, [1, 2.0], r"ids\[1\] must be an int or a decimal str, not float")
    for floats in (numpy.array([1.0]), pandas.Series([1, None], dtype="Int64"), pandas.Series([KNOWN, None])):
        refused(frazil.errors.WrongTypeError, floats, r"ids is an array of floats.*ids.dropna\(\)")
    refused(
        frazil.errors.WrongTypeError,
        pandas.Series([KNOWN, pandas.NA], dtype=object),
        r"ids\[1\] must be an int or a decimal str, not NAType",
    )
    refused(frazil.errors.WrongTypeError, numpy.array(["2025-01-01"], dtype="datetime64[ms]"), r"ids\[0\] must be")
    refused(frazil.errors.WrongTypeError, numpy.ma.masked_array([KNOWN, KNOWN], mask=[False, True]), "ids has masked values")
    refused(frazil.errors.IdInvalidError, ["1", "x"], "x")
    refused(frazil.errors.IdInvalidError, [1, -1], "-1")
    refused(frazil.errors.IdInvalidError, numpy.array([1, -1]), "-1 is negative")
    refused(frazil.errors.IdInvalidError, numpy.array([1, 2**63], dtype=numpy.uint64), r"ids\[1\]=9223372036854775808 is out of range")
    with pytest.raises(frazil.errors.IdInvalidError, match="more bits"):
        frazil.Layout("js53").decode_many([KNOWN])

    view = memoryview(array.array("q", [KNOWN]))
    view.release()
    refused(frazil.errors.WrongTypeError, view, "ids must be .* not memoryview")
    assert TWITTER.decode_many((ctypes.c_int64 * 2)(1, 2))["sequence"].tolist() == [1, 2]

    def breaks():
        yield 1
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        TWITTER.decode_many(breaks())


def test_missing_values_of_a_table():
    """The guide's example runs."""
    table = pandas.DataFrame({"id": pandas.array([KNOWN, None, KNOWN + 4096], dtype="Int64")})
    known = table["id"].dropna()
    parts = pandas.DataFrame(TWITTER.decode_many(known), index=known.index)
    joined = table.join(parts)
    assert joined["worker"].tolist()[::2] == [26, 27] and pandas.isna(joined["time"][1])


def test_new_arrays(node):
    ids = frazil.Snowflake("standard", node=node)
    made = ids.array(10_000)
    assert made.dtype == numpy.int64 and made.shape == (10_000,) and ascends(made.tolist())
    made[0] = 0
    orders = frazil.Segment("orders", store="memory", namespace="arrays")
    assert orders.array(5).tolist() == [1, 2, 3, 4, 5]
    assert len(ids.array(3, timeout=5)) == 3
    for count in (-1, 2**24 + 1, 2**64):
        with pytest.raises(frazil.errors.OutOfRangeError, match="count"):
            ids.array(count)
    with pytest.raises(frazil.errors.WrongTypeError, match="count"):
        ids.array("7")
    with pytest.raises(frazil.errors.WouldBlockError) as raised:
        open_manual().array(5000)
    assert raised.value.written == 0
    ids.close()
    with pytest.raises(frazil.errors.ClosedError):
        ids.array(1)


def test_fill_takes_unsigned_memory(node):
    ids = frazil.Snowflake("standard", node=node)
    unsigned = numpy.zeros(1000, dtype=numpy.uint64)
    assert ids.fill(unsigned) == 1000
    words = array.array("Q", [0] * 10)
    assert ids.fill(words) == 10
    assert ascends([*unsigned.tolist(), *words])


@pytest.mark.parametrize("count", [3, 2])
def test_two_columns_cannot_share_an_array(monkeypatch, count):
    """A column does not share its memory, even if a program has replaced numpy.empty."""
    one = numpy.zeros(count, dtype=numpy.int64)
    monkeypatch.setattr(numpy, "empty", lambda *_: one)
    with pytest.raises(frazil.errors.WrongTypeError, match="numpy.empty must return a new array of 3 numbers at each call"):
        TWITTER.decode_many([KNOWN] * 3)
    assert not one.any()


def test_without_numpy():
    code = """
import sys
sys.modules["numpy"] = None
import array, frazil
layout, ids = frazil.Layout("twitter"), frazil.Snowflake("standard", node=1)
for call in (lambda: ids.array(3), lambda: layout.decode_many([1])):
    try:
        call()
    except ImportError as error:
        print(error.name)
print(ids.fill(array.array("q", [0])))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout == "numpy\nnumpy\n1\n"
