"""Runs the fault test at length: python tests/faults STORE..., or all of them. run.py says what the environment sets."""

import pathlib
import shutil
import sys
import tempfile

# Run as a folder, the folder itself is on the path; the packages are one above.
sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)

from servers import process

from faults.run import STORES, run


def main(stores):
    unknown = set(stores) - {*STORES, "fixed"}
    if unknown:
        sys.exit(f"no such store: {', '.join(unknown)}; there are: {', '.join(STORES)}, and fixed, which has none")
    process.exit_on_sigterm()
    good = True
    for store in stores or STORES:
        path = tempfile.mkdtemp(prefix=f"frazil-faults-{store}-")
        report = run(store, path)
        print(report, flush=True)
        if report.problems:
            print(f"what the workers wrote is in {path}", flush=True)
            good = False
        else:
            shutil.rmtree(path)
        print(flush=True)
    sys.exit(not good)


main(sys.argv[1:])
