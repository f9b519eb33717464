"""Every error class, and every kind of bad input."""

import array
import decimal
import os
import pickle
from datetime import datetime

import frazil
import numpy
import pytest
from conftest import STANDARD_EPOCH_MS, at, open_manual

TWITTER = frazil.Layout("twitter")
NOW = at(STANDARD_EPOCH_MS)
PARTS = {"sequence": 0, "datacenter": 1, "worker": 1}
NOT_TEXT = [None, 7, b"bytes", ["list"], object(), 1.5]
NOT_AN_INT = [None, "7", b"7", [7], object(), 1.0, True, numpy.bool_(True)]
NOT_A_WHOLE_NUMBER = [-1, 2**64, -(2**64), 2**200, -(2**63), 10**5000, 1.5, float("nan"), float("inf")]
NOT_UNICODE = "a\ud800b"


def exhausted():
    ids = open_manual("twitter datacenter=1 worker=1 exhausted=error")
    ids.batch(4097)


def clock_back():
    ids = open_manual("twitter datacenter=1 worker=1")
    ids.next()
    ids.set_time(at(STANDARD_EPOCH_MS - 10))
    ids.next()


def closed():
    ids = open_manual()
    ids.close()
    ids.next()


def conflict():
    frazil.Snowflake("leaf worker=1000")
    frazil.Snowflake("leaf worker=1000 start=zero")


def leased(namespace, *lines):
    # A process finds out after 1.5 x renew whether another one holds a number.
    quick = {"window": "400ms", "renew": "100ms", "rollback": "error"}
    return [frazil.Snowflake(line, store="memory", detached=True, namespace=namespace, **quick) for line in lines]


def used_up():
    ids, _ = leased("used_up", ONE_NODE, ONE_NODE)
    ids.release_node()
    _thief = leased("used_up", ONE_NODE)
    ids.next()


def in_child(work):
    theirs, ours = os.pipe()
    if os.fork() == 0:
        try:
            work()
        except frazil.FrazilError as error:
            os.write(ours, pickle.dumps(error))
        finally:
            os._exit(0)
    os.close(ours)
    with open(theirs, "rb") as answer:
        raise pickle.loads(answer.read())


def copied():
    ids = open_manual()
    ids.next()
    frazil.restored()
    ids.next()


def segment(tag, **options):
    return frazil.Segment(tag, store="memory", namespace="every_error", **options)


ONE_NODE = "layout='time:41@1ms node:1 sequence:12 epoch:2025-01-01'"
NATURAL = {
    "SPEC": lambda: frazil.Snowflake("nonsense"),
    "UNKNOWN_KEY": lambda: frazil.Snowflake("twitter shard=1"),
    "OUT_OF_RANGE": lambda: frazil.Snowflake("twitter datacenter=1 worker=32"),
    "LAYOUT_INVALID": lambda: frazil.Layout("time:37@1ms server:20 sequence:16 epoch:1970-01-01"),
    "ID_INVALID": lambda: TWITTER.decode(-1),
    "WRONG_TYPE": lambda: TWITTER.decode(b"1"),
    "CLOSED": closed,
    "LAYOUT_EXPIRED": lambda: frazil.Snowflake("baidu worker=1"),
    "BEFORE_EPOCH": lambda: TWITTER.min_id(at(0)),
    "CLOCK_BACK": clock_back,
    "EXHAUSTED": exhausted,
    "WOULD_BLOCK": lambda: open_manual().batch(4097),
    "CLOCK_NOT_SET": lambda: open_manual(unix_ms=None).next(),
    "NODE_MISSING": lambda: frazil.Snowflake("twitter"),
    "NODE_IN_USE": lambda: leased("in_use", "standard node=1", "standard node=1"),
    "NO_FREE_NODE": lambda: leased("no_free", ONE_NODE, ONE_NODE, ONE_NODE),
    "FORKED": lambda: in_child(open_manual().next),
    "COPIED": lambda: in_child(copied),
    "CONFLICT": conflict,
    "LAYOUT_MISMATCH": lambda: leased("mismatch", "twitter", "leaf"),
    "LEASE_EXHAUSTED": used_up,
    "STORE_UNREACHABLE": lambda: frazil.Snowflake("standard store=redis://127.0.0.1:1/0 window=4s renew=1s"),
    "STORE_UNSUITABLE": lambda: frazil.Snowflake("standard store=redis://127.0.0.1:1/0 lease=disposable"),
    "SEGMENT_EXHAUSTED": lambda: segment("end", start=2**63 - 1).batch(2),
    "SEGMENT_MISMATCH": lambda: [segment("odd", increment=2, offset=offset) for offset in (1, 2)],
}


