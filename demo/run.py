"""Runs the shop, the API and the game server at the same time, then checks every ID that they minted."""

import json
import pathlib
import subprocess
import sys
import tempfile

import frazil

ROOT = pathlib.Path(__file__).parent.parent
# A game server's credit for a burst of 65,536 is full after 16 s.
SECONDS = 18
PROGRAMS = {
    "shop": ([sys.executable, ROOT / "demo/shop.py"], "standard", 1),
    "api": (["node", ROOT / "demo/api.mjs"], "standard", 2),
    "game": ([ROOT / "build/game"], "game", 4711),
}


def table(rows):
    widths = [max(len(str(row[column])) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = (f"{cell:>{width}}" if isinstance(cell, int) else f"{cell:<{width}}" for cell, width in zip(row, widths))
        print("  ".join(cells).rstrip())


def main():
    print(f"A Python shop, a Node API and a C++ game server mint for {SECONDS} s at the same time ...\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        running = {}
        for name, (command, _, node) in PROGRAMS.items():
            arguments = ["--node", str(node), "--seconds", str(SECONDS), "--out", f"{folder}/{name}.ids"]
            running[name] = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True)
        told, everything, notes = [], {}, []
        for name, process in running.items():
            output, _ = process.communicate(timeout=SECONDS + 60)
            if process.returncode != 0:
                sys.exit(f"{name} failed with status {process.returncode}")
            told.append((name, json.loads(output.strip().splitlines()[-1])))
        rows = [("program", "language", "spec", "IDs", "IDs/s", "first", "last", "duplicates")]
        for name, result in told:
            layout = frazil.Layout(PROGRAMS[name][1])
            ids = [int(line) for line in pathlib.Path(folder, f"{name}.ids").read_text().split()]
            parts = [layout.decode(ids[0]), layout.decode(ids[-1])]
            # IDs of two layouts may be equal numbers; within one layout none may.
            seen = everything.setdefault(str(layout), set())
            before = len(seen)
            seen.update(ids)
            duplicates = before + len(ids) - len(seen)
            assert len(ids) == result["count"], f"{name} wrote {len(ids)} IDs and says {result['count']}"
            first, last = (f"{part.time:%H:%M:%S}" for part in parts)
            rows.append((name, result["language"], result["spec"], len(ids), round(len(ids) / result["seconds"]), first, last, duplicates))
            notes.append(f"{name}: {result['note']}")
        table(rows)
        print()
        print("\n".join(notes))
        duplicates = sum(row[-1] for row in rows[1:])
        total = sum(row[3] for row in rows[1:])
        print(f"\n{total:,} IDs from three languages at once, {duplicates} duplicates")
        sys.exit(duplicates != 0)


main()
