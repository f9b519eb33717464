#!/usr/bin/env python3
"""Kills processes of the Windows build that mint from one folder, and looks for duplicate IDs.

    kills.py PROGRAM KILLS      # PROGRAM is frazil.exe, run by Wine

With few node numbers, each is leased again and again. The last line has libtest's form.
"""

import collections
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

SIDE_BY_SIDE = 4
LINE = "layout='time:41@1ms node:3 sequence:4 epoch:2025-01-01' window=1s renew=100ms rollback=error"


def tenure(program: str, store: str, printed: pathlib.Path) -> bool:
    """Runs a process that mints for a moment, and kills it. Returns whether it has printed an ID."""
    with printed.open("wb") as out:
        process = subprocess.Popen(
            ["wine", program, "next", f"{LINE} store={store}", "-n", "1000000000"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        until = time.monotonic() + 20
        while printed.stat().st_size == 0 and process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(random.uniform(0, 0.4))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return printed.stat().st_size > 0


def main() -> int:
    program, kills = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        store = "file:Z:" + str(folder / "store")
        lock, begun, useful = threading.Lock(), 0, 0
        nodes: collections.Counter[int] = collections.Counter()
        ids: set[int] = set()
        repeated = 0

        def work() -> None:
            nonlocal begun, useful, repeated
            while True:
                with lock:
                    if begun == kills:
                        return
                    begun += 1
                    printed = folder / f"printed-{begun}"
                if not tenure(program, store, printed):
                    continue
                # A line that was cut off holds no ID.
                lines = printed.read_bytes().split(b"\n")[:-1]
                printed.unlink()
                minted = [int(line) for line in lines]
                with lock:
                    useful += 1
                    nodes.update({id >> 4 & 7 for id in minted})
                    before = len(ids)
                    ids.update(minted)
                    repeated += len(minted) - (len(ids) - before)

        threads = [threading.Thread(target=work) for _ in range(SIDE_BY_SIDE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(f"{begun} kills, {useful} of them after the first ID; {len(ids):,} IDs, {repeated} printed twice")
    print(f"tenures of each node number: {dict(sorted(nodes.items()))}")
    good = repeated == 0 and useful > kills // 2
    print(f"test result: {'ok' if good else 'FAILED'}. {int(good)} passed; {int(not good)} failed; 0 ignored")
    return not good


if __name__ == "__main__":
    sys.exit(main())
