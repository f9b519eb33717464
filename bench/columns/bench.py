"""The cost of a row: columns of IDs in numpy, pandas and polars, and lines, beside operations of the libraries themselves.

Every number is the median of rounds that take turns, and every ratio the median of the rounds' ratios.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import frazil
import frazil.numpy
import frazil.pandas
import frazil.polars
import numpy
import pandas
import polars

ROUNDS = 5 if os.environ.get("FRAZIL_BENCH_QUICK") else 15
ROWS = 5_000_000
TEXTS = 1_000_000
LAYOUT = frazil.Layout("standard")
EPOCH = int(LAYOUT.epoch.timestamp() * 1000)


class Case:
    """A call on many rows, and the name of the case that it is compared with."""

    def __init__(self, name, call, rows, peer=None):
        self.name, self.call, self.rows, self.peer, self.samples = name, call, rows, peer, []

    def run(self):
        start = time.perf_counter()
        kept = self.call()
        self.samples.append((time.perf_counter() - start) * 1e9 / self.rows)
        # Freed after the clock was read: what a caller keeps is not part of the call.
        del kept


def by_hand(ids):
    """The columns of `standard` by numpy's own expressions."""
    tick = ids >> 22
    return {"time": (tick + EPOCH).view("datetime64[ms]"), "node": (ids >> 12) & 1023, "sequence": ids & 4095, "tick": tick}


def by_hand_into(ids, out, names):
    """Writes the named columns into arrays, by the same expressions."""
    times = out["time"].view("int64")
    if "tick" in names:
        numpy.right_shift(ids, 22, out=out["tick"])
    if "time" in names:
        numpy.right_shift(ids, 22, out=times)
        numpy.add(times, EPOCH, out=times)
    if "node" in names:
        numpy.right_shift(ids, 12, out=out["node"])
        numpy.bitwise_and(out["node"], 1023, out=out["node"])
    if "sequence" in names:
        numpy.bitwise_and(ids, 4095, out=out["sequence"])


def filled():
    """Four new arrays, each element written once."""
    arrays = [numpy.empty(ROWS, dtype=numpy.int64) for _ in range(4)]
    for array in arrays:
        array.fill(7)
    return arrays


def columns():
    """Everything that is compared in the process."""
    random = numpy.random.default_rng(7)
    ids = (random.integers(0, 2**40, ROWS) << 22) | random.integers(0, 2**22, ROWS)
    ids.sort()
    out = LAYOUT.decode_many(ids)
    reused = {name: array.copy() for name, array in out.items()}
    for name, array in by_hand(ids).items():
        assert (out[name] == array).all(), name
    every = list(out)
    numbers = ids[:TEXTS]
    objects = numpy.array([str(id) for id in numbers.tolist()], dtype=object)
    text = pandas.Series(objects, dtype="str")
    arrow = polars.Series("id", objects.tolist())
    new, into = "numpy's shifts and masks, four columns", "the same into arrays"
    cases = [
        Case(new, lambda: by_hand(ids), ROWS),
        Case("`empty` and `fill` of four columns", filled, ROWS),
        Case("`layout.decode_many(ids)`, four columns", lambda: LAYOUT.decode_many(ids), ROWS, new),
        Case(into, lambda: by_hand_into(ids, reused, every), ROWS),
        Case("`decode_many(ids, out=out)`", lambda: LAYOUT.decode_many(ids, out=out), ROWS, into),
    ]
    for name in every:
        peer = f"numpy, `{name}` alone into an array"
        cases += [
            Case(peer, lambda name=name: by_hand_into(ids, reused, [name]), ROWS),
            Case(
                f'`decode_many(ids, fields=["{name}"], out=out)`',
                lambda name=name: LAYOUT.decode_many(ids, fields=[name], out=out),
                ROWS,
                peer,
            ),
        ]
    for kind, call, column in (
        ("numpy, objects", frazil.numpy.ids, objects),
        ("pandas, `str`", frazil.pandas.ids, text),
        ("polars, `String`", frazil.polars.ids, arrow),
    ):
        assert call(column)[TEXTS - 1] == numbers[-1]
        module = call.__module__
        peer = f"`pandas.to_numeric`, {'objects' if call is frazil.numpy.ids else '`str`'}"
        if peer not in [case.name for case in cases]:
            series = pandas.Series(objects, dtype="object") if call is frazil.numpy.ids else text
            cases.append(Case(peer, lambda series=series: pandas.to_numeric(series), TEXTS))
        cases.append(Case(f"`{module}.ids`, text of {kind}", lambda call=call, column=column: call(column), TEXTS, peer))
    cases.append(Case("polars' cast of text", lambda: arrow.cast(polars.Int64), TEXTS))
    return cases


def lines(folder):
    """The command's `decode` of lines beside DuckDB's read, shift and write of a CSV file."""
    count = 1_050_000
    path, to = folder / "ids.txt", folder / "parts.csv"
    start = LAYOUT.min_id(LAYOUT.epoch.replace(month=9))
    path.write_text("".join(f"{start + number * 4096 + number % 4096}\n" for number in range(count)), encoding="ascii")
    query = f"""COPY (SELECT id, make_timestamp_ms((id >> 22) + {EPOCH}) AS time, (id >> 12) & 1023 AS node, id & 4095 AS sequence
        FROM read_csv('{path}', header=false, columns={{'id': 'BIGINT'}})) TO '{to}' (HEADER)"""
    command = Path(sys.executable).with_name("frazil")

    def decode():
        with path.open("rb") as given, to.open("wb") as taken:
            subprocess.run([command, "decode", "standard"], stdin=given, stdout=taken, check=True)

    peer = "DuckDB, one thread: read, shift, write CSV"
    connection = duckdb.connect(config={"threads": 1})
    return [Case(peer, lambda: connection.execute(query), count), Case("`frazil decode standard < FILE`", decode, count, peer)]


def main():
    """Prints the table of costs."""
    with tempfile.TemporaryDirectory() as folder:
        cases = columns() + lines(Path(folder))
        for _ in range(ROUNDS):
            for case in cases:
                case.run()
    named = {case.name: case for case in cases}
    print(f"## Columns: ns per row; medians of {ROUNDS} rounds that take turns\n")
    print("| | ns | of its peer |\n|---|---:|---:|")
    records = []
    for case in cases:
        peer = named.get(case.peer)
        ratio = statistics.median(own / other for own, other in zip(case.samples, peer.samples, strict=True)) if peer else None
        cost = statistics.median(case.samples)
        print(f"| {case.name} | {cost:.2f} | {'' if ratio is None else f'{ratio:.2f}'} |")
        group = "peer" if peer is None else "frazil"
        records.append({"case": f"{group}: {case.name}", "ns": round(cost, 3), "floor": peer and round(statistics.median(peer.samples), 3)})
    if place := os.environ.get("FRAZIL_BENCH_JSON"):
        Path(place).write_text(json.dumps(records, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
