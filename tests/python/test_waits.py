"""Waits end by Ctrl-C, by `close`, by `timeout=` and by a cancelled task. A process that ends by SIGTERM releases its numbers."""

import array
import asyncio
import contextlib
import fcntl
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import anyio
import frazil
import pytest
import trio
from conftest import ascends, open_manual
from frazil import _async
from test_lease import in_time, slots, start

# Without an end, these waits last a minute or more. Only a wait for a silent file store fails after 5 s.
AT_ONCE_S = 15
HOURS = "layout='time:31@1h node:10 sequence:1 epoch:2025-01-01' exhausted=wait:2h start=zero store=memory"
SLOW = {"window": "60s", "renew": "10s"}


def used_up(**more):
    """Opens a generator whose next ID comes after the end of the hour."""
    ids = frazil.Snowflake(HOURS, detached=True, namespace="hours", **more)
    ids.batch(2)
    return ids


class Silence:
    """Stores that do not answer while this object lives."""

    def __init__(self, folder):
        self.folder = folder
        self.held = []

    def server(self):
        self.held.append(socket.create_server(("127.0.0.1", 0)))
        return f"etcd://127.0.0.1:{self.held[-1].getsockname()[1]}"

    def generator(self, cls=frazil.Snowflake, **more):
        """Opens a generator whose file store stops answering: the next call to the store waits."""
        ids = cls("standard", store=f"file:{self.folder}", timeout=30, **SLOW, **more)
        self.held.append(open(self.folder / more.get("namespace", "default") / ".lock"))  # noqa: SIM115
        fcntl.flock(self.held[-1], fcntl.LOCK_EX)
        return ids

    def left_behind(self):
        """Returns options of a node number whose holder ended without a release, with a bound a minute ahead."""
        code = (
            f"import frazil, os\nids = frazil.Snowflake('standard node=7', store='file:{self.folder}', **{SLOW})\nids.next()\nos._exit(0)"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
        return {"node": 7, "store": f"file:{self.folder}", **SLOW}

    def segment(self):
        """Opens a segment, takes its first range, and keeps its store from answering."""
        numbers = frazil.Segment("orders", store=f"file:{self.folder}", wait="60s", step=1, timeout=30)
        self.held.append(open(self.folder / "default~orders/.lock"))  # noqa: SIM115
        fcntl.flock(self.held[-1], fcntl.LOCK_EX)
        with contextlib.suppress(frazil.errors.WouldBlockError):
            while True:
                numbers.next(timeout=0)
        return numbers

    def pair(self):
        return {"store": [self.server(), self.server()], "wait": "60s"}

    def ring(self):
        ring = frazil.Buffered(HOURS, detached=True, namespace="ring", size=2, empty="wait:1h")
        ring.batch(2)
        return ring


def opens(cls, options):
    return (
        None,
        lambda **limit: cls("standard" if cls is frazil.Snowflake else "orders", **options, **limit),
        lambda **limit: cls.aopen("standard" if cls is frazil.Snowflake else "orders", **options, **limit),
    )


def of(ids, name, *arguments):
    """Returns a handle, a call on it, and the same call for an event loop."""
    by_name = None if name == "fill" else f"a{name}"
    return (
        ids,
        lambda **limit: getattr(ids, name)(*arguments, **limit),
        by_name and (lambda **limit: getattr(ids, by_name)(*arguments, **limit)),
    )


WAITS = {
    "open": lambda silence: opens(frazil.Snowflake, silence.left_behind()),
    "open-silent": lambda silence: opens(frazil.Snowflake, {"store": silence.server(), **SLOW}),
    "next": lambda _: of(used_up(), "next"),
    "batch": lambda _: of(used_up(), "batch", 1000),
    "fill": lambda _: of(used_up(), "fill", array.array("q", bytes(8 * 100))),
    "release_node": lambda silence: of(silence.generator(), "release_node"),
    "close": lambda silence: of(silence.generator(), "close"),
    "segment-open": lambda silence: opens(frazil.Segment, {"store": silence.server(), "wait": "60s"}),
    "segment-next": lambda silence: of(silence.segment(), "next"),
    "tickets-next": lambda silence: of(frazil.Tickets("photos", **silence.pair()), "next"),
    "tickets-batch": lambda silence: of(frazil.Tickets("photos", **silence.pair()), "batch", 3),
    "ring-next": lambda silence: of(silence.ring(), "next"),
    "ring-discard": lambda silence: of(silence.generator(frazil.Buffered), "discard"),
    "ring-close": lambda silence: of(silence.generator(frazil.Buffered), "close"),
}
ASYNC = [name for name in WAITS if name != "fill"]


def at_the_limit(name):
    """Returns the expected end of a call at its limit. A segment's open succeeds, and its range comes later."""
    if name == "segment-open":
        return contextlib.nullcontext()
    # Within its limit, an open finds the holder of the number, except on a busy machine.
    return pytest.raises((frazil.errors.WouldBlockError, frazil.errors.NodeInUseError) if name == "open" else frazil.errors.WouldBlockError)


def main(name, folder):
    """Runs as a program: waits, and prints how the wait ended."""
    _silence = Silence(Path(folder))
    _ids, call, _ = WAITS[name](_silence)
    try:
        # A signal before the call ends the program in the same way.
        print("ready", flush=True)
        call()
    except BaseException as error:  # noqa: BLE001
        print(type(error).__name__, error.__context__, flush=True)
    os._exit(0)


def ended(program, *signals):
    """Sends signals to a program that waits. Returns its output, and how long it took."""
    assert program.stdout.readline() == "ready\n"
    time.sleep(0.3)
    since = time.monotonic()
    for number in signals:
        program.send_signal(number)
    said, _ = program.communicate(timeout=100)
    return said, time.monotonic() - since


def waiting(name, folder, before=""):
    return start(
        f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); import test_waits\n{before}\ntest_waits.main({name!r}, {str(folder)!r})"
    )


