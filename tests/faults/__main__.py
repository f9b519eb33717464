"""Runs the fault test at length: python tests/faults NAME...; run.py lists the environment variables.

A name is a run's, or `ids` (the default) for IDs on every store, or `segments`.
"""

import pathlib
import shutil
import sys
import tempfile

# Python puts the folder itself on the path, but the packages are in its parent.
sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)

from servers import process

from faults.run import STORES, Run, run
from faults.segments import SEGMENTS, TABLES, SegmentRun

GROUPS = {"ids": STORES, "segments": (*SEGMENTS, *TABLES)}
RUNS = {**dict.fromkeys([*STORES, "fixed"], Run), **dict.fromkeys(GROUPS["segments"], SegmentRun)}


def main(arguments):
    names = [name for argument in arguments or ["ids"] for name in GROUPS.get(argument, [argument])]
    unknown = set(names) - set(RUNS)
    if unknown:
        sys.exit(f"no such run: {', '.join(unknown)}; there are: {', '.join(RUNS)}, and all of: {', '.join(GROUPS)}")
    process.exit_on_signals()
    good = True
    for name in names:
        path = tempfile.mkdtemp(prefix=f"frazil-faults-{name.replace(':', '-')}-")
        report = run(name, path, of=RUNS[name])
        print(report, flush=True)
        if report.problems:
            print(f"what the workers wrote is in {path}", flush=True)
            good = False
        else:
            shutil.rmtree(path)
        print(flush=True)
    sys.exit(not good)


main(sys.argv[1:])