@pytest.mark.parametrize("name", NATURAL)
def test_every_error(name):
    with pytest.raises(frazil.FrazilError) as raised:
        NATURAL[name]()
    error = raised.value
    code, _, _ = next(row for row in frazil.ERRORS if row[1] == name)
    assert (error.name, error.code) == (name, code)
    assert type(error).__name__.upper() == name.replace("_", "") + "ERROR"
    assert len(str(error)) > 10
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.retry_after) == (type(error), str(error), error.retry_after)


FAMILIES = {
    ValueError: "SPEC UNKNOWN_KEY OUT_OF_RANGE LAYOUT_INVALID ID_INVALID LAYOUT_EXPIRED BEFORE_EPOCH NODE_MISSING LAYOUT_MISMATCH SEGMENT_MISMATCH",
    TypeError: "WRONG_TYPE",
    TimeoutError: "WOULD_BLOCK SEGMENT_EXHAUSTED",
    ConnectionError: "STORE_UNREACHABLE",
    PermissionError: "STORE_AUTH",
    OSError: "STORE_READONLY STORE_CORRUPT STORE_CHANGED STORE_UNSUITABLE",
    NotImplementedError: "STORE_NOT_BUILT",
    LookupError: "TAG_MISSING",
    RuntimeError: "CLOSED CLOCK_NOT_SET FORKED CONFLICT COPIED INTERNAL",
    None: "CLOCK_BACK EXHAUSTED CLOCK_SKEW NODE_IN_USE NO_FREE_NODE LEASE_EXHAUSTED",
}


def test_every_error_is_what_python_would_raise():
    expected = {name: family for family, names in FAMILIES.items() for name in names.split()}
    # A new error needs a decision on its base class.
    assert sorted(expected) == sorted(name for _, name, _ in frazil.ERRORS)
    for _, name, _ in frazil.ERRORS:
        kind = getattr(frazil.errors, "".join(map(str.capitalize, name.split("_"))) + "Error")
        bases = (frazil.FrazilError, expected[name]) if expected[name] else (frazil.FrazilError,)
        assert kind.__bases__ == bases
        error = kind("why")
        assert (str(error), error.written, error.retry_after) == ("why", 0, None)
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (kind, "why")


def refused(kind, call, *arguments, **keywords):
    with pytest.raises(kind) as raised:
        call(*arguments, **keywords)
    assert len(str(raised.value)) < 1000
    return str(raised.value)


def test_wrong_types():
    ids = open_manual()
    for value in NOT_AN_INT:
        given = type(value).__name__
        assert given in refused(frazil.errors.WrongTypeError, ids.batch, value)
        assert given in refused(frazil.errors.WrongTypeError, ids.abatch, value)
        # An ID may be a decimal str.
        if value != "7":
            assert given in refused(frazil.errors.WrongTypeError, TWITTER.decode, value)
            assert given in refused(frazil.errors.WrongTypeError, ids.observe, value)
            assert given in refused(frazil.errors.WrongTypeError, frazil.format_id, value, "hex")
            assert "ids[1] must be an int or a decimal str" in refused(frazil.errors.WrongTypeError, TWITTER.decode_many, [1, value])
        for name in PARTS:
            assert name in refused(frazil.errors.WrongTypeError, TWITTER.compose, NOW, **{**PARTS, name: value})
    for value in NOT_TEXT:
        assert type(value).__name__ in refused(frazil.errors.WrongTypeError, ids.text, value)
        refused(frazil.errors.WrongTypeError, frazil.format_id, 1, value)
        refused(frazil.errors.WrongTypeError, frazil.parse_id, value, "hex")
        refused(frazil.errors.WrongTypeError, frazil.parse_id, "0", value)
        refused(frazil.errors.WrongTypeError, frazil.Layout, value)
        if value is not None:
            refused(frazil.errors.WrongTypeError, frazil.Snowflake, value)
    for value in [b"7", [7], object(), 7.0, NOW]:
        assert "worker" in refused(frazil.errors.WrongTypeError, frazil.Snowflake, "twitter", datacenter=1, worker=value)
    for value in [None, 0, "2025-01-01", 1.5, NOW.date(), NOW.time(), STANDARD_EPOCH_MS]:
        for call in (ids.set_time, TWITTER.min_id, TWITTER.max_id):
            assert "time must be an aware datetime" in refused(frazil.errors.WrongTypeError, call, value)
        refused(frazil.errors.WrongTypeError, TWITTER.compose, value, **PARTS)
    for call in (ids.set_time, TWITTER.min_id, TWITTER.max_id):
        assert "naive" in refused(frazil.errors.WrongTypeError, call, datetime(2025, 1, 1))
    for arguments in [(1,), (1, 2), (None,)]:
        assert "no arguments" in refused(frazil.errors.WrongTypeError, ids.next, *arguments)
    # Python itself refuses too few arguments, and a method without its object.
    for call in (ids.batch, ids.fill, ids.text, frazil.format_id, frazil.Layout, lambda: ids(1), lambda: frazil.Snowflake.next(7)):
        with pytest.raises(TypeError):
            call()


