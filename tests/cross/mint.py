"""Mints IDs from a given instant on: mint.py SPEC COUNT START_UNIX_MS FILE"""

import array
import sys
import time

import frazil

spec, count, start, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
ids = frazil.Snowflake(spec)
time.sleep(max(0, start / 1000 - time.time()))
minted = array.array("q", (ids.next() for _ in range(count // 2)))
while len(minted) < count:
    minted.extend(ids.batch(min(1000, count - len(minted))))
with open(path, "wb") as file:
    minted.tofile(file)
