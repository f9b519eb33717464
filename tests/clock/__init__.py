"""A system clock that tests turn, for processes of their own.

libfaketime does as much, but holds a lock while it reads the clock: a child that was forked at that instant waits for ever, as pthreads'
locks do not survive a fork. This one has none.
"""

import atexit
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

FILE = "FRAZIL_TEST_CLOCK"
# What a busy machine may lose between two steps.
SLACK_S = 60


@functools.cache
def library():
    """Compiles the library that shows it, once a process."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="frazil-clock-"))
    atexit.register(shutil.rmtree, folder)
    built = folder / "turned.so"
    source = pathlib.Path(__file__).with_name("turned.c")
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", source, "-o", built], check=True, timeout=120)
    return built


def under(path):
    """The environment of a process whose clock `turn` turns, through the file of that path; now it is the true one."""
    path.write_bytes(bytes(8))
    return {"LD_PRELOAD": str(library()), FILE: str(path)}


def turn(seconds, path=None):
    """Turns the clock of the processes that have that file, or of this one, to the true time plus so many seconds."""
    # In place, as it is mapped.
    with open(path or os.environ[FILE], "r+b", buffering=0) as file:
        file.write(round(seconds * 1e9).to_bytes(8, sys.byteorder, signed=True))
        # What the kernel has written down is the true time. A test whose clock stands would find nothing to complain of.
        shown = time.time() - os.fstat(file.fileno()).st_mtime
    assert path or abs(shown - seconds) < SLACK_S, f"the clock shows {shown} s more than the true one, not {seconds}"
    # A generator may trust the processor's counter for 1 ms before it reads the clock again.
    time.sleep(0.002)
