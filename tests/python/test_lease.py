"""Leased node numbers: their state, their release, and sharing them."""

import asyncio
import contextlib
import fcntl
import gc
import json
import multiprocessing
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from datetime import UTC, datetime, timedelta

import frazil
import pytest
from conftest import ascends, open_manual

# A process finds out after 1.5 x renew whether another one holds a number. On a busy machine, the renewing thread may be delayed by 1 s.
QUICK = {"window": "4s", "renew": "1s", "rollback": "error"}
# A blocking call to the store takes 5 s. A call that does not block returns much earlier, even on a busy machine.
SLOW = {"window": "32s", "renew": "8s"}
NOT_BLOCKED_S = 2.5
TWO = "layout='time:41@1ms node:1 sequence:12 epoch:2025-01-01'"


def slots(folder, namespace="default"):
    """Returns the state of each node number in a file store: "held" or "free"."""
    states = {}
    for path in (folder / namespace).iterdir():
        if path.name.isdigit():
            bytes = path.read_bytes()
            halves = [struct.unpack_from("<QI", bytes, at + 24) + (at + 36,) for at in (0, 4096)]
            _, length, start = max(halves)
            states[int(path.name)] = bytes[start : start + length].split()[1].decode()
    return states


def in_time(condition, seconds=60):
    """Waits for a condition, and returns whether it became true."""
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    return condition()


@contextlib.contextmanager
def silenced(folder, namespace):
    """Keeps a file store from answering, by the lock of the namespace's folder."""
    with open(folder / namespace / ".lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def start(code, **more):
    """Starts a program with this interpreter, and captures its output."""
    environment = {name: value for name, value in os.environ.items() if name != "FRAZIL"}
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment, **more)


def run(code, expected=0):
    """Runs a program with this interpreter."""
    program = start(code)
    printed, _ = program.communicate(timeout=120)
    assert program.returncode == expected
    return printed


@pytest.fixture
def store(tmp_path):
    return f"file:{tmp_path}"


def test_lease_info(store, tmp_path, namespace):
    assert frazil.Snowflake("standard node=1", detached=True).lease is None
    before = datetime.now(UTC)
    ids = frazil.Snowflake("standard", store=store, namespace="eu-items_2.1")
    lease = ids.lease
    assert lease.node == ids.node
    assert before + timedelta(seconds=2) < lease.bound < datetime.now(UTC) + timedelta(seconds=5)
    assert lease.bound.tzinfo is UTC
    assert (lease.store, lease.namespace) == (store, "eu-items_2.1")
    assert (lease.healthy, lease.last_error, lease.left) == (True, None, None)
    assert repr(lease).startswith(f"Lease(node={ids.node}, bound=datetime.datetime(")
    assert in_time(lambda: ids.lease.bound > lease.bound), "it is extended all the time"
    for name in ("node", "bound", "new"):
        with pytest.raises(AttributeError):
            setattr(lease, name, 1)
    with pytest.raises(TypeError):
        frazil.Lease()
    ids.close()
    assert ids.lease.namespace == "eu-items_2.1", "a property stays"

    counted = [frazil.Snowflake(TWO, store="memory", namespace=namespace, lease="disposable", detached=True) for _ in range(2)]
    assert [(ids.lease.node, ids.lease.bound, ids.lease.left) for ids in counted] == [(0, None, 1), (1, None, 0)]
    with pytest.raises(frazil.errors.NoFreeNodeError, match="spent"):
        frazil.Snowflake(TWO, store="memory", namespace=namespace, lease="disposable", detached=True)


