"""Generators."""

import array
import asyncio
import ctypes
import inspect
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import frazil
import numpy
import pytest
from conftest import STANDARD_EPOCH_MS, ascends, at, open_manual

WIDTHS = {"decimal": 19, "base62": 11, "base32": 13, "hex": 16, "check": 14}


def in_new_process(code):
    """Runs a program with this interpreter. If it fails, the test fails."""
    environment = {name: value for name, value in os.environ.items() if name != "FRAZIL"}
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_next_increases(node):
    ids = frazil.Snowflake("standard", node=node)
    before = datetime.now(UTC)
    minted = [mint() for _ in range(1000) for mint in (ids.next, ids, ids.__next__)]
    after = datetime.now(UTC)
    assert ascends(minted)
    # By default a generator may stamp up to a second ahead, if the clock goes back.
    for parts in map(ids.layout.decode, minted):
        assert parts.node == node
        assert before - timedelta(milliseconds=1) <= parts.time <= after + timedelta(seconds=1)


def test_batch_and_fill(node):
    ids = frazil.Snowflake("standard", node=node)
    batch = ids.batch(10_000)
    assert len(batch) == 10_000 and ascends(batch)

    words = array.array("q", bytes(8 * 10_000))
    assert ids.fill(words) == 10_000
    table = numpy.zeros((10, 100), dtype=numpy.int64)
    assert ids.fill(table) == 1000
    assert ids.fill(memoryview(words)[:3]) == 3
    foreign = (ctypes.c_int64 * 5)()
    assert ids.fill(foreign) == 5
    assert ascends([batch[-1], *words[3:], *table.flat, *words[:3], *foreign])

    stopped = open_manual()
    short = array.array("q", bytes(8 * 5000))
    with pytest.raises(frazil.errors.WouldBlockError) as raised:
        stopped.fill(short)
    written = raised.value.written
    assert 4080 < written <= 4096
    assert ascends(short[:written]) and set(short[written:]) == {0}
    assert raised.value.retry_after == pytest.approx(0.001)
    with pytest.raises(frazil.errors.WouldBlockError):
        stopped.batch(1)


def test_zero_length(node):
    ids = frazil.Snowflake("standard", node=node)
    assert ids.batch(0) == []
    assert ids.fill(array.array("q")) == 0
    assert ids.fill(numpy.zeros(0, dtype=numpy.int64)) == 0
    assert ids.fill(numpy.zeros((3, 0), dtype=numpy.int64)) == 0


def test_iteration(node):
    ids = frazil.Snowflake("standard", node=node)
    assert iter(ids) is ids
    minted = [id for _, id in zip(range(100), ids)]
    assert ascends([*minted, next(ids)])


def test_async_forms(node):
    async def main():
        # With a tick of 1 s, neither the constructor nor `next` may wait for the next tick in an event loop.
        line = "layout='time:31@1s node:10 sequence:1 epoch:2025-01-01' start=zero"
        while time.time() % 1 > 0.8:
            await asyncio.sleep(0.05)
        with pytest.raises(frazil.errors.WouldBlockError) as raised:
            frazil.Snowflake(line, node=node)
        assert raised.value.retry_after <= 1
        assert "use await Snowflake.aopen(...)" in str(raised.value)

        ids = await frazil.Snowflake.aopen(line, node=node)
        minted = [await ids.anext() for _ in range(2)]
        # One tick does not have that many IDs.
        with pytest.raises(frazil.errors.WouldBlockError) as raised:
            for _ in range(100):
                minted.append(ids.next())
        assert 0 < raised.value.retry_after <= 1

        turns = 0

        async def count():
            nonlocal turns
            while True:
                await asyncio.sleep(0.01)
                turns += 1

        counting = asyncio.create_task(count())
        minted.append(await ids.anext())
        minted += await ids.abatch(3)
        counting.cancel()
        assert ascends(minted)
        assert turns > 10, "the loop ran while the calls waited"

        assert await ids.abatch(0) == []
        with pytest.raises(frazil.errors.WouldBlockError):
            await open_manual(unix_ms=STANDARD_EPOCH_MS).abatch(5000)
        together = await asyncio.gather(*(ids.anext() for _ in range(3)))
        assert len(set(together)) == 3

    asyncio.run(main())