@pytest.mark.parametrize("name", WAITS)
def test_ctrl_c_interrupts(name, tmp_path):
    said, took = ended(waiting(name, tmp_path), signal.SIGINT)
    assert said == "KeyboardInterrupt None\n"
    assert took < AT_ONCE_S
    if "close" in name or name in ("release_node", "ring-discard") or "silent" in name:
        assert took < 4, "not when the store is given up"


def test_a_signals_handler_may_raise_or_continue_the_wait(tmp_path):
    raises = "import signal\ndef handler(*_): raise LookupError('mine')\nsignal.signal(signal.SIGUSR1, handler)"
    assert ended(waiting("next", tmp_path, raises), signal.SIGUSR1)[0] == "LookupError None\n"
    counts = "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: print('seen', flush=True))"
    program = waiting("next", tmp_path, counts)
    assert program.stdout.readline() == "ready\n"
    for _ in range(3):
        time.sleep(0.1)
        program.send_signal(signal.SIGUSR1)
        assert program.stdout.readline() == "seen\n"
    program.send_signal(signal.SIGINT)
    assert program.communicate(timeout=100)[0] == "KeyboardInterrupt None\n"
    # A handler may use and close the handle that the call waits on.
    closes = "import signal\nmade = []\nof = test_waits.of\ntest_waits.of = lambda ids, *more: (made.append(ids), of(ids, *more))[1]\n"
    closes += "signal.signal(signal.SIGUSR1, lambda *_: made[0].close())"
    for name in ("next", "tickets-next", "ring-next"):
        assert ended(waiting(name, tmp_path, closes), signal.SIGUSR1)[0] == "ClosedError None\n"


def test_frazils_threads_leave_signals_to_the_programs(tmp_path):
    # A handler runs on the thread that gets the signal. uWSGI's handler ends Python on that thread.
    code = f"""
import frazil, pathlib, signal
ids = frazil.Snowflake("standard", store="file:{tmp_path}", timeout=30)
ring = frazil.Buffered("standard", node=5, detached=True)
ring.next()
for task in pathlib.Path("/proc/self/task").iterdir():
    status = dict(line.split(":\\t") for line in (task / "status").read_text().splitlines())
    blocked = int(status["SigBlk"], 16)
    print(status["Name"], *(bool(blocked >> number - 1 & 1) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGSEGV)))
"""
    said = start(code).communicate(timeout=60)[0].splitlines()
    assert {"frazil-worker True True False", "frazil-ahead True True False"} <= set(said), said
    assert all(line.startswith("frazil-") == (" True True " in line) for line in said), said


def test_a_second_ctrl_c_does_no_harm(tmp_path):
    again = "import os, signal, time\nmine = signal.default_int_handler\n"
    again += "def handler(*_):\n    signal.signal(signal.SIGINT, mine)\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(1)\n"
    again += "signal.signal(signal.SIGINT, handler)"
    for name in ("next", "tickets-next", "open"):
        assert ended(waiting(name, tmp_path, again), signal.SIGINT)[0] == "KeyboardInterrupt None\n"
    program = waiting("next", tmp_path)
    ended(program, signal.SIGINT, signal.SIGINT, signal.SIGINT)
    assert program.returncode in (0, 1, -signal.SIGINT), "the later ones may come when it has caught the first"


