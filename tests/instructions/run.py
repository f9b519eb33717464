#!/usr/bin/env python3
"""Counts the instructions of the hot paths, and compares them with counts.json.

    tests/instructions/run.py            # fails, and names the path, if a count is more than 3 % above the recorded one
    tests/instructions/run.py --write    # records the counts

Unlike times, instructions do not differ from run to run. The least of many batches counts, because the others include slow paths, such as
the first call in a tick. The paths are in core/benches/hot_paths.rs.
"""

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATHS = ROOT / "core" / "benches" / "hot_paths.rs"
COUNTS = Path(__file__).with_name("counts.json")
CALLS = 100
GROWTH = 1.03


def build() -> str:
    command = [
        "cargo",
        "build",
        "--quiet",
        "--locked",
        "-p",
        "frazil",
        "--profile",
        "counted",
        "--bench",
        "hot_paths",
        "--message-format=json",
    ]
    messages = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout
    return next(line["executable"] for line in map(json.loads, messages.splitlines()) if line.get("executable"))


def count(program: str) -> dict[str, float]:
    """Returns the instructions per call of each path."""
    least: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        names = re.findall(r"^path!\((path_\w+)", PATHS.read_text(), re.MULTILINE)
        dumps = [f"--dump-{when}={name}" for name in names for when in ("before", "after")]
        command = ["valgrind", "--quiet", "--tool=callgrind", *dumps, f"--callgrind-out-file={folder}/out", program]
        subprocess.run(command, check=True, env=os.environ | {"RUST_BACKTRACE": "0"})
        for dump in Path(folder).iterdir():
            text = dump.read_text()
            path = re.search(r"^desc: Trigger: --dump-after=path_(\w+)", text, re.MULTILINE)
            total = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
            if path and total:
                least[path[1]] = min(int(total[1]) / CALLS, least.get(path[1], float("inf")))
    return dict(sorted(least.items()))


def main() -> int:
    if platform.machine() != "x86_64":
        print(f"instructions are remembered for x86_64, and this is {platform.machine()}: nothing is compared")
        return 0
    counts = count(build())
    if sys.argv[1:] == ["--write"]:
        COUNTS.write_text(json.dumps(counts, indent=4) + "\n")
    known = json.loads(COUNTS.read_text())
    grown = 0
    for path in sorted({*counts, *known}):
        now, before = counts.get(path), known.get(path)
        if now is None or before is None:
            verdict = "is only remembered" if now is None else "is not remembered: run with --write"
        else:
            verdict = "GREW" if now > before * GROWTH else ""
        grown += bool(verdict)
        print(f"{path:28} {now or 0:8.1f} {before or 0:8.1f}  {verdict}".rstrip())
    print(f"{len(counts) - grown} passed, {grown} failed")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
