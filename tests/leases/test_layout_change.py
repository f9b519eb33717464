"""A fleet that changes its layout by the advice of LAYOUT_MISMATCH, and fills one table before and after.

FRAZIL_LAYOUT_IDS sets how many IDs the two fleets mint together (400,000).
"""

import os
import re
import subprocess
import sys

import frazil
import numpy
import pytest

IDS = int(os.environ.get("FRAZIL_LAYOUT_IDS", "400000"))
PROCESSES = 2
OLD = 'layout="time:41@1ms node:10 sequence:12 epoch:2025-01-01"'
NEW = 'layout="time:41@1ms node:8 sequence:14 epoch:2025-01-01"'
SHARE = IDS // 2 // PROCESSES
WORKER = """
import frazil, sys
ids = frazil.Snowflake(sys.argv[1])
left = int(sys.argv[2])
while left:
    count = min(left, 100_000)
    sys.stdout.buffer.write(ids.array(count).tobytes())
    left -= count
"""


def fleet(spec, folder):
    """Runs the processes of a fleet, each of which mints its share, and returns all IDs."""
    command = [sys.executable, "-c", WORKER, f"{spec} store=file:{folder}", str(SHARE)]
    files = [folder / f"ids-{number}" for number in range(PROCESSES)]
    workers = [subprocess.Popen(command, stdout=file.open("wb")) for file in files]
    assert [worker.wait(timeout=600) for worker in workers] == [0] * PROCESSES
    return numpy.concatenate([numpy.fromfile(file, numpy.int64) for file in files])


def test_layout_mismatch_is_followed_without_a_repeat(tmp_path):
    before = fleet(f"{OLD} namespace=shop", tmp_path)
    with pytest.raises(frazil.errors.LayoutMismatchError) as refusal:
        frazil.Snowflake(f"{NEW} store=file:{tmp_path} namespace=shop")
    assert re.search("stop all processes .* start each with another namespace=NAME and after= the highest ID", str(refusal.value))
    after = fleet(f"{NEW} namespace=shop2 after={before.max()}", tmp_path)
    every = numpy.sort(numpy.concatenate([before, after]))
    repeated = int((every[1:] == every[:-1]).sum())
    print(f"{len(every):,} IDs, {repeated} repeated")
    assert len(every) == 2 * PROCESSES * SHARE and repeated == 0
    assert after.min() > before.max()


def test_two_layouts_side_by_side_repeat(tmp_path):
    """The control: two layouts in two namespaces repeat IDs, which the remedy prevents."""
    specs = [f"{OLD} store=file:{tmp_path} namespace=shop", f"{NEW} store=file:{tmp_path} namespace=shop2"]
    with frazil.Snowflake(specs[0]) as old, frazil.Snowflake(specs[1]) as new:
        ids = [one.batch(16) for _ in range(500) for one in (old, new)]
    assert len({value for batch in ids for value in batch}) < 16_000