@pytest.mark.parametrize(
    "name", ["next", "batch", "fill", "release_node", "segment-next", "tickets-next", "tickets-batch", "ring-next", "ring-discard"]
)
def test_close_ends_what_waits(name, tmp_path):
    silence = Silence(tmp_path)
    ids, call, _ = WAITS[name](silence)

    def close():
        with contextlib.suppress(frazil.errors.WouldBlockError):
            ids.close(timeout=0)

    threading.Timer(0.3, close).start()
    since = time.monotonic()
    with pytest.raises(frazil.errors.ClosedError):
        call()
    assert time.monotonic() - since < AT_ONCE_S


@pytest.mark.parametrize("limit", [0, 0.2, timedelta(milliseconds=200)], ids=str)
@pytest.mark.parametrize("name", WAITS)
def test_timeout(name, limit, tmp_path):
    silence = Silence(tmp_path)
    _ids, call, _ = WAITS[name](silence)
    since = time.monotonic()
    with at_the_limit(name) as raised:
        call(timeout=limit)
    took = time.monotonic() - since
    # A call does not wait if the next ID certainly comes after its limit.
    is_known = name in ("next", "batch", "fill")
    assert (0.2 if limit and not is_known else 0) <= took < 4
    assert raised is None or str(raised.value).endswith(": use a longer timeout=, or none")


@pytest.mark.parametrize("name", ASYNC)
def test_async_waits_end(name, tmp_path):
    silence = Silence(tmp_path)
    ids, _, call = WAITS[name](silence)

    async def main():
        since = time.monotonic()
        with at_the_limit(name):
            await call(timeout=0.2)
        assert time.monotonic() - since >= 0.2 or name in ("next", "batch")
        with at_the_limit(name):
            await call(timeout=0)
        assert time.monotonic() - since < 4
        task = asyncio.create_task(call())
        await asyncio.sleep(0.2)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - since < 4, "a cancelled call ends at once"
        assert len(asyncio.all_tasks()) == 1
        if ids is not None and "close" not in name:
            task = asyncio.create_task(call())
            await asyncio.sleep(0.2)
            ids.close()
            with pytest.raises(frazil.errors.ClosedError):
                await task
            assert time.monotonic() - since < 4

    asyncio.run(main())
    # The loop is closed, and no thread of it is left.
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("asyncio")]


