"""Segments, tickets and rings: numbers that a thread prepares ahead."""

import array
import asyncio
import contextlib
import gc
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
import weakref

import frazil
import numpy
import pytest
from conftest import STANDARD_EPOCH_MS, ascends, at
from test_lease import NOT_BLOCKED_S, SLOW, silenced

FOUR = "layout='time:41@1ms node:4 sequence:12 epoch:2025-01-01'"


def in_time(condition, seconds=60):
    """Waits for a condition, and returns whether it became true."""
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.005)
    return condition()


def start(code):
    """Starts a program with this interpreter, and captures its output."""
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def run(code):
    """Runs a program with this interpreter."""
    program = start(code)
    printed, _ = program.communicate(timeout=120)
    assert program.returncode == 0
    return printed


def refused(kind, call, *says):
    with pytest.raises(kind) as raised:
        call()
    assert all(word in str(raised.value) for word in says), str(raised.value)
    return raised.value


def swappable(path):
    """Makes a store's folder that `swap` can replace."""
    first = path.with_suffix(".first")
    first.mkdir()
    path.symlink_to(first)
    return path


def swap(path, other):
    """Replaces a store's folder with another folder or a file, atomically, because a thread may be fetching."""
    new = path.with_suffix(".new")
    new.symlink_to(other)
    new.rename(path)


def take_away(path):
    """Replaces a store's folder with a file."""
    file = path.with_suffix(".file")
    file.write_text("not a folder")
    swap(path, file)


