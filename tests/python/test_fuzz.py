"""Random calls: whatever the arguments are, each call returns a result or raises an error of frazil."""

import array
import ctypes
import decimal
import fractions
import io
import itertools
import pickle
import uuid
from datetime import UTC, date, datetime, timedelta, timezone

import frazil
import numpy
import pandas
import pytest
from conftest import open_manual
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as some

# 20,000 calls, in which each value is an argument of each function.
VALUES_IN_A_ROW, ROWS = 6, 100

KNOWN = 1541815603606036480
# Not a literal, because hypothesis uses a program's literals as random texts.
SECRET = uuid.uuid4().hex
LAYOUTS = [frazil.Layout(text) for text in ("twitter", "sonyflake", "js53", "time:31@1h odd:1 sequence:12 most:17 epoch:0001-01-01")]
NAMES = [
    "node", "worker", "datacenter", "odd", "fields", "layout", "epoch", "store", "namespace", "lease", "window", "renew", "rollback",
    "exhausted", "start", "lag", "after", "clock", "detached", "sequence", "size", "refill", "empty", "step", "increment", "offset", "wait", "table",
]  # fmt: skip
TEXTS = [
    "twitter", "leaf", "standard", "baidu", "nonsense", "memory", "env:NOWHERE", f"redis://me:{SECRET}@127.0.0.1:1/0", "postgresql://x", "file:", "manual",
    "system", "true", "error", "wait:5ms", "ahead:1s", "ahead", "wait", "zero", "random:16", "disposable", "1s", "10ms", "2025-01-01", "hostname", "hostname+1",
    "time:41@1ms node:10 sequence:12 epoch:2025-01-01", "time:64@1ms sequence:1 epoch:1970-01-01", "decimal", "base62", "base32", "hex", "check", "orders", "leaf worker=1",
    "twitter datacenter=1 worker=7", "1", str(KNOWN), "1ptWyK4WgZU", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "507f1f77bcf86cd799439011", "a\0b", "\ud800", "x" * 5000,
]  # fmt: skip
NUMBERS = [
    -(2**200),
    -(2**63) - 1,
    -1,
    0,
    1,
    7,
    31,
    32,
    4095,
    4096,
    5000,
    KNOWN,
    2**24 + 1,
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    2**64,
    2**200,
    10**5000,
]


class Index:
    def __index__(self):
        return 7


class Odd:
    """Raises an error from each special method."""

    def __index__(self):
        raise LookupError("odd")

    __repr__ = __str__ = __float__ = __len__ = __index__

    def __iter__(self):
        raise LookupError("odd")


class OddNumber(int):
    def __repr__(self):
        raise LookupError("odd")

    __str__ = __repr__


def released():
    view = memoryview(array.array("q", [0] * 8))
    view.release()
    return view


# Made again for each call, because a call may write to them.
MADE = [
    object, Index, Odd, list, dict, set, released, lambda: OddNumber(-7), lambda: OddNumber(10**30), lambda: io.BytesIO(bytes(64)).getbuffer(),
    lambda: array.array("q", [1, 2]), lambda: array.array("Q", [1]), lambda: array.array("i", [1]), lambda: bytearray(16), lambda: bytes(16),
    lambda: (ctypes.c_int64 * 3)(), lambda: numpy.zeros(3, dtype=numpy.uint64), lambda: numpy.zeros((2, 2), dtype=numpy.int64), lambda: numpy.array(7),
    lambda: numpy.array([1.5, float("nan")]), lambda: numpy.zeros(4, dtype=numpy.int64)[::2], lambda: numpy.array([KNOWN, "x"], dtype=object),
    lambda: pandas.Series([KNOWN, None]), lambda: pandas.Series([KNOWN]), lambda: pandas.NA, lambda: pandas.NaT, lambda: pandas.Timestamp('2025-06-01', tz='UTC'), lambda: numpy.datetime64("2025-01-01"),
    lambda: numpy.int64(-1), lambda: numpy.uint64(2**63), lambda: numpy.float64(1), lambda: numpy.bool_(True), lambda: numpy.str_("7"),
    lambda: decimal.Decimal(7), lambda: fractions.Fraction(7), lambda: 7j, lambda: date(2025, 1, 1), lambda: UTC, lambda: frazil.errors.SpecError,
    lambda: LAYOUTS[0], lambda: LAYOUTS[0].decode(KNOWN), frazil.objectid.ObjectId, frazil.uuid.uuid7, lambda: open_manual().next, lambda: open_manual(),
    lambda: {"worker": 7}, lambda: {"store": "memory"}, lambda: {7: 7}, lambda: [KNOWN, str(KNOWN)], lambda: ["memory", "memory"], lambda: ("a b", None),
]  # fmt: skip
ZONES = some.sampled_from([None, UTC, timezone(timedelta(hours=14)), timezone(-timedelta(hours=23, minutes=59, seconds=59))])
VALUES = some.one_of(
    some.none(),
    some.booleans(),
    some.sampled_from(NUMBERS),
    some.integers(-(2**70), 2**70),
    some.floats(),
    some.sampled_from(TEXTS),
    some.text(some.characters(codec=None), max_size=20),
    some.binary(max_size=20),
    some.datetimes(timezones=ZONES),
    some.timedeltas(),
    some.sampled_from(MADE).map(lambda make: make()),
)
KEYS = some.one_of(some.sampled_from(NAMES), some.text(some.characters(codec=None), max_size=5)).filter(lambda key: key != "timeout")
OPTIONS = some.dictionaries(KEYS, VALUES, max_size=2)