LOOPS = {
    "asyncio": lambda main: asyncio.run(main()),
    "trio": lambda main: trio.run(main),
    "anyio-asyncio": lambda main: anyio.run(main, backend="asyncio"),
    "anyio-trio": lambda main: anyio.run(main, backend="trio"),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_every_loop_awaits_ids(loop, tmp_path):
    minted = []

    async def main():
        async with await frazil.Snowflake.aopen("standard", store=f"file:{tmp_path}", timeout=30) as ids:
            for _ in range(100_000):
                minted.append(await ids.anext())
            minted.extend(await ids.abatch(10_000, timeout=30))
            await ids.arelease_node()
        assert set(slots(tmp_path).values()) == {"free"}
        orders = await frazil.Segment.aopen("orders", store=f"file:{tmp_path}", step=10, timeout=30)
        assert [await orders.anext() for _ in range(100)] == list(range(1, 101))
        await orders.aclose()

    LOOPS[loop](main)
    assert ascends(minted) and len(minted) == 110_000


@pytest.mark.parametrize("loop", ["anyio-asyncio", "anyio-trio"])
def test_cancelled_scopes_lose_no_wakeup(loop):
    # With 8 IDs in 10 ms, some of 2000 calls get an answer although they are cancelled at about that time.
    ids = frazil.Snowflake(
        "layout='time:39@10ms node:10 sequence:3 epoch:2025-01-01' start=zero store=memory namespace=scopes", detached=True
    )
    minted = []

    async def call(at):
        with anyio.move_on_after(at % 97 / 1000):
            minted.append(await ids.anext())

    async def main():
        since = anyio.current_time()
        async with anyio.create_task_group() as calls:
            for at in range(2000):
                calls.start_soon(call, at)
        assert anyio.current_time() - since < AT_ONCE_S
        [waiting] = [calls.futures for calls in _async._loops.values()]
        assert not waiting
        async with anyio.create_task_group() as calls:
            for _ in range(100):
                calls.start_soon(call_on)
        with pytest.raises(frazil.errors.WouldBlockError), anyio.fail_after(AT_ONCE_S):
            await used_up().anext(timeout=0.1)

    async def call_on():
        minted.append(await ids.anext())

    _async._loops.clear()
    LOOPS[loop](main)
    assert len(set(minted)) == len(minted) > 100
    ids.close()


def test_trio_cancels_what_waits(tmp_path):
    silence, hours = Silence(tmp_path), used_up()

    async def main():
        since = trio.current_time()
        with pytest.raises(frazil.errors.WouldBlockError, match="because an event loop runs in this thread"):
            hours.next()
        with trio.move_on_after(0.2) as scope:
            await hours.anext()
        assert scope.cancelled_caught
        with trio.move_on_after(0.2) as scope:
            await frazil.Snowflake.aopen("standard", store=silence.server(), **SLOW)
        assert scope.cancelled_caught and trio.current_time() - since < AT_ONCE_S

        async def close():
            await trio.sleep(0.2)
            hours.close()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(close)
            with pytest.raises(frazil.errors.ClosedError):
                await hours.anext()

    trio.run(main)


def test_trio_within_asyncio():
    done = []
    # Opened outside the event loop, because there a constructor waits only 2 ms, which may not suffice on a busy machine.
    outer, inner = used_up(), used_up()

    async def guest():
        with trio.move_on_after(0.1) as scope:
            await inner.anext()
        inner.close()
        done.append(scope.cancelled_caught)

    async def host():
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        trio.lowlevel.start_guest_run(guest, run_sync_soon_threadsafe=loop.call_soon_threadsafe, done_callback=lambda _: ended.set())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(outer.anext(), 0.1)
        outer.close()
        await ended.wait()

    asyncio.run(host())
    assert done == [True]


@pytest.mark.parametrize("method", ["anext", "abatch", "arelease_node", "aclose", "aopen", "__aenter__"])
def test_a_coroutine_that_is_not_awaited_names_the_method(method):
    for cls, line in ((frazil.Snowflake, "standard node=1"), (frazil.Segment, "names store=memory namespace=names")):
        if (cls, method) == (frazil.Segment, "arelease_node"):
            method = "adiscard"
        of = cls if method == "aopen" else cls(line)
        arguments = {"abatch": [1], "aopen": [line]}.get(method, [])
        coroutine = getattr(of, method)(*arguments)
        assert (coroutine.__name__, coroutine.__qualname__) == (method, f"{cls.__name__}.{method}")
        with pytest.warns(RuntimeWarning, match=f"^coroutine '{cls.__name__}.{method}' was never awaited"):
            del coroutine


def test_an_unknown_event_loop_is_refused():
    call = used_up().anext()
    with pytest.raises(frazil.errors.WouldBlockError, match="neither asyncio nor trio runs here"):
        call.send(None)


def test_gevents_pool_waits(tmp_path):
    guide = (Path(__file__).parents[2] / "docs/python.md").read_text()
    [sample] = re.findall(r"^```py\n(from gevent import .*?)^```$", guide, re.MULTILINE | re.DOTALL)
    # At 2 IDs in 1 s, 10 IDs take 4 s. A child takes as long, and leases a number with its first ID.
    code = f"""
{sample.replace('"local"', repr(f"file:{tmp_path}"))}
import gevent, os
ids = frazil.Snowflake("layout='time:31@1s node:10 sequence:1 epoch:2025-01-01' exhausted=wait:60s", store="file:{tmp_path}", namespace="slow", timeout=30)
turns = 0

def turn():
    global turns
    while True:
        gevent.sleep(0.01)
        turns += 1

child = os.fork()
turning = gevent.spawn(turn)
minted = [new_id() for _ in range(10)]
turning.kill()
os.write(1, f"{{len(set(minted))}} {{turns > 20}}\\n".encode())  # whole, beside the other process
if child:
    os.waitpid(child, 0)
"""
    assert start(code).communicate(timeout=100)[0].splitlines() == ["10 True"] * 2


def test_no_loop_is_imported():
    code = """
import sys, trio, frazil
async def main():
    ids = await frazil.Snowflake.aopen("standard store=memory")
    for _ in range(20_000):
        await ids.anext()
trio.run(main)
print("anyio" in sys.modules, "asyncio" in sys.modules)
"""
    assert start(code).communicate(timeout=60)[0] == "False False\n"


def test_a_timeout_allows_a_wait_in_a_loop(tmp_path):
    # Opened outside the event loop, where an open may wait.
    silence, hours = Silence(tmp_path), used_up()

    async def main():
        ids = frazil.Snowflake("standard", store=f"file:{tmp_path}", namespace="loop", timeout=30)
        assert ids.next() > 0
        await ids.arelease_node(timeout=30)
        assert await ids.anext(timeout=30) > 0
        with pytest.raises(frazil.errors.WouldBlockError) as raised:
            hours.next()
        assert "use await ids.anext(), or timeout=, because an event loop runs in this thread" in str(raised.value)
        for call in (
            frazil.Tickets("photos", **silence.pair()).next,
            silence.generator().release_node,
            silence.generator(namespace="c").close,
        ):
            since = time.monotonic()
            with pytest.raises(frazil.errors.WouldBlockError) as raised:
                call(timeout=0.3)
            assert time.monotonic() - since >= 0.3 and "use a longer timeout=" in str(raised.value)
        with pytest.raises(frazil.errors.WouldBlockError) as raised:
            silence.generator(namespace="r").release_node()
        assert "use await ids.arelease_node(), or timeout=" in str(raised.value)
        for call, instead in (
            (lambda: hours.batch(7), "abatch(7)"),
            (lambda: hours.fill(array.array("q", [0] * 9)), "abatch(9)"),
        ):
            with pytest.raises(frazil.errors.WouldBlockError) as raised:
                call()
            assert f"use await ids.{instead}, or timeout=" in str(raised.value)

    asyncio.run(main())


def test_a_loop_waits_for_the_memory_however_late_its_thread_runs():
    # The only number is held, so only the limit ends the wait.
    options = {"node": 1, "store": "memory", "namespace": "late", "detached": True}

    async def main():
        with frazil.Snowflake("standard", **options):
            since = time.monotonic()
            with pytest.raises((frazil.errors.NodeInUseError, frazil.errors.WouldBlockError)):
                frazil.Snowflake("standard", **options)
            assert time.monotonic() - since >= 0.9

    asyncio.run(main())


BAD = [-1, -0.001, float("nan"), float("-inf"), timedelta(seconds=-1), 10**5000]
WRONG = ["1", True, False, b"1", [1], object(), 1j]


def test_bad_timeouts(node):
    ids, numbers = open_manual(), frazil.Segment("bad store=memory namespace=timeouts")
    buffer = array.array("q", [0])
    calls = []
    for of in (ids, numbers):
        calls += [of.next, lambda of=of, **o: of.batch(1, **o), lambda of=of, **o: of.fill(buffer, **o), of.close, of.anext]
        calls += [lambda of=of, **o: of.abatch(1, **o), of.aclose]
    calls += [ids.release_node, ids.arelease_node, numbers.discard, numbers.adiscard]
    for cls in (frazil.Snowflake, frazil.Segment, frazil.Tickets, frazil.Buffered):
        calls += [lambda cls=cls, **o: cls("standard node=1", **o), lambda cls=cls, **o: cls.aopen("standard node=1", **o)]
    for call in calls:
        for value in BAD:
            with pytest.raises(frazil.errors.OutOfRangeError, match=r"^timeout=.* is out of range: 0 s or more, or float\(\"inf\"\)$"):
                call(timeout=value)
        for value in WRONG:
            with pytest.raises(frazil.errors.WrongTypeError, match=f"^timeout must be .*, not {type(value).__name__}$"):
                call(timeout=value)
    for wrong in ({"time_out": 1}, {"timeout": 1, "max": 2}):
        with pytest.raises(TypeError, match="only timeout="):
            ids.next(**wrong)
    # The refused calls have closed and spent nothing.
    assert numbers.next() == 1
    for forever in (None, float("inf"), 1e300, 10**300, timedelta.max, 0, -0.0, 5):
        assert ids.next(timeout=forever) > 0 and numbers.next(timeout=forever) > 0
    assert frazil.Snowflake("standard", node=node, timeout=float("inf")).next() > 0


def test_many_calls_do_not_hold_a_loop(node):
    async def main(silent):
        # 16 IDs a second.
        ids = await frazil.Snowflake.aopen("layout='time:31@1s node:10 sequence:4 epoch:2025-01-01' exhausted=wait:60s", node=node)
        tasks = [asyncio.create_task(ids.anext()) for _ in range(64)]
        turns = 0
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0.001)
            turns += 1
        assert len({task.result() for task in tasks}) == 64
        assert turns > 20, "a call that waits in place would hold the loop for a second"

        # It is not known when these calls can succeed.
        photos = frazil.Tickets("photos", store=silent, wait="1m")
        tasks = [asyncio.create_task(photos.anext()) for _ in range(2000)]
        since = time.monotonic()
        await asyncio.sleep(0)
        assert time.monotonic() - since < 2, "a look of 2 ms at each is 4 s"
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        asyncio.run(main([f"etcd://127.0.0.1:{server.getsockname()[1]}" for server in (one, other)]))