def test_a_loop_is_held_up_for_2_ms_at_most(node):
    async def main():
        ids = frazil.Snowflake("standard", node=node)
        # At 4096 IDs per ms, the whole fill would take a quarter of a second, in waits of less than 1 ms each.
        buffer = array.array("q", bytes(8 * 1_000_000))
        with pytest.raises(frazil.errors.WouldBlockError) as raised:
            ids.fill(buffer)
        assert 0 < raised.value.written < 1_000_000
        assert ascends(buffer[: raised.value.written])
        assert len(await ids.abatch(20_000)) == 20_000

    asyncio.run(main())


def test_new_text():
    ids = open_manual()
    for form, width in WIDTHS.items():
        texts = [ids.text(form) for _ in range(100)]
        assert {len(text) for text in texts} == {width}
        assert texts == sorted(texts)
        assert ascends([frazil.parse_id(text, form) for text in texts])
        assert [frazil.format_id(frazil.parse_id(text, form), form) for text in texts] == texts
        # A name that is not a literal of the program.
        assert len(ids.text("".join(form))) == len(frazil.format_id(1, "".join(form))) == width
    with pytest.raises(TypeError):
        ids.text()
    with pytest.raises(TypeError):
        ids.text("hex", "hex")


def test_min_max(node):
    ids = frazil.Snowflake("standard", node=node)
    id = ids.next()
    time = ids.layout.decode(id).time
    layout = ids.layout
    assert layout.min_id(time) <= id <= layout.max_id(time)
    # Half a millisecond later, and in another time zone, it is still the same tick.
    later = (time + timedelta(microseconds=500)).astimezone(timezone(timedelta(hours=5, minutes=45)))
    assert layout.min_id(later) == layout.min_id(time)
    assert layout.max_id(time) + 1 == layout.min_id(time + timedelta(milliseconds=1))
    for query in (layout.min_id, layout.max_id):
        with pytest.raises(frazil.errors.BeforeEpochError):
            query(layout.epoch - timedelta(milliseconds=1))
        with pytest.raises(frazil.errors.LayoutExpiredError):
            query(layout.expires_at)
    early = frazil.Layout("time:41@1ms node:10 sequence:12 epoch:1950-06-01")
    before_1970 = datetime(1960, 1, 1, 0, 0, 0, 999_999, tzinfo=UTC)
    assert early.decode(early.min_id(before_1970)).time == before_1970.replace(microsecond=999_000)


def test_parts():
    parts = frazil.Layout("twitter").decode(1541815603606036480)
    assert repr(parts) == (
        "Parts(time=datetime.datetime(2022, 6, 28, 16, 7, 40, 105000, tzinfo=datetime.timezone.utc), "
        "datacenter=11, worker=26, sequence=0, tick=367597485448)"
    )
    assert parts.time.tzinfo is UTC
    assert parts.fields == {"datacenter": 11, "worker": 26}
    assert parts.node == 11 << 5 | 26
    pair = frazil.Layout("time:41@1ms region:2 node:8 sequence:12 epoch:2025-01-01")
    assert pair.decode(pair.compose(datetime(2025, 2, 1, tzinfo=UTC), region=1, node=5, sequence=0)).node == 5
    again = frazil.Layout("twitter").decode(1541815603606036480)
    assert parts == again and hash(parts) == hash(again)
    assert parts != frazil.Layout("twitter").decode(1541815603606036481)
    assert parts != "parts" and frazil.Layout("twitter") != "twitter"
    assert not parts.looks_rounded
    assert frazil.Layout("twitter").decode(1541815603606036500).looks_rounded
    with pytest.raises(AttributeError, match="no field machine"):
        assert parts.machine
    with pytest.raises(AttributeError):
        parts.worker = 1


def test_manual_clock(node):
    ids = open_manual(unix_ms=None)
    with pytest.raises(frazil.errors.ClockNotSetError):
        ids.next()
    ids.set_time(at(STANDARD_EPOCH_MS + 5))
    assert ids.layout.decode(ids.next()).tick == 5
    ids.set_time(at(STANDARD_EPOCH_MS + 9))
    assert ids.layout.decode(ids.next()).time == at(STANDARD_EPOCH_MS + 9)
    strict = open_manual("twitter datacenter=1 worker=1", unix_ms=STANDARD_EPOCH_MS + 9)
    strict.next()
    strict.set_time(at(STANDARD_EPOCH_MS))
    with pytest.raises(frazil.errors.ClockBackError) as raised:
        strict.next()
    assert raised.value.retry_after == pytest.approx(0.009)
    with pytest.raises(frazil.errors.SpecError, match="clock=manual"):
        frazil.Snowflake("standard", node=node).set_time(at(0))