def test_lease_close_releases(store, tmp_path):
    ids, other = [frazil.Snowflake("standard", store=store, namespace="close") for _ in range(2)]
    node = ids.node
    assert other.node == node
    ids.close()
    assert slots(tmp_path, "close") == {node: "held"}, "another handle is open"
    assert other.next() > 0
    other.close()
    other.close()
    assert slots(tmp_path, "close") == {node: "free"}
    with pytest.raises(frazil.errors.ClosedError):
        other.next()

    with frazil.Snowflake("standard", store=store, namespace="with") as ids:
        ids.next()
        assert set(slots(tmp_path, "with").values()) == {"held"}
    assert set(slots(tmp_path, "with").values()) == {"free"}

    ids = frazil.Snowflake("standard", store=store, namespace="drop")
    ids.next()
    del ids
    gc.collect()
    assert in_time(lambda: set(slots(tmp_path, "drop").values()) == {"free"})

    # A destructor that runs during an exception does not change the exception.
    def raises():
        ids = frazil.Snowflake("standard", store=store, namespace="raise")
        return ids.next() / 0

    with pytest.raises(ZeroDivisionError):
        raises()
    assert in_time(lambda: set(slots(tmp_path, "raise").values()) == {"free"})

    ids = frazil.Snowflake("standard", store=store, namespace="release")
    before, first = ids.node, ids.next()
    ids.release_node()
    ids.release_node()
    assert set(slots(tmp_path, "release").values()) == {"free"}
    assert ids.next() > first
    assert ids.lease.node == ids.node
    assert slots(tmp_path, "release")[ids.node] == "held"
    assert before in slots(tmp_path, "release")
    with pytest.raises(frazil.errors.SpecError, match="release_node"):
        open_manual().release_node()


@pytest.mark.parametrize(
    "end",
    [
        "",
        "raise SystemExit(3)",
        "import sys; sys.exit(3)",
        "1 / 0",
        "threading.Thread(target=lambda: (time.sleep(0.3), ids.next())).start()",
    ],
)
def test_the_interpreters_exit_releases_the_number(store, tmp_path, end):
    program = start(
        f"import frazil, threading, time\nids = frazil.Snowflake('standard', store={store!r}, namespace='exit')\nids.next()\n{end}",
        stderr=subprocess.PIPE,
    )
    _, error = program.communicate(timeout=60)
    assert "Closed" not in error
    assert list(slots(tmp_path, "exit").values()) == ["free"]


def test_the_exit_of_a_child_releases_nothing_of_its_parents(store, tmp_path):
    ids = frazil.Snowflake("standard", store=store, namespace="child")
    first = ids.next()
    run(f"""
import frazil, os, sys
ids = frazil.Snowflake("standard", store={store!r}, namespace="child-exit")
ids.next()
if os.fork() == 0:
    sys.exit()
_, status = os.wait()
assert status == 0, status
import pathlib
sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_lease import slots
assert slots(pathlib.Path({str(tmp_path)!r}), "child-exit") == {{ids.node: "held"}}
if os.fork() == 0:
    assert ids.next() > 0
    os.write(1, str(ids.node).encode())
    sys.exit()
_, status = os.wait()
assert status == 0, status
""")
    assert set(slots(tmp_path, "child-exit").values()) == {"free"} and len(slots(tmp_path, "child-exit")) == 2
    assert ids.next() > first and slots(tmp_path, "child") == {ids.node: "held"}


def test_lease_named_slot(store, tmp_path):
    held = start(
        f"""
import frazil, sys
ids = frazil.Snowflake("standard", node=7, store={store!r}, **{QUICK!r})
print(ids.next(), flush=True)
sys.stdin.read()
""",
        stdin=subprocess.PIPE,
    )
    last = int(held.stdout.readline())
    with pytest.raises(frazil.errors.NodeInUseError, match=f"node number 7 is held by .*:{held.pid} until") as raised:
        frazil.Snowflake("standard", node=7, store=store, **QUICK)
    assert store in str(raised.value)
    with pytest.raises(frazil.errors.NodeInUseError):
        asyncio.run(frazil.Snowflake.aopen("standard", node=7, store=store, **QUICK))
    other = frazil.Snowflake("standard", node=8, store=store, **QUICK)
    assert other.node == 8
    held.communicate("", timeout=60)
    ids = frazil.Snowflake("standard", node=7, store=store, **QUICK)
    assert (ids.node, ids.lease.node) == (7, 7)
    assert ids.next() > last

    # A killed holder releases nothing, so the next open waits for its bound.
    killed = start(
        f"import frazil, time\nids = frazil.Snowflake('standard node=9', store={store!r}, **{QUICK!r})\n"
        "print(ids.next(), flush=True)\ntime.sleep(60)"
    )
    last = int(killed.stdout.readline())
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    killed.stdout.close()
    ids = frazil.Snowflake("standard", node=9, store=store, **QUICK)
    assert ids.next() > last