def test_deadlines_count_from_the_call():
    async def main(store):
        tickets = frazil.Tickets("photos", store=store, wait="1s")
        since = time.monotonic()
        failures = await asyncio.gather(*(tickets.anext() for _ in range(60)), return_exceptions=True)
        assert {type(error) for error in failures} == {frazil.errors.SegmentExhaustedError}
        # One after another, these calls would take a minute; in an executor, 5 or 10 s.
        assert time.monotonic() - since < 4

    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        asyncio.run(main([f"etcd://127.0.0.1:{server.getsockname()[1]}" for server in (one, other)]))


def test_async_with(tmp_path):
    async def main():
        async with await frazil.Snowflake.aopen("standard", store=f"file:{tmp_path}", namespace="with") as ids:
            assert ascends(await ids.abatch(10_000))
            assert set(slots(tmp_path, "with").values()) == {"held"}
        assert set(slots(tmp_path, "with").values()) == {"free"}
        with pytest.raises(frazil.errors.ClosedError):
            await ids.anext()
        with pytest.raises(frazil.errors.ClosedError):
            await ids.arelease_node()
        assert await ids.aclose() is None
        async with await frazil.Segment.aopen("orders", store=f"file:{tmp_path}") as orders:
            assert await orders.anext() == 1
        with pytest.raises(frazil.errors.ClosedError):
            orders.next()
        with pytest.raises(TypeError, match="Segment"):
            await frazil.Numbers.aopen("orders", store=f"file:{tmp_path}")
        # A pending call keeps its handle alive.
        assert await frazil.Snowflake("standard", store=f"file:{tmp_path}", timeout=30).anext() > 0

    asyncio.run(main())


