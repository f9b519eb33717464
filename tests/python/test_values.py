"""Values: equality, order, unpacking, copies, pickles; IDs and times in other forms."""

import concurrent.futures
import copy
import itertools
import multiprocessing
import pickle
import uuid
from datetime import UTC, datetime, timedelta, timezone

import frazil
import pandas
import pytest
from conftest import at, open_manual
from test_generator import in_new_process

TWITTER = frazil.Layout("twitter")
KNOWN = 1541815603606036480
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def copies(value):
    return [copy.copy(value), copy.deepcopy(value), *(pickle.loads(pickle.dumps(value, protocol)) for protocol in PROTOCOLS)]


def test_layouts_and_parts_are_values():
    own = frazil.Layout("time:41@1ms business:4 machine:6 sequence:12 epoch:2025-01-01")
    for value in (TWITTER, own, TWITTER.decode(KNOWN), own.decode(7)):
        for again in copies(value):
            assert (type(again), again, hash(again), repr(again)) == (type(value), value, hash(value), repr(value))
    assert TWITTER.decode(1) != frazil.Layout("discord").decode(1)


def test_layouts_of_specs():
    """`Layout.of` reads a spec like the constructor, but opens nothing."""
    assert frazil.Layout.of("twitter datacenter=1 worker=7") == TWITTER
    assert frazil.Layout.of("twitter", store="redis://127.0.0.1:1/0") == TWITTER
    own = "time:41@1ms business:4 machine:6 sequence:12 epoch:2025-01-01"
    assert frazil.Layout.of(layout=own, fields={"business": 3, "machine": 7}) == frazil.Layout(own)
    assert frazil.Layout.of("standard node=1", epoch="2020-01-01").epoch == datetime(2020, 1, 1, tzinfo=UTC)
    for line, error in {
        "twitter": frazil.errors.NodeMissingError,
        "standard node=1024": frazil.errors.OutOfRangeError,
        "standard nod=1": frazil.errors.UnknownKeyError,
        "standard store=nowhere": frazil.errors.SpecError,
        "standard node=1 start=": frazil.errors.SpecError,
    }.items():
        with pytest.raises(error):
            frazil.Layout.of(line)
    with pytest.raises(frazil.errors.NodeMissingError, match="FRAZIL is not set"):
        frazil.Layout.of()


def test_parts_in_order():
    ids = [0, 1, 4096, KNOWN, KNOWN + 1, 2**63 - 1]
    parts = [TWITTER.decode(id) for id in reversed(ids)]
    assert [each.id for each in sorted(parts)] == ids
    for a, b in itertools.pairwise(sorted(parts)):
        assert a < b and a <= b and b > a and b >= a and a != b and not a >= b
    same = TWITTER.decode(KNOWN)
    assert same <= TWITTER.decode(KNOWN) and not same < TWITTER.decode(KNOWN)
    for other in (frazil.Layout("discord").decode(KNOWN), KNOWN, None):
        assert same != other
        with pytest.raises(TypeError):
            same < other  # noqa: B015


def test_parts_taken_apart():
    parts = TWITTER.decode(KNOWN)
    assert parts._asdict() == {"time": parts.time, "datacenter": 11, "worker": 26, "sequence": 0, "tick": 367597485448}
    assert list(parts._asdict()) == ["time", "datacenter", "worker", "sequence", "tick"]
    match parts:
        case frazil.Parts(time, {"worker": worker}, sequence, tick, datacenter=datacenter):
            assert (time, worker, sequence, tick, datacenter) == (parts.time, 26, 0, parts.tick, 11)
        case _:
            pytest.fail("it matches")


def test_leases_are_values(tmp_path):
    ids = frazil.Snowflake("standard", store=f"file:{tmp_path}", namespace="values")
    lease = ids.lease
    for again in copies(lease):
        assert type(again) is frazil.Lease and again == lease and hash(again) == hash(lease) and repr(again) == repr(lease)
        assert (again.node, again.bound, again.store, again.namespace) == (lease.node, lease.bound, lease.store, lease.namespace)
        assert (again.healthy, again.last_error, again.left) == (True, None, None)
    assert lease != 7
    troubled = pickle.loads(pickle.dumps(lease).replace(b"values", b"valueS"))
    assert troubled.namespace == "valueS" and troubled != lease