def test_wrong_type_of_floats_as_ids_whatever_their_value():
    ids = open_manual()
    for value in [
        0.0,
        3.0,
        3.5,
        -1.0,
        568883383628111872.0,
        5.68e17,
        1e300,
        float("nan"),
        float("inf"),
        numpy.float64(7),
        numpy.float32(7),
    ]:
        for call in [TWITTER.decode, ids.observe, lambda id: frazil.format_id(id, "hex"), lambda id: TWITTER.decode_many([1, id])]:
            assert "must be an int or a decimal str, not float" in refused(frazil.errors.WrongTypeError, call, value)


def test_wrong_type_of_decimals_that_are_not_exact():
    known = 1541815603606036481
    for text in [f"{known}", f"{known}.0", "1.541815603606036481E+18", f"{known}.000"]:
        assert TWITTER.decode(decimal.Decimal(text)).id == known
        assert TWITTER.decode_many([decimal.Decimal(text)])["tick"][0] == known >> 22
    for text in ["1.5", "1.5418156036060365E+18", "NaN", "Infinity", f"{known}.5"]:
        assert "id=" in refused(frazil.errors.WrongTypeError, TWITTER.decode, decimal.Decimal(text))
    for text in ["-1", str(2**63), str(2**64)]:
        assert "id=" in refused(frazil.errors.IdInvalidError, TWITTER.decode, decimal.Decimal(text))


def test_out_of_range():
    ids = open_manual()
    for value in NOT_A_WHOLE_NUMBER:
        assert "count" in refused(frazil.errors.OutOfRangeError, ids.batch, value)
        refused(frazil.errors.OutOfRangeError, ids.abatch, value)
        for name in PARTS:
            assert name in refused(frazil.errors.OutOfRangeError, TWITTER.compose, NOW, **{**PARTS, name: value})
        # A float is never an ID, whatever its value.
        error = frazil.errors.WrongTypeError if isinstance(value, float) else frazil.errors.IdInvalidError
        refused(error, TWITTER.decode, value)
        refused(error, frazil.format_id, value, "hex")
    for value in [-1, 32, 2**63, 2**64, 2**200, -(2**200), 10**5000]:
        assert "worker" in refused(frazil.errors.OutOfRangeError, frazil.Snowflake, "twitter", datacenter=1, worker=value)
    assert "16777216" in refused(frazil.errors.OutOfRangeError, ids.batch, 2**24 + 1)
    refused(frazil.errors.OutOfRangeError, ids.abatch, 2**24 + 1)
    assert "0 to 31" in refused(frazil.errors.OutOfRangeError, TWITTER.compose, NOW, **{**PARTS, "worker": 32})
    assert "0 to 4095" in refused(frazil.errors.OutOfRangeError, TWITTER.compose, NOW, **{**PARTS, "sequence": 4096})
    refused(frazil.errors.UnknownKeyError, TWITTER.compose, NOW, **PARTS, machine=1)
    refused(frazil.errors.NodeMissingError, TWITTER.compose, NOW, sequence=0, worker=1)
    refused(frazil.errors.IdInvalidError, TWITTER.decode, 2**63)
    assert TWITTER.decode(2**63 - 1).sequence == 4095
    assert "none of: decimal" in refused(frazil.errors.OutOfRangeError, ids.text, "base64")
    for edge in (datetime.min, datetime.max):
        edge = edge.replace(tzinfo=NOW.tzinfo)
        refused(frazil.FrazilError, TWITTER.min_id, edge)
        refused(frazil.FrazilError, TWITTER.compose, edge, **PARTS)