def test_a_number_of_a_cancelled_open_is_released(tmp_path):
    async def main():
        for pause in [0, 0, 0.001, 0.002, 0.005, 0.01] * 5:
            task = asyncio.create_task(frazil.Snowflake.aopen("standard", store=f"file:{tmp_path}", namespace="cancelled"))
            await asyncio.sleep(pause)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            if not task.cancelled():
                await task.result().aclose()
            del task

    asyncio.run(main())
    # If the caller of an open has gone, its number is kept for 10 s.
    assert in_time(lambda: set(slots(tmp_path, "cancelled").values()) == {"free"})


def test_a_loop_that_was_closed_during_the_call(tmp_path):
    ids = used_up()
    for _ in range(20):
        loop = asyncio.new_event_loop()
        short = frazil.Snowflake(HOURS, detached=True, namespace="closed-loop")
        short.batch(2)
        tasks = [loop.create_task(short.anext(timeout=0.02)), loop.create_task(ids.anext())]
        loop.run_until_complete(asyncio.sleep(0.005))
        loop.close()
        time.sleep(0.01)
        for task in tasks:
            task._log_destroy_pending = False
        del tasks
    assert asyncio.run(open_manual().anext()) > 0


@pytest.mark.parametrize(
    "end",
    [
        "loop = asyncio.new_event_loop()\ntask = loop.create_task(ids.anext(timeout=0.05))\nloop.run_until_complete(asyncio.sleep(0.045))",
        "threading.Thread(target=ids.next, daemon=True).start()\ntime.sleep(0.1)",
        "threading.Thread(target=lambda: asyncio.run(ids.anext()), daemon=True).start()\ntime.sleep(0.1)",
        "atexit.register(lambda: print(asyncio.run(open_manual().anext())))",
    ],
)
def test_the_interpreter_ends_while_calls_wait(end):
    code = f"import asyncio, atexit, sys, threading, time\nsys.path.insert(0, {os.path.dirname(__file__)!r})\n"
    code += f"from test_waits import open_manual, used_up\nids = used_up()\n{end}"
    programs = [start(code, stderr=subprocess.PIPE) for _ in range(4)]
    for program in programs:
        program.communicate(timeout=60)
        assert program.returncode == 0


SIGTERM = """
import frazil, os, signal, sys, threading, time
ids = frazil.Snowflake('standard', store=sys.argv[1], namespace='term')
orders = frazil.Segment('orders', store=sys.argv[1])
ids.next(), orders.next()
{before}
frazil.close_on_sigterm()
frazil.close_on_sigterm()
print('ready', flush=True)
{after}
"""


def terminated(folder, before="", after="time.sleep(60)"):
    """Sends SIGTERM to a program, and returns its status, its output, and the store's state."""
    code = SIGTERM.format(before=before, after=after).replace("sys.argv[1]", f"'file:{folder}'")
    program = start(code, stderr=subprocess.PIPE)
    said, took = ended(program, signal.SIGTERM)
    assert took < AT_ONCE_S
    return program.returncode, said, list(slots(folder, "term").values())


