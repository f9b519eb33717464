"""Many IDs at once: numpy's arrays, and columns of tables."""

import array
import ctypes
import subprocess
import sys
from datetime import UTC, datetime

import frazil
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
    """IDs over the whole range of a layout, and those at its ends."""
    layout = frazil.Layout(text)
    bits = layout.time_bits + layout.sequence_bits + sum(layout.field_bits.values())
    end = layout.max_id(datetime(9999, 12, 31, tzinfo=UTC)) if layout.expires_at is None else 2**bits - 1
    return layout, [0, end, *(end * number // count for number in range(count))]


@pytest.mark.parametrize("text", LAYOUTS)
def test_many_are_decoded_as_one_is(text):
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
def test_what_ids_stand_in(make):
    ids = [KNOWN + number for number in range(100)]
    parts = TWITTER.decode_many(make(ids))
    assert parts["sequence"].tolist() == list(range(100))
    assert set(parts["time"].astype(str).tolist()) == {"2022-06-28T16:07:40.105"}


def test_none_at_all():
    for none in ([], numpy.zeros(0, dtype=numpy.int64), pandas.Series([], dtype="int64"), array.array("Q")):
        assert {name: len(column) for name, column in TWITTER.decode_many(none).items()} == {
            "time": 0, "datacenter": 0, "worker": 0, "sequence": 0, "tick": 0,
        }  # fmt: skip
    ids = open_manual()
    assert ids.array(0).tolist() == []


def test_what_holds_no_ids():
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
def test_no_array_is_two_columns(monkeypatch, count):
    """The memory of a column is nobody else's, whoever has replaced numpy.empty."""
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
