"""Reads the files of the workers, and looks for duplicate IDs."""

import collections
import dataclasses

import numpy

# Errors that a broken store, a frozen process or a changed clock may cause. Any other error is a defect.
EXPECTED = {
    "STORE_UNREACHABLE", "LEASE_EXHAUSTED", "NO_FREE_NODE", "EXHAUSTED", "WOULD_BLOCK", "CLOCK_BACK", "CLOCK_SKEW", "STORE_CHANGED",
}  # fmt: skip
SHOWN = 20


@dataclasses.dataclass
class Found:
    """The findings in the files of a run."""

    total: int
    duplicates: int
    places: list[str]
    errors: collections.Counter
    unexpected: list[str]
    """The first line with each unexpected code."""


def examine(folder, layout, expected=frozenset(EXPECTED)):
    """Counts IDs and errors. Describes duplicates: both places, and the decoded parts if there is a layout."""
    files = sorted(folder.glob("*.ids"))
    minted = [read(file) for file in files]
    everything = numpy.sort(numpy.concatenate(minted)) if minted else numpy.empty(0, numpy.int64)
    twice = numpy.unique(everything[1:][everything[1:] == everything[:-1]])
    places = [describe(int(id), files, minted, layout) for id in twice[:SHOWN]]
    errors, unexpected = collections.Counter(), {}
    for log in sorted(folder.glob("*.log")):
        for line in log.read_text(errors="replace").splitlines():
            code = line.split(" ", 1)[0]
            errors[code] += 1
            if code not in expected:
                unexpected.setdefault(code, f"{log.name}: {line}")
    return Found(len(everything), len(twice), places, errors, list(unexpected.values()))


def read(file):
    """Returns a file's IDs, without an incomplete last one."""
    size = file.stat().st_size // 8
    return numpy.fromfile(file, dtype="<i8", count=size)


def describe(id, files, minted, layout):
    """Returns the places of an ID, and its parts."""
    where = [
        f"{file.name} at byte {8 * int(index)}" for file, ids in zip(files, minted, strict=True) for index in numpy.flatnonzero(ids == id)
    ]
    if layout is None:
        return f"{id}: {'; '.join(where)}"
    parts = layout.decode(id)
    fields = ", ".join(f"{name} {value}" for name, value in parts.fields.items())
    return f"{id} ({parts.time.isoformat(timespec='milliseconds')}, {fields}, sequence {parts.sequence}): {'; '.join(where)}"