def test_a_lease_keeps_its_error():
    said = frazil._frazil._lease(7, None, "file:/x", "a", False, (401, "away"), 3)
    (again,) = {repr(each): each for each in copies(said)}.values()
    assert type(again.last_error) is frazil.errors.StoreUnreachableError and str(again.last_error) == "away"
    assert (again.healthy, again.left, again.bound, again == said) == (False, 3, None, True)


def test_a_copy_is_the_same_generator(node, namespace):
    for ids in (frazil.Snowflake("standard", node=node), frazil.Segment("orders", store="memory", namespace=namespace)):
        assert copy.copy(ids) is ids and copy.deepcopy([ids])[0] is ids


def test_a_pickle_opens_the_same(tmp_path, node, namespace):
    store = f"file:{tmp_path}"
    fixed = frazil.Snowflake("standard", node=node)
    leased = frazil.Snowflake("twitter", store=store, namespace=namespace)
    orders = frazil.Segment("orders", store=store, namespace=namespace)
    ring = frazil.Buffered("standard", node=node, size=16)
    for ids in (fixed, leased, orders, ring):
        before = ids.batch(3)
        for protocol in PROTOCOLS:
            again = pickle.loads(pickle.dumps(ids, protocol))
            assert type(again) is type(ids) and again.spec == ids.spec
            assert not set(again.batch(3)) & set(before)
    # Both handles share one generator, so they issue different IDs.
    again = pickle.loads(pickle.dumps(fixed))
    assert fixed.next() < again.next() < fixed.next()


def test_another_process_may_open_a_pickled_handle_of_a_store(tmp_path):
    ids = frazil.Snowflake("standard", store=f"file:{tmp_path}")
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        theirs = pool.starmap(frazil.Snowflake.batch, [(ids, 100)] * 8)
    minted = [*ids.batch(100), *itertools.chain.from_iterable(theirs)]
    assert len(set(minted)) == len(minted) == 900


@pytest.mark.parametrize("line", ["game16 server=7", "standard store=memory", "segment"])
def test_another_process_may_not_open_the_same_number(line):
    ids = frazil.Segment("orders", store="memory") if line == "segment" else frazil.Snowflake(line)
    pickled = pickle.dumps(ids)
    assert pickle.loads(pickled).next() > 0
    code = f"""
import pickle, frazil
again = pickle.loads({pickled!r})
for use in (again.next, again, again.__next__, lambda: again.batch(3), lambda: again.spec, again.__enter__):
    try:
        use()
    except frazil.errors.ForkedError as error:
        print(error)
assert isinstance(again, frazil.Snowflake | frazil.Numbers) and not hasattr(type(again), "close")
assert type(pickle.loads(pickle.dumps(again))) is type(again)
"""
    said = in_new_process(code).splitlines()
    assert len(said) == 6 and all("comes from another process" in line and "store=local" in line for line in said)


def handles(node, namespace):
    return [
        frazil.Snowflake("standard", node=node),
        frazil.Segment("orders", store="memory", namespace=namespace),
        frazil.Buffered("standard", node=node, size=16),
    ]


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_FORKED_where_a_pool_uses_a_handle(node, namespace, start):
    """The use raises the error, not the unpickling: that would end the pool's worker, and the call would get no answer."""
    for ids in handles(node, namespace):
        with multiprocessing.get_context(start).Pool(1) as pool:
            calls = [pool.apply_async(use, given) for use, given in [(ids.next, ()), (ids.batch, (3,)), (next, (ids,)), (ids, ())]]
            for call in calls:
                with pytest.raises(frazil.errors.ForkedError, match="share a store"):
                    call.get(timeout=60)
            # A handle that the worker sends back works in this process again.
            again = pool.apply(copy.copy, (ids,))
            assert type(again) is type(ids) and again.next() > 0
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context(start)) as pool:
        with pytest.raises(frazil.errors.ForkedError):
            pool.submit(ids.next).result(60)
        assert pool.submit(abs, -1).result(60) == 1, "the pool is not broken"