def opened(kind):
    def call(spec, value, options):
        # Without `store`, no call creates a folder or contacts a server.
        safe = {key: given for key, given in options.items() if key != "store"} | {"detached": True}
        ids = kind(spec, timeout=0, **safe)
        assert ids.spec and repr(ids)
        return ids.next(timeout=0)

    return call


def numbers(kind):
    return lambda tag, value, options: kind(
        tag, store="memory", timeout=0, **{key: options[key] for key in options if key != "store"}
    ).next(timeout=0)


def composed(layout):
    def call(time, sequence, options):
        id = layout.compose(time, **{"sequence": sequence, "worker": 1, "datacenter": 2} | options)
        assert layout.decode(id).id == id

    return call


def decoded(layout):
    def call(id, other, _options):
        parts = layout.decode(id)
        again = pickle.loads(pickle.dumps(parts))
        assert again == parts and parts._asdict()["time"] == parts.time and repr(parts)
        if isinstance(other, str) and other not in ("", *dir(parts)):
            with pytest.raises(AttributeError):
                getattr(parts, other)
        rest = {"sequence": parts.sequence, **parts.fields}
        assert layout.compose(parts.time, **rest) == parts.id
        assert layout.min_id(parts.time) <= parts.id <= layout.max_id(parts.time)
        many = layout.decode_many([id, parts.id])
        assert [column[0] for column in many.values()] == [column[1] for column in many.values()]

    return call


def formatted(id, form, _options):
    text = frazil.format_id(id, form)
    assert frazil.format_id(frazil.parse_id(text, form), form) == text


def of_generator(call):
    """Wraps a call of a generator with a manual clock: the call does not wait, and IDs ascend."""

    def with_one(value, other, _options):
        ids = open_manual("twitter datacenter=1 worker=1 lag=1s")
        minted = [ids.next()]
        try:
            call(ids, value, other)
        finally:
            minted.append(ids.next())
            assert minted[0] < minted[1]

    return with_one


def closed(value, other, _options):
    ids = open_manual()
    ids.close(timeout=value)
    with pytest.raises(frazil.errors.ClosedError):
        ids.next()


CALLS = [
    opened(frazil.Snowflake),
    opened(frazil.Buffered),
    numbers(frazil.Segment),
    lambda tag, stores, options: frazil.Tickets(tag, **{"store": "memory"} | options, timeout=0).close(),
    lambda text, _other, _options: pickle.loads(pickle.dumps(frazil.Layout(text))),
    *map(composed, LAYOUTS),
    *map(decoded, LAYOUTS),
    *(lambda time, _other, _options, layout=layout: layout.max_id(time) - layout.min_id(time) for layout in LAYOUTS),
    *(lambda ids, _other, _options, layout=layout: layout.decode_many(ids) for layout in LAYOUTS),
    formatted,
    lambda text, form, _options: frazil.format_id(frazil.parse_id(text, form), "hex"),
    lambda text, _other, _options: frazil.parse_id(text),
    lambda value, _other, _options: str(frazil.objectid.ObjectId(value)),
    lambda value, _other, _options: frazil.objectid.ObjectId.min_id(value) < frazil.objectid.ObjectId.max_id(value),
    lambda value, _other, _options: frazil.uuid.uuid7_min(value) < frazil.uuid.uuid7(value) < frazil.uuid.uuid7_max(value),
    lambda value, _other, _options: frazil.uuid.uuid_time(value),
    of_generator(lambda ids, value, _other: ids.batch(value, timeout=0)),
    of_generator(lambda ids, value, _other: ids.array(value, timeout=0)),
    of_generator(lambda ids, value, _other: ids.fill(value, timeout=0)),
    of_generator(lambda ids, value, _other: ids.text(value)),
    of_generator(lambda ids, value, _other: ids.next(timeout=value)),
    of_generator(lambda ids, value, other: ids.batch(5, timeout=value)),
    of_generator(lambda ids, value, _other: ids.layout.decode(ids.next()) == value),
    closed,
]


@settings(max_examples=ROWS, deadline=None, database=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink])
@given(some.lists(VALUES, min_size=VALUES_IN_A_ROW, max_size=VALUES_IN_A_ROW), OPTIONS)
def test_random_calls(values, options):
    for value, other in itertools.pairwise([*values, values[0]]):
        for call in CALLS:
            try:
                call(value, other, options)
            except frazil.FrazilError as error:
                assert type(error) not in (frazil.FrazilError, frazil.errors.InternalError)
                assert 10 < len(str(error)) < 1500 and SECRET not in str(error)
                again = pickle.loads(pickle.dumps(error))
                assert (type(again), str(again)) == (type(error), str(error))
            except LookupError as error:
                # An argument's own exception is passed on.
                assert error.args == ("odd",)


@settings(max_examples=100, deadline=None, database=None)
@given(some.data())
def test_clocks_that_are_set_give_ascending_ids(data):
    ids = open_manual("twitter datacenter=1 worker=1 rollback=ahead:1s exhausted=ahead:1s")
    now, last = datetime(2025, 6, 1, tzinfo=UTC), 0
    for _ in range(20):
        now += timedelta(milliseconds=data.draw(some.integers(-2000, 2000)))
        try:
            ids.set_time(now)
            minted = ids.batch(data.draw(some.integers(1, 300)))
        except (frazil.errors.ClockBackError, frazil.errors.WouldBlockError):
            continue
        assert last < minted[0] and len(set(minted)) == len(minted)
        last = minted[-1]
