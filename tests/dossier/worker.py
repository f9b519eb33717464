"""A process that mints through the library for C and writes down its IDs: worker.py LIBRARY SPEC FOLDER FORK_MS.

An ID is written after the call has returned it, and never before. With FORK_MS, a child is forked that often, which mints for a moment.
"""

import array
import ctypes
import os
import sys
import time

BATCH = 64
PAUSE_S = 0.004
# The number of batches of a forked child, and the most children of a process: on a busy machine they would pile up.
CHILD_BATCHES, MOST_CHILDREN = 30, 16
# Errors after which another attempt may succeed: a number may be held for a while.
LATER = ("NODE_IN_USE", "NO_FREE_NODE", "LEASE_EXHAUSTED", "WOULD_BLOCK", "STORE_UNREACHABLE", "CLOCK_")


class Library:
    """The calls of frazil.h that are needed."""

    def __init__(self, path, spec):
        self.calls = ctypes.CDLL(path)
        self.calls.frazil_last_error.restype = ctypes.c_char_p
        self.calls.frazil_error_name.restype = ctypes.c_char_p
        self.buffer = (ctypes.c_int64 * BATCH)()
        self.ids, self.turn = ctypes.c_void_p(), 0
        while status := self.calls.frazil_snowflake_open(spec.encode(), ctypes.byref(self.ids)):
            error = self.name(status)
            print(error, flush=True)
            if not error.startswith(LATER):
                sys.exit(1)
            time.sleep(0.1)

    def name(self, status):
        return f"{self.calls.frazil_error_name(status).decode()}: {self.calls.frazil_last_error().decode()}"

    def mint(self, file):
        """Mints a batch, and writes it down. Returns the error's name, or None."""
        self.turn += 1
        if self.turn % 2:
            # One by one, which takes another path through the library than a batch.
            status = self.calls.frazil_snowflake_next(self.ids, self.buffer)
            count = 1
        else:
            status = self.calls.frazil_snowflake_batch(self.ids, self.buffer, ctypes.c_size_t(BATCH))
            count = BATCH
        if status:
            return self.name(status)
        file.write(array.array("q", self.buffer[:count]).tobytes())
        return None


def begin(folder):
    return (folder / f"{os.getpid()}.ids").open("ab", buffering=0)


def child(library, folder):
    with begin(folder) as file:
        for _ in range(CHILD_BATCHES):
            if library.mint(file):
                break
            time.sleep(PAUSE_S)
    os._exit(0)


def main(path, spec, folder, fork_ms):
    library, last, children = Library(path, spec), time.monotonic(), set()
    with begin(folder) as file:
        while True:
            if error := library.mint(file):
                print(error, flush=True)
                time.sleep(0.02)
            if fork_ms and len(children) < MOST_CHILDREN and time.monotonic() - last > fork_ms / 1000:
                last = time.monotonic()
                pid = os.fork() or child(library, folder)
                children.add(pid)
                (folder / "forks").open("ab").write(b".")
            children -= {pid for pid in children if os.waitpid(pid, os.WNOHANG)[0]}
            time.sleep(PAUSE_S)


if __name__ == "__main__":
    from pathlib import Path

    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