def test_observe(node):
    ids = open_manual("standard node=1 start=zero", unix_ms=STANDARD_EPOCH_MS + 100_000)
    layout, now = ids.layout, STANDARD_EPOCH_MS + 100_000
    first = ids.next()
    assert ids.observe(0) is None
    assert ids.next() == first + 1
    theirs = layout.max_id(at(now + 1000))
    ids.observe(theirs)
    assert ids.observe(first) is None
    ids.set_time(at(now + 1001))
    assert theirs < ids.next() <= layout.max_id(at(now + 1001))
    with pytest.raises(frazil.errors.OutOfRangeError, match=r"id=\d+ .* 1001 ms ahead of the clock.*allow 1s"):
        ids.observe(layout.min_id(at(now + 2002)))
    with pytest.raises(frazil.errors.LayoutExpiredError):
        open_manual("standard", unix_ms=int(layout.expires_at.timestamp() * 1000) - 1, node=2).observe(2**63 - 1)
    with pytest.raises(frazil.errors.IdInvalidError, match="53"):
        open_manual("js53 node=1").observe(2**53)
    with pytest.raises(frazil.errors.ClockNotSetError):
        open_manual(unix_ms=None).observe(2**40)
    real = frazil.Snowflake("standard", node=node, rollback="ahead:1h", exhausted="ahead:1h")
    theirs = layout.max_id(datetime.now(UTC) + timedelta(minutes=1))
    real.observe(theirs)
    with ThreadPoolExecutor() as pool:
        assert all(pool.map(lambda _: real.next() > theirs, range(100)))


def test_burst_credit():
    ids = open_manual("game server=4711")
    now = STANDARD_EPOCH_MS + 100_000
    ids.set_time(at(now))
    assert ids.credit() >= 65_536
    loot = array.array("q", bytes(8 * 65_536))
    assert ids.fill(loot) == 65_536
    assert ascends(loot)
    assert ids.layout.decode(loot[-1]).time <= at(now)
    ids.batch(ids.credit())
    assert ids.credit() == 0
    with pytest.raises(frazil.errors.ExhaustedError):
        ids.next()


def test_registry(node):
    minted = [frazil.Snowflake("standard", node=node).next() for _ in range(1000)]
    assert ascends(minted)
    with pytest.raises(frazil.errors.ConflictError):
        frazil.Snowflake("standard", node=node, rollback="error")


