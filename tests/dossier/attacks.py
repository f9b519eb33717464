"""Attacks on frazil by real processes: `make try-to-break`. Each attack counts the IDs that its processes wrote down, and the repeated ones.

It needs Python and the library for C alone: FRAZIL_LIBRARY names one, and build/c/lib/libfrazil.so is the usual one.
"""

import array
import contextlib
import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .records import ROOT

sys.path.insert(0, str(ROOT / "tests"))
import clock

LIBRARY = Path(os.environ.get("FRAZIL_LIBRARY", ROOT / "build/c/lib/libfrazil.so"))
WORKER = Path(__file__).with_name("worker.py")
WINDOW_S, RENEW_S = 2.5, 0.5
HOUR_S = 3600
# The time in which a process must have written its record.
RECORD_S = 30
# The least number of IDs and faults with which an attack has attacked something.
LEAST_IDS, LEAST_FAULTS = 1_000, 2


class Broken(Exception):
    """The harness does not work."""


class Attack:
    """Processes of one kind, the faults that hit them, and what they wrote."""

    name, nodes, processes, fork_ms = "", 2, 3, 0

    def __init__(self, folder):
        self.folder, self.faults, self.started, self.crew = folder, 0, 0, []
        self.ids, self.store = folder / "ids", folder / "store"
        self.ids.mkdir()
        self.store.mkdir()

    def spec(self):
        layout = f"layout='time:41@1ms node:{self.nodes} sequence:10 epoch:2025-01-01' start=zero"
        return f"{layout} store=file:{self.store} window={WINDOW_S * 1000:.0f}ms renew={RENEW_S * 1000:.0f}ms"

    def start(self, place=None):
        """Starts a process, beside the others or in the place of one that has ended."""
        self.started += 1
        environment = os.environ | {"FRAZIL_GUARD_SCOPE": f"attack {self.folder}"} | clock.under(self.folder / f"{self.started}.clock")
        command = [sys.executable, WORKER, LIBRARY, self.spec(), self.ids, str(self.fork_ms)]
        with (self.folder / "log").open("ab") as log:
            run = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        run.clock = self.folder / f"{self.started}.clock"
        if place is None:
            self.crew.append(run)
        else:
            self.crew[place] = run

    def kill(self, place):
        """Kills a process and its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.crew[place].pid, signal.SIGKILL)
        self.crew[place].wait()

    def pick(self):
        return random.randrange(len(self.crew))

    def begin(self):
        for _ in range(self.processes):
            self.start()

    def step(self):
        """Does the next harm, and returns the seconds until the one after it. Most attacks kill a process and start another."""
        self.restart(self.pick())
        self.faults += 1
        return random.uniform(0.3, 1.5)

    def restart(self, place):
        self.kill(place)
        self.start(place)

    def run(self, seconds):
        end = time.monotonic() + seconds
        try:
            self.begin()
            time.sleep(1)
            while (left := end - time.monotonic()) > 0:
                if dead := [run.returncode for run in self.crew if run.poll() is not None]:
                    raise Broken(f"a process ended with {dead[0]}: {(self.folder / 'log').read_text(errors='replace')[-500:]}")
                time.sleep(max(0, min(self.step(), left)))
        finally:
            for place in range(len(self.crew)):
                self.kill(place)

    def count(self):
        """Returns the number of IDs, and of those that occur again."""
        minted = array.array("q")
        for file in self.ids.glob("*.ids"):
            data = file.read_bytes()
            minted.frombytes(data[: len(data) // 8 * 8])
        ordered = sorted(minted)
        return len(ordered), sum(one == other for one, other in itertools.pairwise(ordered))


class Forks(Attack):
    name, nodes, fork_ms = "forks", 4, 40

    def step(self):
        forks = self.ids / "forks"
        self.faults = forks.stat().st_size if forks.exists() else 0
        return 0.2


class Kills(Attack):
    name = "kills"


class Pauses(Attack):
    """A process wakes up after another has taken its number."""

    name, nodes = "pauses", 1

    def step(self):
        group = self.crew[self.pick()].pid
        os.killpg(group, signal.SIGSTOP)
        time.sleep(random.uniform(1.1, 2.2) * WINDOW_S)
        os.killpg(group, signal.SIGCONT)
        self.faults += 1
        return random.uniform(0.5, 2.5)


class Clocks(Attack):
    name = "wrong clocks"

    def step(self):
        place = self.pick()
        clock.turn(random.choice([-HOUR_S, HOUR_S, -1.5, 1.5, 0]), self.crew[place].clock)
        if random.random() < 0.3:
            self.restart(place)
        self.faults += 1
        return random.uniform(0.2, 1.0)


class FolderGoesBack(Attack):
    """The folder is replaced by an older copy. No process starts until the holders have looked, as the page of guarantees asks."""

    name, nodes = "older folder", 4

    def written(self, since):
        """Waits until each process has written its record since then. A process on a busy machine may take long."""
        deadline = time.monotonic() + RECORD_S
        while True:
            files = [path for path in self.store.glob("*/[0-9]*") if path.stat().st_mtime >= since]
            holders = {int(pid) for path in files for pid in re.findall(rb"held .* holder=\S*:(\d+)", path.read_bytes())}
            if {run.pid for run in self.crew} <= holders:
                return
            if time.monotonic() > deadline:
                raise Broken(f"a process has not written its record for {RECORD_S} s")
            time.sleep(0.05)

    def step(self):
        # A process that still waits for its number would start before the holders have looked.
        self.written(0)
        copy, old = self.folder / "copy", self.folder / f"old{self.faults}"
        shutil.copytree(self.store, copy)
        time.sleep(random.uniform(1.2, 2.0) * WINDOW_S)
        self.store.rename(old)
        copy.rename(self.store)
        replaced = time.time()
        self.faults += 1
        self.written(replaced)
        self.start()
        time.sleep(WINDOW_S)
        self.kill(0)
        self.crew.pop(0)
        return 0.5


class FixedTwice(Attack):
    name, processes = "a fixed number twice", 2

    def spec(self):
        return "standard node=7 start=zero"


ATTACKS = (Forks, Kills, Pauses, Clocks, FolderGoesBack, FixedTwice)


def attack(kind, seconds):
    """Returns one attack after its time, and its IDs and duplicates. A duplicate counts even if the harness fails after it."""
    with tempfile.TemporaryDirectory(prefix="frazil-attack-") as folder:
        one = kind(Path(folder))
        try:
            one.run(seconds)
        except Broken as why:
            if not one.count()[1]:
                raise
            print(why, file=sys.stderr)
        ids, twice = one.count()
        if twice:
            return one, ids, twice
        if ids < LEAST_IDS or one.faults < LEAST_FAULTS:
            said = (one.folder / "log").read_text(errors="replace")[-500:]
            raise Broken(f"{one.name}: only {ids} IDs and {one.faults} faults, which attacks nothing: {said}")
    return one, ids, twice


def main(seconds, only=""):
    """Runs the attacks, each for its share of the time. Returns 0, 1 after a duplicate, or 3."""
    if not LIBRARY.exists():
        print(f"{LIBRARY} does not exist: build it with c-api/build.sh", file=sys.stderr)
        return 3
    chosen = [kind for kind in ATTACKS if only in kind.name]
    total = 0
    try:
        for kind in chosen:
            one, ids, twice = attack(kind, seconds / len(chosen))
            total += twice
            print(f"{one.name}: {one.started} processes, {ids} IDs, {one.faults} faults, {twice} duplicates", flush=True)
    except Broken as why:
        print(f"the harness failed: {why}", file=sys.stderr)
        if not total:
            return 3
    if total:
        print(f"BROKEN: {total} duplicates. docs/assurance.md is wrong. Please report this output.")
        return 1
    print(f"{len(chosen)} attacks: 0 duplicates")
    return 0 if chosen else 3
