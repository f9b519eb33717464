"""Mints half of the IDs after a line of input, and the other half after another line: mint.py SPEC COUNT FILE"""

import array
import sys

import frazil


def meet(place):
    """Prints its place, and waits for a line."""
    print(place, flush=True)
    input()


spec, count, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
ids = frazil.Snowflake(spec)
meet("ready")
minted = array.array("q", (ids.next() for _ in range(count // 2)))
meet("half")
while len(minted) < count:
    minted.extend(ids.batch(min(1000, count - len(minted))))
with open(path, "wb") as file:
    minted.tofile(file)
