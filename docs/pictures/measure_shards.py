"""Counts where a slow generator's IDs fall, for each start policy: docs/pictures/measure_shards.py, with frazil installed; then draw.py.

The generator is the real one under a clock of the script's: one ID in each tick, as where an application mints less than one in
a millisecond.
"""

import datetime
import json
from pathlib import Path

import frazil

SHARDS, IDS = 16, 100_000
BEGIN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def count(policy):
    ids = frazil.Snowflake("standard", node=1, clock="manual", detached=True, start=policy)
    counts = [0] * SHARDS
    for tick in range(IDS):
        ids.set_time(BEGIN + datetime.timedelta(milliseconds=tick))
        counts[ids.next() % SHARDS] += 1
    return counts


def main():
    policies = ["zero", "alternate:1", "random:16", "random:100", "alternate:15", "continue:4096"]
    counted = {"shards": SHARDS, "ids": IDS, "policies": {policy: count(policy) for policy in policies}}
    (Path(__file__).parent / "shards.json").write_text(json.dumps(counted, indent=1) + "\n")


if __name__ == "__main__":
    main()
