"""Restores each store in each way, and prints the results: python tests/restores CELL..."""

import pathlib
import sys

# Python puts the folder itself on the path, but the packages are in its parent.
sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)

from servers import process

from restores.methods import CELLS
from restores.run import run

process.exit_on_signals()
unknown = set(sys.argv[1:]) - {cell.name for cell in CELLS}
if unknown:
    sys.exit(f"no such restore: {', '.join(unknown)}; there are: {', '.join(cell.name for cell in CELLS)}")
for cell in CELLS:
    if len(sys.argv) == 1 or cell.name in sys.argv:
        for taken, outcome in zip(("after the backup", "before it"), run(cell), strict=True):
            print(f"{cell.name:24} number taken {taken:16}: {outcome}", flush=True)
