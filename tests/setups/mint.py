"""Processes that mint for a time, and the comparison of all IDs that they have written down."""

import array
import collections
import dataclasses
import os
import pathlib
import random
import signal
import tempfile
import time

import frazil

PROCESSES = 4
AT_ONCE = 500
PAUSE_S = 0.02


@dataclasses.dataclass
class Told:
    ids: int
    duplicates: int
    opens: int
    killed: int
    errors: dict

    def __str__(self):
        return f"{self.ids} IDs, {self.duplicates} duplicates, {self.opens} opens, {self.killed} killed, errors {self.errors}"


def worker(spec, folder, end):
    """Mints, and at random closes, reopens or releases. Each ID is written down before the next call."""
    out = os.open(f"{folder}/{os.getpid()}.ids", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    log = pathlib.Path(f"{folder}/{os.getpid()}.log").open("a", buffering=1)  # noqa: SIM115 (until the process ends)
    chance, ids, due = random.Random(os.getpid()), None, 0
    while time.time() < end:
        if ids is None:
            try:
                ids, due = frazil.Snowflake(spec), time.time() + chance.uniform(3, 7)
                log.write("open\n")
            except frazil.FrazilError as error:
                log.write(f"{error.name}\n")
                time.sleep(0.2)
                continue
        buffer, written = array.array("q", bytes(8 * AT_ONCE)), AT_ONCE
        try:
            ids.fill(buffer)
        except frazil.FrazilError as error:
            written = error.written
            log.write(f"{error.name}\n")
        os.write(out, memoryview(buffer)[:written])
        if time.time() > due:
            due = time.time() + chance.uniform(3, 7)
            what = chance.choice(["close", "release", "kill"])
            if what == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                ids.close() if what == "close" else ids.release_node()
            except frazil.FrazilError as error:
                log.write(f"{error.name}\n")
            ids = None if what == "close" else ids
        time.sleep(PAUSE_S)


def start(spec, folder, end):
    child = os.fork()
    if child == 0:
        try:
            worker(spec, folder, end)
        finally:
            os._exit(0)
    return child


def mint(spec, seconds, fail_over):
    """Runs the processes, restarts killed ones, and counts IDs and errors."""
    with tempfile.TemporaryDirectory(prefix="frazil-setups-") as folder:
        end, half = time.time() + seconds, time.time() + seconds / 2
        children, killed = {start(spec, folder, end) for _ in range(PROCESSES)}, 0
        while children:
            child, status = os.waitpid(-1, os.WNOHANG)
            # Servers and orphans end here, too.
            if child in children:
                children.discard(child)
                if status:
                    killed += 1
                    children.add(start(spec, folder, end))
            if fail_over and time.time() > half:
                fail_over()
                fail_over = None
            time.sleep(0 if child else 0.05)
        ids = array.array("q", b"".join(path.read_bytes() for path in pathlib.Path(folder).glob("*.ids")))
        words = collections.Counter(word for path in pathlib.Path(folder).glob("*.log") for word in path.read_text().split())
        opens = words.pop("open", 0)
        return Told(len(ids), len(ids) - len(set(ids)), opens, killed, dict(words))