@contextlib.contextmanager
def silent_server():
    """Yields the URL of a store that accepts connections but never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"redis://127.0.0.1:{listening.getsockname()[1]}/0"


def test_segment(namespace):
    orders = frazil.Segment("orders", store="memory", namespace=namespace, step=100, start=1000)
    assert isinstance(orders, frazil.Numbers) and not isinstance(orders, frazil.Snowflake)
    assert (orders.prepared, orders.last_error) == (100, None)
    assert [orders.next(), orders(), next(orders), orders.__next__()] == [1000, 1001, 1002, 1003]
    assert orders.batch(7) == list(range(1004, 1011))
    # After a tenth of the range, the next range is fetched.
    assert in_time(lambda: orders.prepared >= 100)
    assert (orders.batch(0), orders.fill(array.array("q"))) == ([], 0)
    words, table = array.array("q", bytes(8 * 300)), numpy.zeros((4, 10), dtype=numpy.int64)
    assert (orders.fill(words), orders.fill(table), orders.fill(memoryview(words)[:2])) == (300, 40, 2)
    assert [*words[2:], *table.flat, *words[:2]] == list(range(1013, 1353))
    assert iter(orders) is orders
    assert [number for _, number in zip(range(3), orders)] == [1353, 1354, 1355]
    assert orders.spec == frazil.Segment(f"orders start=1000 step=100 namespace={namespace} store=memory").spec
    assert repr(orders) == f"Segment({orders.spec})"

    # Another handle, opened from the line, draws its own ranges.
    other = frazil.Segment(orders.spec)
    mine, theirs = [], []
    for _ in range(50):
        mine += orders.batch(20)
        theirs += other.batch(20)
    assert ascends(mine) and ascends(theirs) and not set(mine) & set(theirs)

    odd = frazil.Segment("parity", store="memory", namespace=namespace + "-odd", increment=2, offset=1, step=3)
    even = frazil.Segment("parity", store=["memory"], namespace=namespace + "-even", increment=2, offset=[2], start=3)
    assert (odd.batch(5), even.batch(3)) == ([1, 3, 5, 7, 9], [4, 6, 8])


def test_segment_stores(tmp_path):
    folders = [tmp_path / "a", swappable(tmp_path / "b")]
    stores = [f"file:{folder}" for folder in folders]
    segment = frazil.Segment("orders", store=stores, step=10)
    assert segment.spec.endswith(f'store="{stores[0]} {stores[1]}"')
    numbers = segment.batch(2_000)
    assert {number % 2 for number in numbers} == {0, 1}
    assert segment.last_error is None
    # The same stores as one text, with the same offsets. In another order, each store would have another store's numbers.
    again = frazil.Segment("orders", store=" ".join(stores), offset=(1, 2), step=10)
    numbers += again.batch(100)
    refused(frazil.errors.SegmentMismatchError, lambda: frazil.Segment("orders", store=stores, offset=[2, 1]).batch(10_000), "offset")
    take_away(folders[1])
    numbers += segment.batch(200_000)
    assert len(set(numbers)) == 202_100
    assert {number % 2 for number in numbers[-10_000:]} == {1}
    assert isinstance(segment.last_error, frazil.FrazilError) and stores[1] in str(segment.last_error)

    folders = [swappable(tmp_path / "ta"), tmp_path / "tb"]
    tickets = frazil.Tickets("photos", store=[f"file:{folder}" for folder in folders])
    assert isinstance(tickets, frazil.Numbers) and tickets.prepared == 0
    numbers = [tickets.next() for _ in range(10)] + tickets.batch(10)
    assert all((a - b) % 2 for a, b in zip(numbers[::2], numbers[1::2])), numbers
    assert sorted(numbers) == list(range(1, 21))
    take_away(folders[0])
    assert [next(tickets) for _ in range(5)] == [22, 24, 26, 28, 30]
    assert "ta" in str(tickets.last_error)


def test_each_store_may_be_a_variable(tmp_path, monkeypatch):
    stores = [f"file:{tmp_path / name}" for name in ("a", "b", "c")]
    monkeypatch.setenv("FRAZIL_TEST_FIRST", stores[0])
    monkeypatch.setenv("FRAZIL_TEST_OTHERS", " ".join(stores[1:]))
    monkeypatch.setenv("FRAZIL_TEST_OFFSETS", "1 2 3")
    segment = frazil.Segment("orders", store=["env:FRAZIL_TEST_FIRST", "env:FRAZIL_TEST_OTHERS"], offset="env:FRAZIL_TEST_OFFSETS", step=1)
    assert len(set(segment.batch(30))) == 30
    assert segment.spec.endswith('store="env:FRAZIL_TEST_FIRST env:FRAZIL_TEST_OTHERS"'), segment.spec
    assert all((tmp_path / name).is_dir() for name in ("a", "b", "c"))
    refused(
        frazil.errors.SpecError,
        lambda: frazil.Segment("orders", store=[stores[0], "env:FRAZIL_TEST_NONE"]),
        "store=env:FRAZIL_TEST_NONE: there is no",
    )


def test_segment_errors(tmp_path, namespace, monkeypatch):
    both = f"memory file:{tmp_path}/both"
    for line, kind, says in [
        ("", frazil.errors.SpecError, "tag"),
        ("store=memory", frazil.errors.SpecError, "tag"),
        ("or/ders store=memory", frazil.errors.SpecError, "tag"),
        ("t" * 65 + " store=memory", frazil.errors.SpecError, "tag"),
        ("orders", frazil.errors.SpecError, "store"),
        ("orders store=''", frazil.errors.SpecError, "store"),
        ("orders store=nowhere", frazil.errors.SpecError, "nowhere"),
        ("orders store='memory memory'", frazil.errors.SpecError, "twice"),
        ("orders store=memory step=0", frazil.errors.OutOfRangeError, "step=0"),
        ("orders store=memory step=-1", frazil.errors.OutOfRangeError, "step=-1"),
        ("orders store=memory step=many", frazil.errors.SpecError, "many"),
        ("orders store=memory start=9223372036854775808", frazil.errors.OutOfRangeError, "start=9223372036854775808"),
        ("orders store=memory increment=0", frazil.errors.OutOfRangeError, "increment=0"),
        ("orders store=memory increment=2 offset=3", frazil.errors.OutOfRangeError, "offset=3"),
        (f"orders store='{both}' offset='0 2'", frazil.errors.OutOfRangeError, "two stores"),
        (f"orders store='{both}' offset='1'", frazil.errors.SpecError, "one for each"),
        ("orders store=memory wait=soon", frazil.errors.SpecError, "wait"),
        ("orders store=memory namespace='two words'", frazil.errors.SpecError, "namespace"),
        ("orders store=memory table=leaf", frazil.errors.SpecError, "table=leaf"),
        ("orders store=memory table=orders", frazil.errors.SpecError, "leaf, tinyid"),
        ("orders store=memory worker=1", frazil.errors.UnknownKeyError, "worker"),
    ]:
        refused(kind, lambda line=line: frazil.Segment(line), says)
        refused(kind, lambda line=line: asyncio.run(frazil.Segment.aopen(line)), says)
    for options, kind, says in [
        ({"step": 0}, frazil.errors.OutOfRangeError, "step=0"),
        ({"step": 2**127}, frazil.errors.OutOfRangeError, "step"),
        ({"increment": 2, "offset": [3]}, frazil.errors.OutOfRangeError, "offset=3"),
        ({"offset": []}, frazil.errors.SpecError, "one for each"),
        ({"offset": [1.5]}, frazil.errors.OutOfRangeError, "offset=1.5"),
        ({"store": []}, frazil.errors.SpecError, "store"),
        ({"store": ["memory", 7]}, frazil.errors.SpecError, "7"),
    ]:
        refused(kind, lambda options=options: frazil.Segment("orders", **{"store": "memory", **options}), says)
    refused(frazil.errors.SpecError, lambda: frazil.Segment("orders store=memory", store="memory"), "store is given twice")
    refused(frazil.errors.SpecError, lambda: frazil.Tickets("photos", store="memory"), "two stores")
    refused(frazil.errors.SpecError, lambda: frazil.Tickets("photos", store=both, step=2), "step")
    # FRAZIL configures only generators.
    monkeypatch.setenv("FRAZIL", "standard node=1")
    refused(frazil.errors.SpecError, frazil.Segment, "tag")
    refused(frazil.errors.SpecError, frazil.Tickets, "tag")
    refused(frazil.errors.NodeMissingError, frazil.Buffered, "node")

    frazil.Segment("parity", store="memory", namespace=namespace, increment=2, offset=1).next()
    for other in ({"increment": 3, "offset": 1}, {"increment": 2, "offset": 2}, {}):
        refused(
            frazil.errors.SegmentMismatchError, lambda other=other: frazil.Segment("parity", store="memory", namespace=namespace, **other)
        )

    last = 2**63 - 1
    end = frazil.Segment("end", store="memory", namespace=namespace, step=10, start=last - 2)
    assert end.batch(3) == [last - 2, last - 1, last]
    refused(frazil.errors.SegmentExhaustedError, end.next, str(last))
    buffer = array.array("q", bytes(80))
    near = frazil.Segment("near", store="memory", namespace=namespace, start=last - 4)
    assert refused(frazil.errors.SegmentExhaustedError, lambda: near.fill(buffer)).written == 5
    assert buffer.tolist() == [*range(last - 4, last + 1), 0, 0, 0, 0, 0]
    with silent_server() as slow:
        refused(
            frazil.errors.SegmentExhaustedError,
            lambda: frazil.Segment("slow", store=slow, wait="200ms"),
            "slow",
            "no number arrived within 2",
        )

    # The store's folder is restored from a backup.
    folder, backup = swappable(tmp_path / "back"), tmp_path / "backup"
    segment = frazil.Segment("orders", store=f"file:{folder}", step=100, wait="2s")
    shutil.copytree(folder, backup)
    before = segment.batch(20)
    # Once the next range is prefetched, the thread is idle, so no write is in progress.
    while segment.prepared == 0:
        time.sleep(0.001)
    swap(folder, backup)

    def go_on():
        while True:
            assert segment.next() > before[-1]

    refused(frazil.errors.StoreChangedError, go_on, "frazil segment file:")
    assert refused(frazil.errors.StoreChangedError, lambda: segment.batch(3)).written == 0
    assert isinstance(segment.last_error, frazil.errors.StoreChangedError)


def test_segment_processes(tmp_path):
    store = f"file:{tmp_path}"
    mint = f"""
