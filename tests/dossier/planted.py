#!/usr/bin/env python3
"""Shows that `make try-to-break` finds planted bugs: builds the library for C with three of them, and attacks it with each, and with none."""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/mutants"), str(ROOT / "tests")]
import run

# The attack that must find each bug. The first two are bugs of tests/mutants.
FINDS = {
    "a forked child mints with its parent's lease": "forks",
    "a lost lease is still renewed": "pauses",
    "a second process takes a fixed number": "a fixed number twice",
}
GUARD = ("Err(NotTaken::InUse) => return Err(*state.since.get_or_insert_with(Instant::now)),", "Err(NotTaken::InUse) => (None, 0),")
TRIES, TRY_S, CLEAN_S = 5, 15, 12


def bugs():
    """Returns the changes of each bug, in the order of FINDS."""
    known = {name: change[0] if len(change) == 1 else [tuple(change)] for name, *change in run.MUTANTS}
    return [known.get(name, [GUARD]) for name in FINDS]


def build():
    """Returns the library, built of a copy of the sources with all bugs in it."""
    copy = run.copied("attacked", bugs())
    command = ["cargo", "build", "--locked", "--quiet", "-p", "frazil-c", "--no-default-features"]
    done = subprocess.run(command, cwd=copy, env=run.ENVIRONMENT, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"the library with its planted bugs does not compile:\n{done.stderr[-4000:]}")
    return run.TARGET / "debug/libfrazil.so"


def attacked(library, number, only, seconds):
    """Returns the exit status of an attack, its output, and whether the bug's code ran."""
    acts = run.TARGET / "attack-acts"
    acts.unlink(missing_ok=True)
    environment = os.environ | {"FRAZIL_LIBRARY": str(library), "FRAZIL_PLANTED": str(number), "FRAZIL_PLANTED_ACTS": str(acts)}
    command = [sys.executable, ROOT / "tests/dossier", "try-to-break", "--seconds", str(seconds), "--only", only]
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr, acts.exists()


def main():
    library, found = build(), 0
    for number, (bug, attack) in enumerate(FINDS.items(), 1):
        status, said, acts = attacked(library, 0, attack, CLEAN_S)
        if status or acts:
            print(f"the library without a bug is not clean: {said}")
            return 3
        since = time.monotonic()
        for _ in range(TRIES):
            status, said, acts = attacked(library, number, attack, TRY_S)
            if status != 0:
                break
        if status == 1 and acts:
            found += 1
            print(f"found in {time.monotonic() - since:.0f} s: {bug} by {attack}", flush=True)
        else:
            print(f"MISSED {bug}: {said if acts else 'its code does not run'}", flush=True)
    print(f"{found} of {len(FINDS)} planted bugs found")
    return 0 if found == len(FINDS) else 1


if __name__ == "__main__":
    sys.exit(run.harness(main))