def test_lease_file_store(store, tmp_path):
    mint = f"""
import frazil, json
ids = frazil.Snowflake("standard", store={store!r})
print(json.dumps([ids.node, ids.batch(20_000) + [ids.next() for _ in range(5_000)]]), flush=True)
input()
"""
    programs = [start(mint, stdin=subprocess.PIPE) for _ in range(2)]
    ids = frazil.Snowflake("standard", store=store)
    minted = [[ids.node, ids.batch(20_000)]] + [json.loads(program.stdout.readline()) for program in programs]
    assert len({node for node, _ in minted}) == 3
    assert sorted(slots(tmp_path)) == sorted(node for node, _ in minted)
    for program in programs:
        program.communicate("\n", timeout=60)
    for node, mine in minted:
        assert ascends(mine)
        assert {ids.layout.decode(id).node for id in mine} == {node}
    assert len(set().union(*(mine for _, mine in minted))) == 70_000


def test_lease_errors(store, tmp_path, namespace):
    def refused(kind, *says, **options):
        with pytest.raises(kind) as raised:
            frazil.Snowflake("standard", **options)
        assert all(word in str(raised.value) for word in says), str(raised.value)
        return raised.value

    refused(frazil.errors.SpecError, "namespace", "a-z", store=store, namespace="two words")
    refused(frazil.errors.SpecError, "lease", "disposable", store=store, lease="forever")
    refused(frazil.errors.OutOfRangeError, "renew=99ms", "100ms", store=store, renew="99ms")
    refused(frazil.errors.OutOfRangeError, "window=2s", "4s", store=store, window="2s", renew="1s")
    refused(frazil.errors.SpecError, "window", store=store, window="soon")
    refused(frazil.errors.SpecError, "window", "disposable", store=store, window="3s", lease="disposable")
    refused(frazil.errors.SpecError, "window", "store", node=1, window="3s")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        why = refused(frazil.errors.StoreUnsuitableError, address, store=f"redis://user:secret@{address}/0", lease="disposable")
        assert "secret" not in str(why)
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.accept()

    # The port is only reserved, so no server listens on it.
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"
        why = refused(frazil.errors.StoreUnreachableError, address, store=f"redis://:secret@{address}/0", window="4s", renew="1s")
        assert "secret" not in str(why)

    one = frazil.Snowflake("standard", store=store)
    with pytest.raises(frazil.errors.LayoutMismatchError, match="default"):
        frazil.Snowflake("twitter", store=store)
    with pytest.raises(frazil.errors.ConflictError, match="node number"):
        frazil.Snowflake("standard", store=store, rollback="error")
    one.close()

    full = [frazil.Snowflake(TWO, store="memory", namespace=namespace, detached=True, **QUICK) for _ in range(2)]
    with pytest.raises(frazil.errors.NoFreeNodeError, match="all 2 node numbers"):
        frazil.Snowflake(TWO, store="memory", namespace=namespace, detached=True, **QUICK)
    # While another owner has the released number, calls fail and name the reason. Once the number is free, the next call leases it again.
    full[0].release_node()
    thief = frazil.Snowflake(TWO, store="memory", namespace=namespace, detached=True, **QUICK)
    with pytest.raises(frazil.errors.LeaseExhaustedError, match="all 2 node numbers") as raised:
        full[0].next()
    assert raised.value.code == 304
    assert not full[0].lease.healthy and isinstance(full[0].lease.last_error, frazil.errors.NoFreeNodeError)
    thief.close()

    def again():
        with contextlib.suppress(frazil.errors.LeaseExhaustedError):
            return full[0].next() > 0

    assert in_time(again)
    assert in_time(lambda: full[0].lease.healthy and full[0].lease.last_error is None)

    # The store is unreachable when the bound is reached.
    ids = frazil.Snowflake("standard", store=store, namespace="away", **QUICK)
    (tmp_path / "away").rename(tmp_path / "gone")
    (tmp_path / "away").write_text("in the way")
    with pytest.raises(frazil.errors.LeaseExhaustedError, match=f"node number {ids.node} .* since ") as raised:
        for _ in range(60_000):
            ids.next()
            time.sleep(0.001)
    assert not ids.lease.healthy and isinstance(ids.lease.last_error, frazil.FrazilError)