def test_a_handle_opens_at_its_use_once_the_reason_is_gone(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_STORE", f"file:{tmp_path}")
    pickled = pickle.dumps(frazil.Snowflake("standard", store="env:SHOP_STORE"))
    monkeypatch.delenv("SHOP_STORE")
    ids = pickle.loads(pickled)
    with pytest.raises(frazil.errors.SpecError, match="SHOP_STORE"):
        ids.next()
    assert "not open" in repr(ids) and copy.copy(ids) is ids and copy.deepcopy(ids) is ids
    monkeypatch.setenv("SHOP_STORE", f"file:{tmp_path}")
    with ids as opened:
        assert ids.next() < opened.next() < next(ids) < ids() and ids.node == opened.node
    with pytest.raises(frazil.errors.ClosedError):
        ids.next()
    with pytest.raises(AttributeError):
        ids.mint  # noqa: B018


def test_secrets_are_not_pickled(monkeypatch):
    monkeypatch.setenv("SHOP_STORE", "memory")
    named = frazil.Segment("orders", store="env:SHOP_STORE", namespace="named")
    pickled = pickle.dumps(named)
    assert b"env:SHOP_STORE" in pickled and pickle.loads(pickled).next() > 0
    # A ring and tickets open without the store. A segment's open contacts it.
    photos = frazil.Tickets("photos", store=["mysql://me:secret@127.0.0.1:1/a", "mysql://me:secret@127.0.0.1:1/b"])
    for _ in (1, 2):
        with pytest.raises(frazil.errors.SpecError, match="store=env:NAME") as raised:
            pickle.dumps(photos)
        assert "secret@" not in str(raised.value) and "mysql://***@127.0.0.1:1/a" in str(raised.value)


def test_a_state_of_its_own_is_not_pickled():
    with pytest.raises(frazil.errors.SpecError, match="detached"):
        pickle.dumps(open_manual())
    ids = open_manual()
    assert copy.copy(ids) is ids


def test_ids_as_text():
    ids = open_manual()
    for given in (str(KNOWN), frazil.format_id(KNOWN, "decimal")):
        assert TWITTER.decode(given) == TWITTER.decode(KNOWN)
        assert frazil.format_id(given, "hex") == "1565a11f6217a000"
        assert frazil.parse_id(given) == frazil.parse_id(given, "decimal") == KNOWN
    last = ids.layout.max_id(at(1735689600000 + 5))
    ids.set_time(at(1735689600000 + 10))
    ids.observe(str(last))
    assert ids.next() > last


def test_times_as_options(tmp_path):
    hour = timezone(timedelta(hours=1))
    for epoch in (datetime(2025, 3, 1, tzinfo=UTC), datetime(2025, 3, 1, 1, tzinfo=hour), 1740787200000, "2025-03-01"):
        ids = frazil.Snowflake("standard", node=1, epoch=epoch, detached=True, clock="manual")
        assert ids.layout.epoch == datetime(2025, 3, 1, tzinfo=UTC)
    with pytest.raises(frazil.errors.WrongTypeError, match="naive"):
        frazil.Snowflake("standard", node=1, epoch=datetime(2025, 3, 1))
    # NaT, a missing time, is a datetime, too.
    for call in (TWITTER.min_id, frazil.uuid.uuid7, lambda time: frazil.Snowflake("standard", node=1, epoch=time)):
        with pytest.raises(frazil.errors.WrongTypeError, match="an aware datetime, not NaTType"):
            call(pandas.NaT)
    assert TWITTER.min_id(pandas.Timestamp("2025-03-01", tz="UTC")) == TWITTER.min_id(datetime(2025, 3, 1, tzinfo=UTC))
    with pytest.raises(frazil.errors.SpecError, match="finer than a millisecond"):
        frazil.Snowflake("standard", node=1, epoch=datetime(2025, 3, 1, 0, 0, 0, 1, tzinfo=UTC))
    for edge in (datetime.min.replace(tzinfo=hour), datetime.max.replace(tzinfo=UTC)):
        with pytest.raises(frazil.FrazilError):
            frazil.Snowflake("standard", node=1, epoch=edge)
    with pytest.raises(frazil.errors.WrongTypeError, match="epoch must be a str, an int of Unix milliseconds, an aware datetime"):
        frazil.Snowflake("standard", node=1, epoch=timedelta(1))

    store = f"file:{tmp_path}"
    ids = frazil.Snowflake("standard", store=store, window=timedelta(seconds=9), renew=timedelta(milliseconds=1500), lag=timedelta(0))
    assert ids.spec.endswith("window=9000ms renew=1500ms lag=0ms")
    orders = frazil.Segment("orders", store=store, wait=timedelta(seconds=2))
    assert "wait=2000ms" in orders.spec and orders.next() == 1
    for bad in (
        pandas.Timedelta(1, "ns"),
        timedelta(seconds=-1),
        timedelta(microseconds=500),
        timedelta(microseconds=-1),
        timedelta.max,
        timedelta.min,
    ):
        with pytest.raises((frazil.errors.SpecError, frazil.errors.OutOfRangeError), match="lag="):
            frazil.Snowflake("standard", node=1, lag=bad)
    with pytest.raises(frazil.errors.WrongTypeError, match="worker must be"):
        frazil.Snowflake("leaf", worker=timedelta(seconds=7))
    with pytest.raises(frazil.errors.SpecError, match='lag="0.5" is not a duration'):
        frazil.Snowflake("standard", node=1, lag=0.5)
    with pytest.raises(frazil.errors.WrongTypeError, match="lag must be a str, a timedelta or None, not list"):
        frazil.Snowflake("standard", node=1, lag=[])


def test_own_fields():
    layout = "time:41@1ms business:4 machine:6 sequence:12 epoch:2025-01-01"
    ids = frazil.Snowflake(layout=layout, fields={"business": 3, "machine": 7}, detached=True, clock="manual")
    assert ids.fields == {"business": 3, "machine": 7}
    same = frazil.Snowflake(layout=frazil.Layout(layout), fields={"business": 3}, machine=7, detached=True, clock="manual")
    assert same.fields == ids.fields and same.layout == ids.layout
    assert frazil.Snowflake("leaf", worker=1, fields=None, detached=True).node == 1
    with pytest.raises(frazil.errors.SpecError, match="machine is given twice"):
        frazil.Snowflake(layout=layout, fields={"business": 3, "machine": 7}, machine=7)
    with pytest.raises(frazil.errors.UnknownKeyError, match="fields: store is a key, and not a node field: pass store= instead"):
        frazil.Snowflake(layout=layout, fields={"store": "memory"})
    with pytest.raises(frazil.errors.UnknownKeyError):
        frazil.Snowflake("leaf", fields={"wroker": 1})
    for bad in (7, "worker=1", [("worker", 1)], {1: 1}):
        with pytest.raises(frazil.errors.WrongTypeError, match="field"):
            frazil.Snowflake("leaf", fields=bad)


def test_uuids_of_a_time():
    time = datetime(2022, 2, 22, 19, 22, 22, 999_999, tzinfo=UTC)
    low, high = frazil.uuid.uuid7_min(time), frazil.uuid.uuid7_max(time)
    assert str(low).endswith("-7000-8000-000000000000") and str(high).endswith("-7fff-bfff-ffffffffffff")
    made = {frazil.uuid.uuid7(time) for _ in range(1000)}
    assert len(made) == 1000 and all(low < each < high and type(each) is uuid.UUID and each.version == 7 for each in made)
    assert {frazil.uuid.uuid_time(each) for each in (*made, low, high)} == {time.replace(microsecond=999_000)}
    assert frazil.uuid.uuid7_max(time - timedelta(milliseconds=1)) < low
    assert frazil.uuid.uuid7() < frazil.uuid.uuid7(None) < frazil.uuid.uuid7()
    for call in (frazil.uuid.uuid7, frazil.uuid.uuid7_min, frazil.uuid.uuid7_max):
        with pytest.raises(frazil.errors.BeforeEpochError):
            call(at(-1))
        for bad in ("2025-01-01", 0, datetime(2025, 1, 1)):
            with pytest.raises(frazil.errors.WrongTypeError, match="time"):
                call(bad)
