"""Answers that wait for their caller while the machine is copied or the process forks. Two processes never get the same answer."""

import pytest
from test_lease import start

# `task` has a call whose answer is ready. Then `change` copies or forks this process.
PROGRAM = """
import asyncio, contextlib, fcntl, os, sys, threading, frazil, trio
from frazil import _async

SLOW = f"layout='time:31@250ms node:16 sequence:1 epoch:2025-01-01' exhausted=wait:60s empty=wait:60s store=memory namespace=n{os.getpid()}"
SLOW_IDS = SLOW.replace(" empty=wait:60s", "")
answered, wake = threading.Event(), _async._wake
_async._wake = lambda loop: (wake(loop), answered.set())

def used_up(ids):
    with contextlib.suppress(frazil.errors.WouldBlockError):
        while True:
            ids.next(timeout=0)
    return ids

# Each of these opens a handle, and returns a call that waits and a function that has it answered.
class Held:
    "A segment whose store is silent until `release`."
    def __init__(self, cls, *names):
        self.ids = cls("orders", store=" ".join(f"file:{folder}/{name}" for name in names), wait="60s", timeout=30)
        self.ids.next(timeout=30)
        self.locks = [open(f"{folder}/{name}/default~orders/.lock") for name in names]
        for lock in self.locks:
            fcntl.flock(lock, fcntl.LOCK_EX)
    def release(self):
        for lock in self.locks:
            fcntl.flock(lock, fcntl.LOCK_UN)

def nothing():
    pass

def source(kind):
    if kind in ("segment", "tickets"):
        held = Held(frazil.Segment, "a") if kind == "segment" else Held(frazil.Tickets, "a", "b")
        return lambda: used_up(held.ids).anext(), held.release
    if kind == "ring":
        ring = frazil.Buffered(SLOW, size=2, timeout=30)
        return lambda: used_up(ring).anext(), nothing
    if kind == "aopen":
        return lambda: frazil.Snowflake.aopen("standard", store=f"file:{folder}", namespace="opened"), nothing
    if kind == "aopen of a fixed number":
        return lambda: frazil.Snowflake.aopen(SLOW_IDS.replace("store=memory", "node=7")), nothing
    if kind == "aopen of a ring":
        return lambda: frazil.Buffered.aopen(SLOW, size=64), nothing
    ids = frazil.Snowflake(SLOW_IDS, timeout=30)
    calls = {"anext": lambda: used_up(ids).anext(), "abatch": lambda: ids.abatch(5), "arelease_node": ids.arelease_node, "aclose": ids.aclose}
    return calls[kind], nothing

async def said(awaited):
    try:
        return type(await awaited).__name__
    except frazil.FrazilError as error:
        return f"{type(error).__name__}: {error}"

child = None
def change():
    global child
    if code == "COPIED":
        frazil.restored()
    elif code == "FORKED":
        child = os.fork()
        # Their loops share what wakes them, so one runs after the other.
        if child:
            assert os.waitpid(child, 0)[1] == 0

def report(said):
    if child == 0:
        with open(f"{folder}/child", "w") as file:
            file.write(said)
        os._exit(0)
    if child:
        print(open(f"{folder}/child").read())
    print(said)
"""

ASYNCIO = """
async def main():
    make, release = source(kind)
    while True:
        answered.clear()
        task = asyncio.ensure_future(said(make()))
        await asyncio.sleep(0)
        if not task.done():
            break
    release()
    if when == "unanswered":
        change()
    elif when == "queued":
        assert answered.wait(60)
        change()
    else:
        assert answered.wait(60)
        # After the callback that settles the future, and before the task continues.
        asyncio.get_running_loop().call_soon(change)
    report(await task)
asyncio.run(main())
"""