def test_a_store_does_not_hold_up_a_loop(store, tmp_path):
    async def main():
        for kind in ("postgresql", "redis"):
            slow = f"{kind}://127.0.0.1:{listening.getsockname()[1]}"
            started = time.monotonic()
            with pytest.raises(frazil.errors.WouldBlockError, match=r"use await Snowflake.aopen\(\.\.\.\)"):
                frazil.Snowflake("standard", store=slow, **SLOW)
            assert time.monotonic() - started < NOT_BLOCKED_S
        ids = await frazil.Snowflake.aopen("standard", store=store, namespace="loop", **SLOW)
        assert ids.next() < await ids.anext()
        await asyncio.to_thread(ids.release_node)
        assert await ids.anext() > 0
        with silenced(tmp_path, "loop"):
            started = time.monotonic()
            ids.close()
            assert time.monotonic() - started < NOT_BLOCKED_S
            assert slots(tmp_path, "loop")[ids.lease.node] == "held"
        assert in_time(lambda: set(slots(tmp_path, "loop").values()) == {"free"})
        turns = 0

        async def count():
            nonlocal turns
            while True:
                await asyncio.sleep(0.01)
                turns += 1

        counting = asyncio.create_task(count())
        with pytest.raises(frazil.errors.StoreUnreachableError):
            await frazil.Snowflake.aopen("standard", store=slow, window="4s", renew="1s")
        counting.cancel()
        assert turns > 10

    # This server accepts connections but never answers.
    with socket.create_server(("127.0.0.1", 0)) as listening:
        asyncio.run(main())


def test_the_gil_is_free_while_a_store_is_waited_for():
    turns = 0
    done = False

    def count():
        nonlocal turns
        while not done:
            time.sleep(0.005)
            turns += 1

    counting = threading.Thread(target=count)
    counting.start()
    with socket.create_server(("127.0.0.1", 0)) as listening, pytest.raises(frazil.errors.StoreUnreachableError):
        frazil.Snowflake("standard", store=f"redis://127.0.0.1:{listening.getsockname()[1]}", window="3s", renew="1s", rollback="error")
    done = True
    counting.join()
    # If the call held the GIL, another thread would run only before and after it.
    assert turns > 3


def test_fork_leases_anew(store, tmp_path):
    """The parent and its children mint at once from the handle that the parent opened."""
    run(f"""
import frazil, os, json
ids = frazil.Snowflake("standard", store={store!r})
ids.next()
pipes = []
for _ in range(2):
    theirs, ours = os.pipe()
    if os.fork() == 0:
        status = 1
        try:
            # These are the parent's.
            assert (ids.node, ids.lease, ids.fields) == (None, None, {{}})
            minted = [ids.next() for _ in range(3000)] + ids.batch(3000)
            assert ids.fields == {{"node": ids.node}}
            with os.fdopen(ours, "w") as out:
                json.dump([ids.node, ids.lease.node, minted], out)
            status = 0
        finally:
            os._exit(status)
    os.close(ours)
    pipes.append(theirs)
minted = [ids.next() for _ in range(3000)] + ids.batch(3000)
answers = [[ids.node, ids.lease.node, minted]] + [json.load(os.fdopen(pipe)) for pipe in pipes]
for _ in pipes:
    _, status = os.wait()
    assert status == 0, status
nodes = [node for node, _, _ in answers]
assert len(set(nodes)) == 3 and nodes == [node for _, node, _ in answers], nodes
assert len(set().union(*(minted for _, _, minted in answers))) == 18000
for node, _, minted in answers:
    assert minted == sorted(minted)
    assert {{ids.layout.decode(id).node for id in minted}} == {{node}}
""")


def test_a_forked_child_waits_for_a_busy_store_as_an_opener_does(store, tmp_path):
    """With many children, or on a busy machine, a child may wait longer for the store than an extension may take."""
    run(f"""
import fcntl, frazil, logging, os, pathlib, time
logging.basicConfig(filename={str(tmp_path / "log")!r}, format="%(process)d %(message)s")
ids = frazil.Snowflake("standard", store={store!r}, namespace="busy", window="60s", renew="200ms")
ids.next()
[lock] = pathlib.Path({store!r}.removeprefix("file:")).glob("busy/.lock")
begun, begins = os.pipe()
with open(lock) as held:
    fcntl.flock(held, fcntl.LOCK_EX)
    child = os.fork()
    if child == 0:
        held = None  # only the parent releases the lock
        os.write(begins, b"x")
        status = 1
        try:
            ids.next()
            status = 0
        finally:
            os._exit(status)
    os.read(begun, 1)
    time.sleep(1.5)
    fcntl.flock(held, fcntl.LOCK_UN)
assert os.waitpid(child, 0)[1] == 0
# The number that it has inherited is not its own, and no lease that failed.
said = pathlib.Path({str(tmp_path / "log")!r}).read_text().splitlines()
said = [line for line in said if line.startswith(str(child))]
assert len(said) == 1 and "no node number can be leased" in said[0], said
""")