def test_sigterm_releases_the_number(tmp_path):
    assert terminated(tmp_path) == (-signal.SIGTERM, "", ["free"])
    # The release also works during a wait.
    waits = "from test_waits import used_up\nused_up().next()"
    assert terminated(tmp_path, f"sys.path.insert(0, {os.path.dirname(__file__)!r})", waits) == (-signal.SIGTERM, "", ["free"])
    mine = "def mine(number, frame):\n    print('mine', number, frame is not None)\n    sys.exit(3)\nsignal.signal(signal.SIGTERM, mine)"
    assert terminated(tmp_path, mine) == (3, f"mine {signal.SIGTERM} True\n", ["free"])
    closed = (
        "def mine(*_):\n    try: ids.next()\n    except frazil.errors.ClosedError: print('closed')\nsignal.signal(signal.SIGTERM, mine)"
    )
    assert terminated(tmp_path, closed, "time.sleep(1)") == (0, "closed\n", ["free"])


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGTERM)", "sys.exit()"], ids=["sigterm", "exit"])
def test_a_silent_store_does_not_keep_the_numbers_of_another(end, tmp_path):
    # Many numbers, so that their release takes a while.
    code = f"""
import fcntl, frazil, os, signal, sys
os.makedirs("{tmp_path}/silent"), os.makedirs("{tmp_path}/well")
stores = [("silent", "one")] + [("well", f"n{{at}}") for at in range(12)]
ids = [frazil.Snowflake("standard", store=f"file:{tmp_path}/{{store}}", namespace=name, window="60s") for store, name in stores]
# A file descriptor as an int, which the interpreter does not close at its end.
fcntl.flock(os.open("{tmp_path}/silent/one/.lock", os.O_RDWR), fcntl.LOCK_EX)
frazil.close_on_sigterm()
{end}
"""
    program = start(code)
    program.communicate(timeout=60)
    assert program.returncode in (0, -signal.SIGTERM)
    assert [list(slots(tmp_path / "well", f"n{at}").values()) for at in range(12)] == [["free"]] * 12
    assert list(slots(tmp_path / "silent", "one").values()) == ["held"]


def test_ctrl_c_does_not_interrupt_the_release_on_sigterm(tmp_path):
    code = f"""
import fcntl, frazil, os, time
os.makedirs("{tmp_path}/silent"), os.makedirs("{tmp_path}/well")
ids = [frazil.Snowflake("standard", store=f"file:{tmp_path}/{{store}}", namespace="term", window="60s") for store in ("silent", "well")]
fcntl.flock(os.open("{tmp_path}/silent/term/.lock", os.O_RDWR), fcntl.LOCK_EX)
frazil.close_on_sigterm()
print("ready", flush=True)
time.sleep(60)
"""
    program = start(code, stderr=subprocess.PIPE)
    assert program.stdout.readline() == "ready\n"
    program.send_signal(signal.SIGTERM)
    time.sleep(0.1)
    program.send_signal(signal.SIGINT)
    program.communicate(timeout=60)
    # The program handles whichever signal it notices first.
    assert program.returncode in (-signal.SIGTERM, -signal.SIGINT)
    assert list(slots(tmp_path / "well", "term").values()) == ["free"]


def test_sigterm_that_is_ignored_changes_nothing(tmp_path):
    ignores = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    status, said, _ = terminated(tmp_path, ignores, "time.sleep(1); print(ids.next() > 0)")
    assert (status, said) == (0, "True\n")


def test_sigterm_is_for_the_main_thread():
    raised_errors, before = [], signal.getsignal(signal.SIGTERM)

    def elsewhere():
        with pytest.raises(frazil.errors.OutOfRangeError, match="main thread, .* 'another'") as raised:
            frazil.close_on_sigterm()
        raised_errors.append(raised.value)

    thread = threading.Thread(target=elsewhere, name="another")
    thread.start()
    thread.join()
    assert isinstance(raised_errors[0], ValueError) and signal.getsignal(signal.SIGTERM) is before


