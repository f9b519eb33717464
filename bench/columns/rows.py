"""The audit of a merge for ever more rows, beside DuckDB: rows.py FRAZIL [MOST], for example rows.py target/release/frazil 1000000000.

Two CSV files have the IDs in the order of insertion, 19 bytes each. DuckDB may use 1 GB, and groups them by ID. Prints the processor time,
the memory and the disk space, and writes rows.json for bench/plot.py.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

# Milliseconds since the epoch of `standard`, some days before now.
FIRST = int(time.time() * 1000) - 1_735_689_600_000 - 40 * 86_400_000
PEER = """import duckdb
connection = duckdb.connect(config={"memory_limit": "1GB"})
columns = "columns={'id': 'BIGINT'}"
print(connection.execute(f"SELECT count(*) FROM (SELECT id FROM read_csv(['a.csv', 'b.csv'], {columns}) GROUP BY id HAVING count(*) > 1)").fetchall())
"""


def files(folder, rows):
    """Writes a million rows for every 5 s of two servers with eight generators each."""
    connection = duckdb.connect(config={"memory_limit": "2GB"})
    for server, name in enumerate("ab"):
        tick, node, sequence = f"{FIRST} + row // 200", f"{server * 8} + row % 8", "row % 200 // 8"
        ids = f"SELECT (({tick}) << 22) | (({node}) << 12) | ({sequence}) AS id FROM range({rows // 2}) list(row)"
        connection.execute(f"COPY ({ids}) TO '{folder / name}.csv' (HEADER)")


def run(command, folder):
    """Runs a command, and returns its processor time, its memory and the largest size of the audit's folder."""
    running, disk = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL), 0
    while True:
        child, status, used = os.wait4(running.pid, os.WNOHANG)
        if child:
            assert status == 0, command
            return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, disk / 1e6
        work = folder / "out/work"
        try:
            disk = max(disk, sum(entry.stat().st_size for entry in os.scandir(work)))
        except FileNotFoundError:
            # The audit has not begun, or removes a file.
            pass
        time.sleep(0.02)


def main():
    frazil, most = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 10**8
    programs = {
        "frazil merge-audit": [frazil, "merge-audit", "standard", "a.csv", "b.csv", "--out", "out"],
        "DuckDB, 1 GB": [sys.executable, "-c", PEER],
    }
    cases = [{"case": name, "rows": [], "ns": []} for name in programs]
    # Below it, the start of the processes costs more than the rows.
    rows = 10**6
    while rows <= most:
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as name:
            files(Path(name), rows)
            for case, command in zip(cases, programs.values(), strict=True):
                cost, memory, disk = run(command, Path(name))
                case["rows"].append(rows)
                case["ns"].append(round(cost * 1e9 / rows, 1))
                print(
                    f"{rows:>13,} rows: {case['case']:20} {cost:7.2f} s of a processor, {memory:5.0f} MiB, {disk:6.0f} MB on disk",
                    flush=True,
                )
        rows *= 10
    place = Path(os.environ.get("FRAZIL_BENCH_JSON", "build/bench/rows.json"))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(cases, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