INHERITED = None


def mint_inherited(count):
    return os.getpid(), INHERITED.node if INHERITED.next() else None, INHERITED.batch(count)


def mint_opened(store, count):
    with frazil.Snowflake("standard", store=store) as ids:
        return os.getpid(), ids.node, ids.batch(count)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(store, tmp_path, method):
    global INHERITED
    INHERITED = frazil.Snowflake("standard", store=store)
    INHERITED.next()
    context = multiprocessing.get_context(method)
    # The default handler, as in a plain program: with a handler in Python, a worker that is about to wait misses the signal that ends it.
    with context.Pool(3, signal.signal, (signal.SIGTERM, signal.SIG_DFL)) as pool:
        if method == "fork":
            waiting = [pool.apply_async(mint_inherited, (2000,)) for _ in range(12)]
        else:
            waiting = [pool.apply_async(mint_opened, (store, 2000)) for _ in range(12)]
        mine = INHERITED.batch(2000)
        answers = [(os.getpid(), INHERITED.node, mine)] + [answer.get(60) for answer in waiting]
    if method == "fork":
        assert len({(pid, node) for pid, node, _ in answers}) == len({node for _, node, _ in answers})
    assert len(set().union(*(minted for _, _, minted in answers))) == 13 * 2000
    INHERITED.close()
    INHERITED = None


APP = """
import json, os, frazil
ids = frazil.Snowflake("standard", store={store!r}, namespace="web")
ids.next()

def app(environ, respond):
    minted = [ids.next() for _ in range(100)] + ids.batch(400)
    respond("200 OK", [("Content-Type", "application/json")])
    return [json.dumps([os.getpid(), ids.node, minted]).encode()]
"""


def test_gunicorn(store, tmp_path):
    (tmp_path / "shop.py").write_text(APP.format(store=store))
    # The server inherits the listening socket, so no other process can take the port.
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port, handed = listening.getsockname()[1], listening.fileno()
        command = [sys.executable, "-m", "gunicorn", "--preload", "--workers=3", f"--bind=fd://{handed}", "--log-level=warning", "shop:app"]
        environment = {name: value for name, value in os.environ.items() if name != "FRAZIL"}
        server = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True, pass_fds=[handed])
    try:
        answers = []

        def ask():
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as answer:
                answers.append(json.load(answer))
            return len(answers) > 0

        assert in_time(ask)
        until = time.monotonic() + 120
        while (len({pid for pid, _, _ in answers}) < 3 or len(answers) < 60) and time.monotonic() < until:
            threads = [threading.Thread(target=ask) for _ in range(6)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
    finally:
        server.terminate()
        _, errors = server.communicate(timeout=60)
    workers = {pid: node for pid, node, _ in answers}
    assert len(workers) == 3 and len(set(workers.values())) == 3, (workers, errors)
    assert all(workers[pid] == node for pid, node, _ in answers)
    minted = [id for _, _, minted in answers for id in minted]
    assert len(set(minted)) == len(minted) == 500 * len(answers)
    # The master and the workers have released their numbers.
    assert set(slots(tmp_path, "web").values()) == {"free"} and set(workers.values()) < set(slots(tmp_path, "web")), slots(tmp_path, "web")


def test_close_all_releases_every_number(tmp_path):
    store = f"file:{tmp_path}"
    one, other = (frazil.Snowflake("standard", store=store, namespace=name) for name in ("one", "other"))
    given = open_manual()
    frazil.close_all()
    frazil.close_all()
    for ids in (one, other):
        with pytest.raises(frazil.errors.ClosedError):
            ids.next()
    assert given.next() > 0
    assert [set(slots(tmp_path, name).values()) for name in ("one", "other")] == [{"free"}, {"free"}]