import frazil, json
orders = frazil.Segment("orders", store={store!r}, step=100)
print(json.dumps(orders.batch(10_000) + [orders.next() for _ in range(5_000)]))
"""
    programs = [start(mint) for _ in range(2)]
    orders = frazil.Segment("orders", store=store, step=100)
    minted = [orders.batch(15_000)]
    for program in programs:
        printed, _ = program.communicate(timeout=120)
        assert program.returncode == 0
        minted.append(json.loads(printed))
    assert all(ascends(mine) for mine in minted)
    assert len(set().union(*minted)) == 45_000

    # A child does not take its parent's prefetched numbers, even though both continue at once.
    answers = run(f"""
import frazil, json, os
orders = frazil.Segment("orders", store={store!r}, namespace="fork", step=50)
first = orders.batch(5)
pipes = []
for _ in range(2):
    theirs, ours = os.pipe()
    if os.fork() == 0:
        status = 1
        try:
            with os.fdopen(ours, "w") as out:
                json.dump([orders.next() for _ in range(1_000)] + orders.batch(1_000), out)
            status = 0
        finally:
            os._exit(status)
    os.close(ours)
    pipes.append(theirs)
minted = [first + [orders.next() for _ in range(1_000)]] + [json.load(os.fdopen(pipe)) for pipe in pipes]
for _ in pipes:
    _, status = os.wait()
    assert status == 0, status
