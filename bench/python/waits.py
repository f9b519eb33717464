"""The time that each wait takes to end, once something ends it, the worst of five: `.venv/bin/python bench/python/waits.py`.

The figures are measured, not asserted: tests/python/test_waits.py holds the limits that also hold on a busy machine.
"""

import asyncio
import pathlib
import signal
import socket
import sys
import tempfile
import threading
import time

import frazil

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests/python"))
from test_waits import ASYNC, WAITS, Silence, waiting

BEGUN_S = 0.3
ROUNDS = 5


def milliseconds(seconds):
    return f"{seconds * 1000:.1f}"


def by_ctrl_c(name, folder):
    program = waiting(
        name,
        folder,
        "import time\nos = __import__('os')\nleave = os._exit\nos._exit = lambda _: print(time.monotonic(), flush=True) or leave(0)",
    )
    assert program.stdout.readline() == "ready\n"
    time.sleep(BEGUN_S)
    since = time.monotonic()
    program.send_signal(signal.SIGINT)
    error, at = program.communicate(timeout=100)[0].splitlines()
    return error.split()[0], float(at) - since


def by_close(name, folder):
    silence = Silence(folder)
    ids, call, _ = WAITS[name](silence)
    if ids is None or "close" in name:
        return None
    ended = []

    def wait():
        try:
            call()
        except frazil.FrazilError as error:
            ended.append((type(error).__name__, time.monotonic()))

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(BEGUN_S)
    since = time.monotonic()
    try:
        ids.close(timeout=0)
    except frazil.errors.WouldBlockError:
        pass
    thread.join()
    return ended[0][0], ended[0][1] - since


def by_timeout(name, folder):
    silence = Silence(folder)
    _ids, call, _ = WAITS[name](silence)
    since = time.monotonic()
    try:
        call(timeout=BEGUN_S)
    except frazil.FrazilError as error:
        return type(error).__name__, time.monotonic() - since - BEGUN_S


def by_cancel(name, folder):
    silence = Silence(folder)
    _ids, _, call = WAITS[name](silence)
    if name not in ASYNC:
        return None

    async def main():
        task = asyncio.create_task(call())
        await asyncio.sleep(BEGUN_S)
        since = time.monotonic()
        task.cancel()
        try:
            await task
        except asyncio.CancelledError as error:
            return type(error).__name__, time.monotonic() - since

    return asyncio.run(main())


def by_timeout_in_a_loop(name, folder):
    silence = Silence(folder)
    _ids, _, call = WAITS[name](silence)
    if name not in ASYNC:
        return None

    async def main():
        since = time.monotonic()
        try:
            await call(timeout=BEGUN_S)
        except frazil.FrazilError as error:
            return type(error).__name__, time.monotonic() - since - BEGUN_S

    return asyncio.run(main())


def held_by(count):
    """Measures how long a loop is blocked, and the time until `count` tasks have their IDs, if the tick is used up."""

    async def main():
        ids = await frazil.Snowflake.aopen("layout='time:31@100ms node:10 sequence:4 epoch:2025-01-01' exhausted=wait:60s", node=7)
        since = last = time.monotonic()
        tasks = [asyncio.create_task(ids.anext()) for _ in range(count)]
        longest = 0
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0)
            now = time.monotonic()
            longest, last = max(longest, now - last), now
            await asyncio.sleep(0.0005)
            last = time.monotonic()
        return longest, time.monotonic() - since

    return asyncio.run(main())


def ended_within(count):
    """Measures the end of the last call to stores that never answer, with a limit of 1 s."""

    async def main(store):
        tickets = frazil.Tickets("photos", store=store, wait="1s")
        since = time.monotonic()
        await asyncio.gather(*(tickets.anext() for _ in range(count)), return_exceptions=True)
        return time.monotonic() - since

    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        return asyncio.run(main([f"etcd://127.0.0.1:{server.getsockname()[1]}" for server in (one, other)]))


def worst(way, name):
    """The end of a wait, and the longest time that it took."""
    ends = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            ends.append(way(name, pathlib.Path(folder)))
    if None in ends:
        return ""
    error, took = max(ends, key=lambda end: end[1])
    # A call does not wait if the next ID certainly comes after its limit.
    return f"{error} at once" if took < -BEGUN_S / 2 else f"{error} {milliseconds(took)} ms"


def main():
    ways = [by_ctrl_c, by_close, by_timeout, by_cancel, by_timeout_in_a_loop]
    print("| wait |", " | ".join(way.__name__.replace("_", " ") for way in ways), "|")
    print("|---|" + "---|" * len(ways))
    for name in WAITS:
        print(f"| {name} | " + " | ".join(worst(way, name) for way in ways) + " |", flush=True)
    held, took = held_by(200)
    print(f"200 anext on a used-up tick: the loop is blocked for {milliseconds(held)} ms at most; all have IDs after {took:.2f} s")
    print(f"60 anext with wait=1s on stores that never answer: all have failed after {ended_within(60):.2f} s")


main()
