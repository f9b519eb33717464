"""Awaited IDs in copies of a running process: real copies by a raw `clone`, like those of core/tests/copies.rs, and calls of restored().

FRAZIL_COPIED_IDS=10000000 .venv/bin/python -m pytest -q -s tests/leases/test_copied_answers.py
"""

import json
import os
import platform
import subprocess
import sys

import pytest

IDS = int(os.environ.get("FRAZIL_COPIED_IDS", "1000000"))
# More IDs than the core makes at once, so that a call always waits.
EACH = 200_000

BEGIN = """
import asyncio, ctypes, json, os, re, sys, threading, time
import frazil
import numpy as np
from frazil import _async

url, rounds, each, noticed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "noticed"
answered, wake = threading.Event(), _async._wake
_async._wake = lambda loop: (wake(loop), answered.set())
LAYOUT = "standard exhausted=wait:60s window=60s renew=15s"
space = f"answers-{os.getpid()}"
ids = frazil.Snowflake(LAYOUT, store=url, namespace=space, timeout=60)
"""

COPIES = """
sources = {"ids": ids, "ring": frazil.Buffered(LAYOUT, store=url, namespace=space + "-ring", timeout=60),
           "segment": frazil.Segment("answers", store=url, namespace=space, step=100_000, wait="60s", timeout=60)}
libc = ctypes.PyDLL(None)  # which keeps the GIL

def keep_the_page():
    "Has children inherit the page of the process's number."
    for line in open("/proc/self/smaps"):
        if re.match("[0-9a-f]+-[0-9a-f]+ ", line):
            start, end = (int(at, 16) for at in line.split()[0].split("-"))
        elif line.startswith("VmFlags:") and "wf" in line.split():
            assert libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), 19) == 0  # MADV_KEEPONFORK
            return
    raise LookupError("no page is wiped at a fork")

def save(name, numbers):
    np.save(name, np.array(numbers, dtype=np.int64))

async def main():
    copied = 0
    for turn in range(rounds):
        source = sources[list(sources)[turn % 3]]
        answered.clear()
        task = asyncio.ensure_future(source.abatch(each))
        await asyncio.sleep(0)
        assert not task.done() and answered.wait(100)
        time.sleep(0.02)  # A copy that is made while other threads are at work has their locks, and not them.
        os.mkdir(f"copy-{turn}")
        child = libc.syscall(56, 17, 0, 0, 0, 0)  # SYS_clone, SIGCHLD
        if child == 0:
            try:
                os.chdir(f"copy-{turn}")
                with open("generation", "w") as file:
                    file.write(f"copy {turn}")
                time.sleep(0.002)  # The file is read once a millisecond.
                try:
                    save("awaited.npy", await task)
                except frazil.errors.CopiedError:
                    save("awaited.npy", [])
                save("again.npy", source.batch(1000, timeout=60))
                os._exit(0)
            finally:
                os._exit(1)
        save(f"awaited-{turn}.npy", await task)
        assert os.waitpid(child, 0)[1] == 0, "a copy failed"
        copied += np.load(f"copy-{turn}/awaited.npy").size == 0
    repeated = total = 0
    for kind in range(3):
        turns = range(kind, rounds, 3)
        files = [name for turn in turns for name in (f"awaited-{turn}.npy", f"copy-{turn}/awaited.npy", f"copy-{turn}/again.npy")]
        found = np.concatenate([np.load(name) for name in files] or [np.array([])])
        total += found.size
        repeated += found.size - np.unique(found).size
    print(json.dumps({"copies": rounds, "COPIED": int(copied), "ids": int(total), "repeated": int(repeated)}))

for source in sources.values():
    source.next(timeout=60)
keep_the_page()
asyncio.run(main())
"""

RESTORED = """
async def main():
    copied = total = repeated = 0
    before, kept = set(), []
    for turn in range(rounds):
        answered.clear()
        task = asyncio.ensure_future(ids.abatch(each))
        await asyncio.sleep(0)
        # Before the answer, when it is there, and later.
        if turn % 3:
            assert answered.wait(100)
        if turn % 3 < 2:
            frazil.restored()
        while True:
            try:
                found = np.array(await task, dtype=np.int64)
                break
            except frazil.errors.CopiedError:
                copied += 1
                task = ids.abatch(each)
        nodes = set(np.unique(found >> 12 & 1023).tolist())
        repeated += found.size * bool(turn % 3 < 2 and nodes & before)
        before |= nodes
        total += found.size
        kept.append(found)
    kept = np.concatenate(kept)
    print(json.dumps({"restored": rounds - rounds // 3, "COPIED": copied, "ids": total, "repeated": repeated + int(kept.size - np.unique(kept).size)}))

asyncio.run(main())
"""


def run(tmp_path, url, program, rounds, noticed="noticed"):
    env = {name: value for name, value in os.environ.items() if name != "FRAZIL_GENERATION"}
    if program == COPIES and noticed == "noticed":
        (tmp_path / "generation").write_text("original")
        env["FRAZIL_GENERATION"] = "file:generation"
    command = [sys.executable, "-c", BEGIN + program, url, str(rounds), str(EACH), noticed]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    print(found)
    return found


ROUNDS = max(3, IDS // EACH)
real = pytest.mark.skipif(platform.machine() != "x86_64" or sys.platform != "linux", reason="a raw clone of Linux on x86_64")


@real
@pytest.mark.stores("postgresql")
def test_copies_repeat_no_awaited_id(store, tmp_path):
    """COPIED in each copy, which continues with its own number."""
    found = run(tmp_path, store[1], COPIES, ROUNDS)
    assert found == {"copies": ROUNDS, "COPIED": ROUNDS, "ids": ROUNDS * (EACH + 1000), "repeated": 0}


@real
@pytest.mark.stores("postgresql")
def test_copies_that_nobody_notices_repeat_awaited_ids(store, tmp_path):
    found = run(tmp_path, store[1], COPIES, 3, "unnoticed")
    assert found["COPIED"] == 0 and found["repeated"] >= 3 * EACH


@pytest.mark.stores("postgresql")
def test_a_storm_of_restored_repeats_no_awaited_id(store, tmp_path):
    found = run(tmp_path, store[1], RESTORED, ROUNDS)
    assert found["ids"] == ROUNDS * EACH and found["repeated"] == 0
    # COPIED replaces each answer that was pending when the process was restored.
    assert found["COPIED"] >= ROUNDS // 3