TRIO = """
async def main():
    make, release = source(kind)
    ends = []
    async def task():
        ends.append(await said(make()))
    while True:
        answered.clear()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(task)
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
            if ends:
                ends.clear()
                continue
            release()
            if when != "unanswered":
                assert answered.wait(60)
            change()
            if child:
                # Both have one epoll, in which the child may have taken what was to wake this loop.
                print(open(f"{folder}/child").read(), flush=True)
                os._exit(0)
        break
    report(ends[0])
trio.run(main)
"""

LOOPS = {"asyncio": ASYNCIO, "trio": TRIO}
COPIED = "CopiedError: this call was answered before the machine was copied, and each copy has the answer: make the call again"
FORKED = "ForkedError: this call was made by the parent process, which has its answer: make the call again in the child"
IDS = ["anext", "abatch", "ring", "segment", "tickets"]
OPENS = ["aopen", "aopen of a fixed number", "aopen of a ring"]
VALUES = {"abatch": "list", "aopen of a ring": "Buffered", **dict.fromkeys(OPENS[:2], "Snowflake")}


def run(tmp_path, code, kind, when, loop):
    said, _ = start(f"{code=}; {kind=}; {when=}; folder = {str(tmp_path)!r}\n{PROGRAM}{LOOPS[loop]}").communicate(timeout=100)
    return said.splitlines()


@pytest.mark.parametrize(("loop", "when"), [("asyncio", "queued"), ("asyncio", "settled"), ("trio", "queued")])
@pytest.mark.parametrize("kind", IDS + OPENS)
def test_an_answer_that_waits_for_its_caller_is_copied(kind, loop, when, tmp_path):
    """COPIED, because the answer is in every copy."""
    assert run(tmp_path, "COPIED", kind, when, loop) == [COPIED]


@pytest.mark.parametrize(
    ("loop", "when"), [("asyncio", "queued"), ("asyncio", "settled"), ("asyncio", "unanswered"), ("trio", "queued"), ("trio", "unanswered")]
)
@pytest.mark.parametrize("kind", IDS + OPENS)
def test_an_answer_that_waits_for_its_caller_is_forked(kind, loop, when, tmp_path):
    """FORKED, because the answer belongs to the parent, even if it comes after the fork. The child does not wait for it."""
    said = run(tmp_path, "FORKED", kind, when, loop)
    # In trio, the parent cannot continue beside such a child.
    assert said == [FORKED] + [VALUES.get(kind, "int")] * (loop == "asyncio")


@pytest.mark.parametrize("code", ["COPIED", "FORKED"])
@pytest.mark.parametrize("kind", ["arelease_node", "aclose"])
def test_finished_releases_need_no_second_call(kind, code, tmp_path):
    """Neither COPIED nor FORKED, because these answers contain no ID."""
    assert set(run(tmp_path, code, kind, "queued", "asyncio")) == {"NoneType"}


@pytest.mark.parametrize("call", ["ids.next(timeout=60)", "ids.batch(3, timeout=60)", "ids.text('base32')"])
def test_an_id_that_waits_for_the_gil_is_copied(call):
    """COPIED: a thread has its ID, but another thread keeps the GIL until the machine has been copied."""
    code = f"""
import frazil, sys, threading, time
ids = frazil.Snowflake("layout='time:31@250ms node:10 sequence:1 epoch:2025-01-01' exhausted=wait:60s node=7 detached=true")
said, begun = [], threading.Event()
def mint():
    while True:
        try:
            ids.next(timeout=0)
        except frazil.errors.WouldBlockError:
            break
    begun.set()
    try:
        said.append({call})
    except frazil.FrazilError as error:
        said.append(type(error).__name__ + str(error))
thread = threading.Thread(target=mint)
thread.start()
begun.wait()
time.sleep(0.02)
sys.setswitchinterval(100)
end = time.monotonic() + 2
while time.monotonic() < end:
    pass
frazil.restored()
sys.setswitchinterval(0.005)
thread.join()
print(said[0])
"""
    said, _ = start(code).communicate(timeout=60)
    assert said.startswith("CopiedErrorthis process was copied with its machine, and another copy may use node number 7"), said