def test_a_child_releases_only_its_own_number(tmp_path):
    code = SIGTERM.replace("sys.argv[1]", f"'file:{tmp_path}'").format(
        before="",
        after="""
child = os.fork()
if child == 0:
    ids.next()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
_, status = os.waitpid(child, 0)
print(os.WTERMSIG(status), ids.next() > 0)
from test_lease import slots
import pathlib
print(sorted(slots(pathlib.Path(sys.argv[1][5:]), 'term').values()))
""".replace("sys.argv[1][5:]", repr(str(tmp_path))),
    )
    program = start(f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n{code}")
    said, _ = program.communicate(timeout=60)
    assert said == "ready\n15 True\n['free', 'held']\n"


FORKS = """
import array, fcntl, frazil, os, signal
SLOW = "layout='time:31@1s node:10 sequence:4 epoch:2025-01-01' exhausted=wait:60s start=zero"
if name == "segment":
    ids = frazil.Segment("orders", store=f"file:{folder}", wait="60s", step=10)
    lock = open(f"{folder}/default~orders/.lock")
    fcntl.flock(lock, fcntl.LOCK_EX)
else:
    ids = frazil.Snowflake(SLOW, store=f"file:{folder}", window="60s", renew="10s")
child = None

def handler(*_):
    global child
    signal.setitimer(signal.ITIMER_REAL, 0)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
    if name == "segment":
        fcntl.flock(lock, fcntl.LOCK_UN)

signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
made = array.array("q", bytes(8 * 60))
if name == "fill":
    ids.fill(made)
else:
    made[:] = array.array("q", ids.batch(len(made)))
if child == 0:
    with open(f"{folder}/child", "wb") as file:
        made.tofile(file)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
theirs = array.array("q")
with open(f"{folder}/child", "rb") as file:
    theirs.fromfile(file, len(made))
assert list(made) == sorted(made) and list(theirs) == sorted(theirs)
print(len({*made, *theirs}))
"""


@pytest.mark.parametrize("name", ["batch", "fill", "segment"])
def test_a_signals_handler_may_fork_within_a_batch(name, tmp_path):
    """Numbers from before a fork belong to the parent, also those that the call got before it began to wait."""
    program = start(f"name, folder = {name!r}, {str(tmp_path)!r}\n{FORKS}")
    assert program.communicate(timeout=90)[0] == "120\n"


def test_exit_handlers_of_the_program_run_before_the_close(tmp_path):
    code = "import atexit, frazil\natexit.register(lambda: print(ids.next() > 0))\n"
    program = start(f"{code}ids = frazil.Snowflake('standard', store='file:{tmp_path}')")
    assert program.communicate(timeout=60)[0] == "True\n"
    assert list(slots(tmp_path).values()) == ["free"]


def test_a_start_says_what_it_waits_for(tmp_path, caplog):
    held = Silence(tmp_path).left_behind()
    with pytest.raises(
        frazil.errors.NodeInUseError, match=r"namespace=default: node number 7 is held by \S+:\d+ until 20.*use a longer timeout="
    ) as raised:
        frazil.Snowflake("standard", timeout=5, **held)
    assert raised.value.retry_after > 0
    messages = [record.getMessage() for record in caplog.records if record.name == "frazil"]
    assert len(messages) == 1 and "namespace=default: waiting: node number 7 is held by " in messages[0]


def test_a_log_handler_may_close_the_generator_and_may_fail(tmp_path, monkeypatch):
    held, slow = Silence(tmp_path).left_behind(), used_up()
    ended, failed = [], []

    class Closes(logging.Handler):
        def emit(self, record):
            slow.close()
            with contextlib.suppress(frazil.errors.WouldBlockError):
                frazil.Snowflake("standard", timeout=0, **held)
            raise LookupError("mine")

    def wait():
        try:
            slow.next()
        except frazil.FrazilError as error:
            ended.append(type(error))

    monkeypatch.setattr(sys, "unraisablehook", lambda raised: failed.append(raised.exc_type))
    thread, handler, log = threading.Thread(target=wait), Closes(), logging.getLogger("frazil")
    thread.start()
    log.addHandler(handler)
    try:
        with pytest.raises(frazil.errors.NodeInUseError, match="is held by"):
            frazil.Snowflake("standard", timeout=5, **held)
    finally:
        log.removeHandler(handler)
    thread.join()
    assert ended == [frazil.errors.ClosedError] and failed == [LookupError]


def test_a_callback_of_a_call_may_close_its_generator(node):
    async def main():
        ids = await frazil.Snowflake.aopen("layout='time:31@1s node:10 sequence:4 epoch:2025-01-01' exhausted=wait:60s", node=node)
        # More calls than can complete while a busy machine stops the loop for seconds.
        tasks = [asyncio.create_task(ids.anext()) for _ in range(400)]
        tasks[20].add_done_callback(lambda _: ids.close())
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(end) for end in ends} == {int, frazil.errors.ClosedError}

    asyncio.run(main())
