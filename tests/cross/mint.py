"""Mints IDs, half of them when a line has come, and the others after another one: mint.py SPEC COUNT FILE"""

import array
import sys

import frazil


def meet(place):
    """Says where it is, and waits for a line."""
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