def test_threads(node):
    ids = frazil.Snowflake("standard", node=node)
    minted = [[] for _ in range(4)]

    def work(mine):
        buffer = array.array("q", bytes(8 * 500))
        for _ in range(20):
            mine += [ids.next() for _ in range(200)] + ids.batch(300)
            ids.fill(buffer)
            mine += buffer

    threads = [threading.Thread(target=work, args=(mine,)) for mine in minted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(map(ascends, minted))
    assert len(set().union(*minted)) == 4 * 20 * 1000


def test_fork():
    in_new_process("""
import os, sys, frazil
ids = frazil.Snowflake("standard", node=1)
leased = frazil.Snowflake("standard", store="memory", namespace="fork")
last = ids.next()
child = os.fork()
if child == 0:
    try:
        for attempt in (ids.next, ids, lambda: ids.batch(2), lambda: frazil.Snowflake("standard", node=1), leased.next):
            try:
                attempt()
            except frazil.errors.ForkedError:
                continue
            os._exit(1)
        frazil.Snowflake("standard", node=2).next()
    except BaseException:
        os._exit(2)
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert ids.next() > last
""")


def test_memory_store(namespace):
    line = "layout='time:41@1ms node:1 sequence:12 epoch:2025-01-01' store=memory window=400ms renew=100ms rollback=error"
    first = frazil.Snowflake(line, namespace=namespace, node=0)
    second = frazil.Snowflake(line, namespace=namespace)
    assert {first.node, second.node} == {0, 1}
    with pytest.raises(frazil.errors.NoFreeNodeError, match="all 2 node numbers"):
        frazil.Snowflake(line, namespace=namespace, detached=True)
    with pytest.raises(frazil.errors.NodeInUseError):
        frazil.Snowflake(line, namespace=namespace, node=0, detached=True)
    with pytest.raises(frazil.errors.LayoutMismatchError):
        frazil.Snowflake("standard store=memory lease=disposable", namespace=namespace)
    last = first.next()
    first.close()
    assert second.fields == {"node": 1}
    before = second.next()
    second.release_node()
    assert second.next() > before
    third = frazil.Snowflake(line, namespace=namespace, detached=True)
    assert third.node != second.node
    assert third.next() > last
    with pytest.raises(frazil.errors.SpecError, match="release_node"):
        open_manual().release_node()


def test_environment(monkeypatch, node):
    with pytest.raises(frazil.errors.NodeMissingError, match="FRAZIL"):
        frazil.Snowflake()
    monkeypatch.setenv("FRAZIL", f"leaf worker={node}")
    assert frazil.Snowflake().spec == f"leaf worker={node}"
    monkeypatch.setenv("FRAZIL_TEST_WORKER", str(node))
    ids = frazil.Snowflake("leaf worker=env:FRAZIL_TEST_WORKER")
    assert ids.fields == {"worker": node}
    assert ids.spec == "leaf worker=env:FRAZIL_TEST_WORKER"
    # With any option, FRAZIL is not read.
    with pytest.raises(frazil.errors.NodeMissingError):
        frazil.Snowflake(start="zero")


def test_options(node):
    by_line = frazil.Snowflake(f"twitter datacenter=2 worker={node % 32} start=random:5 detached=true")
    by_options = frazil.Snowflake("twitter", datacenter=numpy.int64(2), worker=node % 32, start="random:5", detached=True, store=None)
    assert by_line.spec == by_options.spec
    layout = frazil.Layout("time:41@1ms business:4 machine:6 sequence:12 epoch:2025-01-01")
    mixed = frazil.Snowflake(layout=layout, business=3, machine=1, detached=True, clock="manual")
    assert mixed.layout == layout
    assert mixed.fields == {"business": 3, "machine": 1}
    with pytest.raises(frazil.errors.SpecError, match="worker is given twice"):
        frazil.Snowflake("twitter datacenter=1 worker=7", worker=7)
    with pytest.raises(frazil.errors.UnknownKeyError, match="wroker"):
        frazil.Snowflake("twitter", datacenter=1, wroker=7)


def test_with_closes(node):
    with frazil.Snowflake("standard", node=node) as ids:
        ids.next()
    with pytest.raises(frazil.errors.ClosedError):
        ids.next()


def test_a_bound_method_keeps_its_generator(node):
    mint = frazil.Snowflake("standard", node=node).next
    assert ascends([mint() for _ in range(100)])


def test_signatures_are_readable():

    assert str(inspect.signature(frazil.Snowflake.next)) == "(self, /, *, timeout=None)"
    assert str(inspect.signature(frazil.Snowflake.text)) == "(self, format, /)"
    assert str(inspect.signature(frazil.Snowflake.batch)) == "(self, count, /, *, timeout=None)"
    assert "next ID" in frazil.Snowflake.next.__doc__


def test_EXHAUSTED_says_how_many_are_written_and_what_lets_a_burst_through():
    line, buffer = "standard store=memory detached=true exhausted=error", array.array("q", bytes(8 * 20_000))
    with pytest.raises(frazil.errors.ExhaustedError) as refused:
        frazil.Snowflake(line).fill(buffer)
    written = refused.value.written
    assert 0 < written < len(buffer) and str(refused.value).endswith(f"; {written} of the burst are written")
    assert "give exhausted=wait, or give a longer lag=D" in str(refused.value)
    # A batch returns nothing.
    with pytest.raises(frazil.errors.ExhaustedError) as refused:
        frazil.Snowflake(line).batch(len(buffer))
    assert refused.value.written == 0 and "written" not in str(refused.value)
    # Both remedies.
    assert frazil.Snowflake(line.replace("error", "wait")).fill(buffer) == len(buffer)
    assert frazil.Snowflake(f"{line} lag=1s namespace=burst").fill(buffer) == len(buffer)