print(json.dumps(minted))
""")
    minted = json.loads(answers)
    assert minted[0][:6] == [1, 2, 3, 4, 5, 6]
    assert [len(mine) for mine in minted] == [1_005, 2_000, 2_000] and all(ascends(mine) for mine in minted)
    assert len(set().union(*minted)) == 5_005


def test_segment_closed(namespace):
    def opened():
        yield frazil.Segment("closed", store="memory", namespace=namespace)
        yield frazil.Buffered("standard", node=1, size=10, detached=True)
        yield frazil.Tickets("closed", store=["redis://127.0.0.1:1/0", "redis://127.0.0.1:2/0"])

    for numbers in opened():
        spec, mint = numbers.spec, numbers.next
        numbers.close()
        numbers.close()
        for call in [
            numbers.next,
            mint,
            numbers,
            lambda numbers=numbers: next(numbers),
            lambda numbers=numbers: numbers.batch(1),
            lambda numbers=numbers: numbers.batch(0),
            lambda numbers=numbers: numbers.fill(array.array("q", [0])),
            lambda numbers=numbers: asyncio.run(numbers.anext()),
            lambda numbers=numbers: asyncio.run(numbers.abatch(1)),
            numbers.discard,
            lambda numbers=numbers: numbers.prepared,
            lambda numbers=numbers: numbers.last_error,
        ]:
            refused(frazil.errors.ClosedError, call)
        assert numbers.spec == spec

    with frazil.Segment("with", store="memory", namespace=namespace) as orders:
        assert orders.next() == 1
    refused(frazil.errors.ClosedError, orders.next)

    clone = frazil.Segment("discard", store="memory", namespace=namespace, step=100)
    assert clone.next() == 1
    clone.discard()
    assert clone.next() > 100


def test_buffered(node):
    ids = frazil.Buffered("standard", node=node, size=10_000, refill=20)
    assert isinstance(ids, frazil.Numbers) and ids.prepared >= 10_000
    minted = [mint() for _ in range(100) for mint in (ids.next, ids, ids.__next__)] + ids.batch(30_000)
    assert ascends(minted)
    assert {ids.layout.decode(id).node for id in minted} == {node}
    assert ids.layout == frazil.Snowflake("standard", node=node).layout
    assert repr(ids) == f"Buffered({ids.spec})"

    small = frazil.Buffered("standard", node=node, size=500, refill=100)
    minted = [[] for _ in range(4)]

    def work(mine):
        buffer = array.array("q", bytes(8 * 500))
        for _ in range(10):
            mine += [small.next() for _ in range(200)] + small.batch(300)
            small.fill(buffer)
            mine += buffer

    threads = [threading.Thread(target=work, args=(mine,)) for mine in minted]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all(len(mine) == 10_000 and ascends(mine) for mine in minted)
    assert len(set().union(*minted)) == 40_000

    for line, kind in [
        ("standard node=1 size=0", frazil.errors.OutOfRangeError),
        ("standard node=1 refill=101", frazil.errors.OutOfRangeError),
        ("standard node=1 empty=block", frazil.errors.SpecError),
        ("standard node=1 sise=1", frazil.errors.UnknownKeyError),
        ("standard size=10", frazil.errors.NodeMissingError),
        ("baidu worker=1", frazil.errors.LayoutExpiredError),
    ]:
        refused(kind, lambda line=line: frazil.Buffered(line))


def test_an_empty_ring_refuses_or_waits(node):
    # Under a manual clock the generator has the eight IDs of one tick, and no more.
    line = f"layout='time:41@1ms node:10 sequence:3 epoch:2025-01-01' node={node} clock=manual exhausted=error start=zero"
    clock = frazil.Snowflake(line)
    clock.set_time(at(STANDARD_EPOCH_MS + 1000))
    ids = frazil.Buffered(line, size=4, empty="error")
    minted = []

    def take():
        with contextlib.suppress(frazil.errors.ExhaustedError):
            minted.append(ids.next())
        return len(minted) == 8

    assert in_time(take)
    refused(frazil.errors.ExhaustedError, ids.next, "empty")
    refused(frazil.errors.ExhaustedError, lambda: frazil.Buffered(line, size=4, empty="wait:100ms"), "no ID came within 1")
    clock.set_time(at(STANDARD_EPOCH_MS + 1001))
    minted.clear()
    assert in_time(take)
    assert {ids.layout.decode(id).tick for id in minted} == {1001}


def test_a_ring_is_dropped_when_the_clock_goes_back(node):
    line = f"standard node={node} clock=manual rollback=error exhausted=ahead:1h start=zero"
    clock = frazil.Snowflake(line)
    clock.set_time(at(STANDARD_EPOCH_MS + 1_000_000))
    ids = frazil.Buffered(line, size=20_000, empty="wait:200ms")
    minted = [ids.next()]
    clock.set_time(at(STANDARD_EPOCH_MS + 990_000))

    def drain():
        while len(minted) < 20_000:
            minted.append(ids.next())

    refused(frazil.errors.ClockBackError, drain)
    assert isinstance(ids.last_error, frazil.errors.ClockBackError)
    clock.set_time(at(STANDARD_EPOCH_MS + 1_100_000))
    later = ids.next()
    assert later > minted[-1] and ids.layout.decode(later).tick == 1_100_000


def test_a_ring_over_a_lease(tmp_path, namespace):
    def slots(space):
        listing = subprocess.run(
            [sys.executable, "-m", "frazil", "nodes", f"file:{tmp_path}", "--namespace", space, "--json"],
            check=True,
            capture_output=True,
            text=True,
        )
        return {slot["node"]: slot["state"] for slot in json.loads(listing.stdout)["slots"]}

    store = f"file:{tmp_path}"
    ids = frazil.Buffered(FOUR, store="memory", namespace=namespace, size=5_000)
    before = ids.layout.decode(ids.next()).node
    ids.discard()
    after = {ids.layout.decode(id).node for id in ids.batch(5_000)}
    assert before not in after

    # close(), a with block, dropping the ring, and the end of the process release the number.
    for space, code in {
        "close": "ids = opened(); ids.next(); ids.close()",
        "with": "with opened() as ids: ids.next()",
        "drop": "ids = opened(); ids.next(); del ids",
        "exit": "ids = opened(); ids.next()",
    }.items():
        run(f"import frazil\ndef opened(): return frazil.Buffered('game', store={store!r}, namespace={space!r}, size=100)\n{code}")
        assert set(slots(space).values()) == {"free"}, space

    # A forked child leases and releases its own number. Its parent keeps its own.
    run(f"""
