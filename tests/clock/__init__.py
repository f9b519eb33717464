"""A system clock that tests set for the processes that they start.

libfaketime would do the same, but it holds a lock while it reads the clock. A child that is forked at that instant waits for ever, because
pthreads' locks do not survive a fork. This library has no lock.
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
# The time that may pass between two steps on a busy machine.
SLACK_S = 60


@functools.cache
def library():
    """Compiles the library that replaces the clock, once in each process."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="frazil-clock-"))
    atexit.register(shutil.rmtree, folder)
    built = folder / "turned.so"
    source = pathlib.Path(__file__).with_name("turned.c")
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", source, "-o", built], check=True, timeout=120)
    return built


def under(path):
    """Returns the environment of a process whose clock `turn` sets through a file. At first the clock shows the true time."""
    path.write_bytes(bytes(8))
    return {"LD_PRELOAD": str(library()), FILE: str(path)}


def turn(seconds, path=None):
    """Sets the clock of the processes with this file, or of this process, to the true time plus a number of seconds."""
    # The file is written in place, because processes have it mapped.
    with open(path or os.environ[FILE], "r+b", buffering=0) as file:
        file.write(round(seconds * 1e9).to_bytes(8, sys.byteorder, signed=True))
        # The kernel's time stamp of the file is the true time. Without this check, a test would pass even if the clock did not change.
        shown = time.time() - os.fstat(file.fileno()).st_mtime
    assert path or abs(shown - seconds) < SLACK_S, f"the clock shows {shown} s more than the true one, not {seconds}"
    # A generator may trust the processor's counter for 1 ms before it reads the clock again.
    time.sleep(0.002)