def test_strange_strings():
    for text in ["", " ", "\0", "7\0", "é", "７", "1" * 1_000_000, "-1", "+1", "1_000", NOT_UNICODE]:
        for form in ("decimal", "base62", "base32", "hex", "check"):
            refused(frazil.errors.IdInvalidError, frazil.parse_id, text, form)
        for call in (frazil.parse_id, TWITTER.decode, open_manual().observe, lambda text: frazil.format_id(text, "hex")):
            refused(frazil.errors.IdInvalidError, call, text)
        refused(frazil.errors.IdInvalidError, TWITTER.decode_many, [1, text])
        refused(frazil.errors.OutOfRangeError, frazil.format_id, 1, text)
    for text in ["\0", "é", "x" * 1_000_000, "twitter\0", "twitter worker", "=", "worker==", "twitter worker='1", NOT_UNICODE]:
        refused(frazil.FrazilError, frazil.Snowflake, text)
        refused(frazil.FrazilError, frazil.Layout, text)
        refused(frazil.FrazilError, frazil.Snowflake, "twitter", datacenter=1, worker=text)
        refused(frazil.FrazilError, frazil.Snowflake, "twitter", datacenter=1, **{text: 1})
        refused(frazil.errors.UnknownKeyError, TWITTER.compose, NOW, **PARTS, **{text: 1})
    refused(frazil.errors.SpecError, frazil.Snowflake, NOT_UNICODE)
    refused(frazil.errors.SpecError, frazil.Snowflake, "twitter", datacenter=1, worker=NOT_UNICODE)
    refused(frazil.errors.NodeMissingError, frazil.Snowflake, "")
    refused(frazil.errors.SpecError, frazil.Layout, "")
    with pytest.raises(AttributeError):
        getattr(TWITTER.decode(1), NOT_UNICODE)


def test_closed_handle(node):
    ids = frazil.Snowflake("standard", node=node)
    other = frazil.Snowflake("standard", node=node)
    ids.close()
    ids.close()
    calls = [
        ids.next,
        ids,
        lambda: next(ids),
        lambda: ids.batch(1),
        lambda: ids.batch(0),
        lambda: ids.fill(array.array("q", [0])),
        lambda: ids.text("hex"),
        ids.credit,
        ids.release_node,
        lambda: ids.set_time(NOW),
        lambda: ids.observe(1),
    ]
    for call in calls:
        refused(frazil.errors.ClosedError, call)
    assert other.next() > 0


def test_wrong_buffers():
    ids = open_manual()
    read_only = numpy.zeros(4, dtype=numpy.int64)
    read_only.flags.writeable = False
    buffers = [
        None,
        7,
        "text",
        [0] * 4,
        bytes(32),
        bytearray(32),
        array.array("i", [0] * 4),
        array.array("d", [0] * 4),
        memoryview(array.array("q", [0] * 8))[::2],
        memoryview(array.array("q", [0] * 8)).toreadonly(),
        numpy.zeros(4, dtype=numpy.uint32),
        numpy.zeros(4, dtype=">u8"),
        numpy.zeros(4, dtype=numpy.int32),
        numpy.zeros(4, dtype=numpy.float64),
        numpy.zeros(4, dtype=">i8"),
        numpy.zeros(4, dtype="datetime64[ms]"),
        numpy.zeros(4, dtype=[("id", "i8")]),
        numpy.zeros((4, 4), dtype=numpy.int64)[:, 0],
        numpy.zeros((4, 4), dtype=numpy.int64, order="F"),
        numpy.zeros(33, dtype=numpy.int8)[1:].view(numpy.int64),
        numpy.array([None] * 4),
        read_only,
    ]
    for buffer in buffers:
        assert "buffer must be a writable" in refused(frazil.errors.WrongTypeError, ids.fill, buffer)
    assert not read_only.any()
    # The refused calls have spent no ID.
    assert ids.credit() == open_manual().credit()