import frazil, os
ids = frazil.Buffered("game", store={store!r}, namespace="fork", size=100)
node = ids.layout.decode(ids.next()).server
theirs, ours = os.pipe()
if os.fork() == 0:
    status = 1
    try:
        os.write(ours, str(ids.layout.decode(ids.next()).server).encode())
        ids.close()
        status = 0
    finally:
        os._exit(status)
_, status = os.wait()
assert status == 0, status
assert int(os.read(theirs, 100)) != node
assert ids.layout.decode(ids.batch(200)[-1]).server == node
""")
    assert list(slots("fork").values()) == ["free", "free"]


def test_a_forked_child_of_a_ring_is_refused():
    run("""
import frazil, os
ids = frazil.Buffered("standard", node=1, size=100)
last = ids.next()
if os.fork() == 0:
    status = 1
    try:
        try:
            ids.next()
        except frazil.errors.ForkedError:
            status = 0
    finally:
        os._exit(status)
_, status = os.wait()
assert status == 0, status
assert ids.next() > last
""")


def test_numbers_do_not_hold_up_a_loop(tmp_path):
    async def main(slow, other):
        started = time.monotonic()
        raised = refused(frazil.errors.WouldBlockError, frazil.Segment("orders", store=slow, wait="60s").next)
        assert raised.retry_after > 0 and "use await ids.anext()" in str(raised)
        patient = frazil.Tickets("posters", store=[slow, other], wait="60s")
        assert "use await ids.anext()" in str(refused(frazil.errors.WouldBlockError, patient.next))
        assert "use await ids.abatch(2)" in str(refused(frazil.errors.WouldBlockError, lambda: patient.batch(2)))
        assert time.monotonic() - started < 30
        tickets = frazil.Tickets("photos", store=[slow, other], wait="2s")
        turns = 0

        async def count():
            nonlocal turns
            while True:
                await asyncio.sleep(0.01)
                turns += 1

        counting = asyncio.create_task(count())
        for waiting in (
            frazil.Segment.aopen("orders", store=slow, wait="2s"),
            tickets.anext(),
            tickets.abatch(2),
        ):
            before = turns
            with pytest.raises(frazil.errors.SegmentExhaustedError):
                await waiting
            assert turns - before > 10
        counting.cancel()

        orders = await frazil.Segment.aopen("orders", store=f"file:{tmp_path}", step=10)
        assert [await orders.anext(), *await orders.abatch(2_000)] == list(range(1, 2_002))
        ring = await frazil.Buffered.aopen("standard", store=f"file:{tmp_path}", namespace="ring", size=100, **SLOW)
        assert ascends([await ring.anext(), *await ring.abatch(5_000)])
        await asyncio.to_thread(ring.discard)
        with silenced(tmp_path, "ring"):
            started = time.monotonic()
            ring.close()
            assert time.monotonic() - started < NOT_BLOCKED_S

    with silent_server() as slow, silent_server() as other:
        asyncio.run(main(slow, other))


def test_the_gil_is_free_while_numbers_are_waited_for():
    turns = 0
    done = False

    def count():
        nonlocal turns
        while not done:
            time.sleep(0.005)
            turns += 1

    counting = threading.Thread(target=count)
    with silent_server() as slow, silent_server() as other:
        tickets = frazil.Tickets("photos", store=[slow, other], wait="300ms")
        calls = [
            tickets.next,
            tickets,
            lambda: tickets.batch(1),
            lambda: tickets.fill(array.array("q", [0])),
            lambda: frazil.Segment("orders", store=slow, wait="300ms"),
        ]
        counting.start()
        for call in calls:
            before = turns
            refused(frazil.errors.SegmentExhaustedError, call)
            assert turns - before > 5
        done = True
        counting.join()


def test_threads_share_a_segment(namespace):
    orders = frazil.Segment("threads", store="memory", namespace=namespace, step=10)
    minted = [[] for _ in range(4)]

    def work(mine):
        for _ in range(50):
            mine += [orders.next() for _ in range(50)] + orders.batch(50)

    threads = [threading.Thread(target=work, args=(mine,)) for mine in minted]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all(ascends(mine) for mine in minted)
    assert sorted(number for mine in minted for number in mine) == list(range(1, 20_001)), "none twice, and no gap"


def test_numbers_of_wrong_types(namespace):
    for open in (frazil.Segment, frazil.Tickets, frazil.Buffered):
        for value in [7, b"orders", ["orders"], object(), 1.5]:
            assert type(value).__name__ in str(refused(frazil.errors.WrongTypeError, lambda open=open, value=value: open(value), "spec"))
        for key in ("store", "offset"):
            for value in [b"memory", {"memory"}, {}, object(), 7.0, [None], [7.0], [["memory"]], (b"memory",)]:
                refused(frazil.errors.WrongTypeError, lambda open=open, key=key, value=value: open("orders", **{key: value}), key, "a list")
        refused(frazil.errors.WrongTypeError, lambda open=open: open("orders", store="memory", step=[1]), "step")
        refused(frazil.errors.SpecError, lambda open=open: open("a\ud800b"))
        refused(frazil.errors.SpecError, lambda open=open: open("orders", store=["a\ud800b"]))
        refused(
            frazil.errors.SpecError, lambda open=open: open("orders", store=["memory local"]), 'store: the item "memory local"', "space"
        )
    refused(frazil.errors.WrongTypeError, lambda: frazil.Snowflake("standard", store=["memory"]), "store")
    with pytest.raises(TypeError):
        frazil.Numbers("orders store=memory")

    orders = frazil.Segment("orders", store="memory", namespace=namespace)
    for value in [None, "7", b"7", [7], 1.0, True]:
        refused(frazil.errors.WrongTypeError, lambda value=value: orders.batch(value))
        refused(frazil.errors.WrongTypeError, lambda value=value: orders.abatch(value))
    for value in [-1, 2**24 + 1, 2**64, 1.5, float("nan")]:
        refused(frazil.errors.OutOfRangeError, lambda value=value: orders.batch(value), "count")
        refused(frazil.errors.OutOfRangeError, lambda value=value: orders.abatch(value), "count")
    read_only = numpy.zeros(4, dtype=numpy.int64)
    read_only.flags.writeable = False
    for buffer in [
        None,
        [0] * 4,
        bytes(32),
        array.array("I", [0] * 4),
        memoryview(array.array("q", [0] * 8))[::2],
        numpy.zeros(4, dtype=">i8"),
        read_only,
    ]:
        refused(frazil.errors.WrongTypeError, lambda buffer=buffer: orders.fill(buffer), "buffer must be a writable")
    refused(frazil.errors.WrongTypeError, lambda: orders.next(1), "no arguments")
    with pytest.raises(TypeError):
        frazil.Numbers.next(frazil.Snowflake("standard node=1", detached=True))
    with pytest.raises(AttributeError):
        orders.layout  # noqa: B018
    # The refused calls have spent no number.
    assert orders.next() == 1


def test_a_bound_method_keeps_its_numbers(namespace):
    mint = frazil.Segment("orders", store="memory", namespace=namespace).next
    gc.collect()
    assert [mint() for _ in range(3)] == [1, 2, 3]
    orders = frazil.Segment("weak", store="memory", namespace=namespace)
    gone = weakref.ref(orders)
    del orders
    gc.collect()
    assert gone() is None
