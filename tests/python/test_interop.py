"""IDs of other systems: MongoDB's ObjectId and UUIDs."""

import copy
import os
import pickle
import subprocess
import sys
import threading
import time
import uuid
import weakref
from datetime import UTC, datetime

import frazil
import pytest
from conftest import ascends, at, vectors
from test_vectors import error_class

INTEROP = vectors("interop")
NOT_AN_INSTANT = [None, 0, 1.5, "2025-01-01", datetime(2025, 1, 1)]


def by_threads(make):
    """Returns the IDs that threads make at once, each thread's in order."""
    made = []
    threads = [threading.Thread(target=lambda: made.append([make() for _ in range(5000)])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4
    return made


def test_object_id():
    for row in INTEROP["object_ids"]:
        known = frazil.objectid.ObjectId(row["text"])
        assert str(known) == row["text"]
        assert repr(known) == f"ObjectId('{row['text']}')"
        assert bytes(known) == bytes.fromhex(row["text"])
        assert known.time == at(row["unix_ms"])
        assert known.time.tzinfo is UTC
        for part in ("random", "counter", "machine", "process"):
            assert getattr(known, part) == row[part], row
        same = [frazil.objectid.ObjectId(row["text"].upper()), frazil.objectid.ObjectId(bytes(known)), copy.deepcopy(known)]
        same += [pickle.loads(pickle.dumps(known, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
        assert all(other == known and hash(other) == hash(known) and type(other) is frazil.objectid.ObjectId for other in same)
    for row in INTEROP["object_id_bounds"]:
        assert str(frazil.objectid.ObjectId.min_id(at(row["unix_ms"]))) == row["min"]
        assert str(frazil.objectid.ObjectId.max_id(at(row["unix_ms"]))) == row["max"]
    low, high = (frazil.objectid.ObjectId(digit * 24) for digit in "0f")
    assert low < high
    assert high > low
    assert low <= low  # noqa: PLR0124
    assert low != high
    assert low != str(low)

    before = int(time.time()) * 1000
    made = [each for thread in by_threads(frazil.objectid.ObjectId) for each in thread]
    assert len(set(made)) == len(made) == 20_000
    assert len({each.random for each in made}) == 1
    assert len({each.counter for each in made}) == len(made)
    assert all(at(before) <= each.time <= datetime.now(UTC) for each in made)


def test_object_id_bad_input():
    for bad in [*INTEROP["object_ids_invalid"], b"", b"eleven byte", b"thirteen byte", "\ud800", "f" * (1 << 20)]:
        with pytest.raises(frazil.errors.IdInvalidError) as raised:
            frazil.objectid.ObjectId(bad)
        assert len(str(raised.value)) < 300
    for bad in [7, 1.5, True, ["list"], bytearray(12), frazil.objectid.ObjectId()]:
        with pytest.raises(frazil.errors.WrongTypeError, match="value must be a str or bytes"):
            frazil.objectid.ObjectId(bad)
    with pytest.raises(TypeError):
        frazil.objectid.ObjectId() < "ffffffffffffffffffffffff"  # noqa: B015
    with pytest.raises(AttributeError):
        frazil.objectid.ObjectId().counter = 1
    for bound in (frazil.objectid.ObjectId.min_id, frazil.objectid.ObjectId.max_id):
        for row in INTEROP["object_id_out_of_bounds"]:
            with pytest.raises(error_class(row["error"])):
                bound(at(row["unix_ms"]))
        for bad in NOT_AN_INSTANT:
            with pytest.raises(frazil.errors.WrongTypeError, match="time"):
                bound(bad)


def test_uuid():
    for row in INTEROP["uuids"]:
        known = uuid.UUID(row["canonical"])
        assert known.version == (row["version"] if known.variant == uuid.RFC_4122 else None)
        for given in [known, *row["texts"]]:
            if row["unix_ms"] is None:
                with pytest.raises(frazil.errors.IdInvalidError):
                    frazil.uuid.uuid_time(given)
            else:
                assert frazil.uuid.uuid_time(given) == at(row["unix_ms"])
    before = time.time_ns() // 1_000_000
    made = by_threads(frazil.uuid.uuid7)
    for each in made:
        assert ascends(each)
        assert ascends([str(one) for one in each])
    made = [one for each in made for one in each]
    assert len(set(made)) == len(made) == 20_000
    assert all(type(one) is uuid.UUID and one.variant == uuid.RFC_4122 and one.version == 7 for one in made)
    assert all(at(before) <= frazil.uuid.uuid_time(one) <= datetime.now(UTC) for one in made)
    last = made[-1]
    assert (pickle.loads(pickle.dumps(last)), uuid.UUID(str(last)), last.is_safe) == (last, last, uuid.SafeUUID.unknown)

    made = [one for each in by_threads(frazil.uuid.uuid4) for one in each]
    assert len(set(made)) == len(made) == 20_000
    assert all(type(one) is uuid.UUID and one.variant == uuid.RFC_4122 and one.version == 4 for one in made)


def test_a_uuid_is_as_its_constructor_makes_it():
    for make in (frazil.uuid.uuid4, frazil.uuid.uuid7):
        for one in [make() for _ in range(100)]:
            made = uuid.UUID(bytes=one.bytes)
            assert (one, hash(one), str(one), repr(one)) == (made, hash(made), str(made), repr(made))
            assert (type(one), type(one.int), one.is_safe) == (uuid.UUID, int, uuid.SafeUUID.unknown)
            assert [copy.copy(one), copy.deepcopy(one)] == [one, one]
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                assert pickle.loads(pickle.dumps(one, protocol)) == one
            for name in ("int", "is_safe", "other"):
                with pytest.raises(TypeError, match="immutable"):
                    setattr(one, name, 7)
            assert weakref.ref(one)() is one


COUNTED = """
import uuid

calls, constructor = [], uuid.UUID.__init__

def counted(self, *args, **names):
    calls.append(args)
    constructor(self, *args, **names)

uuid.UUID.__init__ = counted
import frazil

assert [frazil.uuid.uuid7().version, frazil.uuid.uuid4().version] == [7, 4]
assert not calls, "the constructor takes seven times as long as all the rest"
"""


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="of CPython's own class")
def test_a_uuid_is_made_without_its_constructor():
    subprocess.run([sys.executable, "-c", COUNTED], check=True)


CHANGED_CLASS = """
import uuid

class Changed(uuid.UUID):
    __slots__ = ("more",)

    def __init__(self, *args, **names):
        super().__init__(*args, **names)
        object.__setattr__(self, "more", 7)

uuid.UUID = Changed
import frazil

made = frazil.uuid.uuid7()
assert type(made) is Changed and made.more == 7 and made.version == 7, made
"""


def test_a_uuid_class_with_other_slots_is_constructed():
    subprocess.run([sys.executable, "-c", CHANGED_CLASS], check=True)


POSING_CLASS = """
import uuid
import frazil

class Posing(frazil.Numbers):
    int = is_safe = property(lambda self: 7, lambda self, value: None)

Posing.__slots__ = ("int", "is_safe", "__weakref__")
uuid.UUID = Posing
try:
    print(frazil.uuid.uuid7().spec)
except TypeError as error:
    print(error)
"""


def test_an_object_of_another_library_is_not_made_as_a_uuid():
    """An instance of a class with another base is larger than its slots, and would have no numbers."""
    done = subprocess.run([sys.executable, "-c", POSING_CLASS], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "No constructor defined" in done.stdout or "cannot create" in done.stdout, done.stdout


def test_uuid_bad_input():
    for bad in [*INTEROP["uuids_invalid"], "\ud800", "f" * (1 << 20), frazil.uuid.uuid4(), str(frazil.uuid.uuid4())]:
        with pytest.raises(frazil.errors.IdInvalidError) as raised:
            frazil.uuid.uuid_time(bad)
        assert len(str(raised.value)) < 300
    for bad in [None, 7, 1.5, b"017f22e2-79b0-7cc3-98c4-dc0c0c07398f", ["list"], object()]:
        with pytest.raises(frazil.errors.WrongTypeError, match=r"id must be a uuid\.UUID or a str"):
            frazil.uuid.uuid_time(bad)
    for make in (frazil.uuid.uuid4, frazil.uuid.uuid7):
        with pytest.raises(TypeError):
            make(7)


def test_interop_after_fork():
    def make():
        return frazil.objectid.ObjectId(), frazil.uuid.uuid7(), frazil.uuid.uuid7(), frazil.uuid.uuid4()

    made = [make()]
    for _ in range(20):
        theirs, ours = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(ours, pickle.dumps(make()))
            finally:
                os._exit(0)
        os.close(ours)
        with open(theirs, "rb") as answer:
            made.append(pickle.loads(answer.read()))
        os.waitpid(child, 0)
    made.append(make())
    objects, first, second, random = zip(*made, strict=True)
    assert objects[0].random == objects[-1].random, "the parent keeps its own"
    assert len({each.random for each in objects}) == 21
    assert all(a < b for a, b in zip(first, second, strict=True))
    assert first[-1] > second[0], "the parent continues from its last ID"
    # No two children have the same bits below the time.
    assert len({each.int & (1 << 62) - 1 for each in first + second + random}) == 3 * len(made)
