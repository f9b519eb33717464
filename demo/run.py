"""Runs the shop, the API and the game server at the same time, kills the API during the run, then checks every ID.

No node number is written anywhere: each process leases one from `store=local`, here a folder that ends with the demo.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import frazil

ROOT = pathlib.Path(__file__).parent.parent
SECONDS = 8
KILL = 3
# Shortly before the end, when the killed process's lease is over.
LOOK = 7
PROGRAMS = {
    "shop": [sys.executable, ROOT / "demo/shop.py"],
    "api": ["node", ROOT / "demo/api.mjs"],
    "game": [ROOT / "build/game"],
}
CLOSING = """\
api: killed (kill -9) after {kill} s, and could not release {killed}. The number stayed reserved up to its bound.
api, again: started at once, with its clock an hour back, and leased {again}. Its stamps are an hour old.
  By the store's clock its bound has passed. Another process may take the number, and begins above the bound.
"""


class Demo:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.env = os.environ | {"FRAZIL_HOME": f"{folder}/frazil"}
        self.running = {}

    def start(self, name, seconds, **env):
        command = [*PROGRAMS[name.split(",")[0]], "--seconds", str(seconds), "--out", self.folder / f"{name}.ids"]
        self.running[name] = subprocess.Popen(command, env=self.env | env, stdout=subprocess.PIPE, text=True)

    def list_nodes(self, *more):
        command = [pathlib.Path(sys.executable).with_name("frazil"), "nodes", "local", *more]
        listing = subprocess.run(command, env=self.env, check=True, capture_output=True, text=True).stdout
        return f"$ {' '.join(['frazil', *command[1:]])}\n{listing}"

    def run(self):
        """Prints what happens, and returns the result of each program, and two listings."""
        begin = time.monotonic()

        def say(event):
            print(f"{time.monotonic() - begin:4.1f} s  {event}", flush=True)

        for name in PROGRAMS:
            self.start(name, SECONDS)
        say("shop, api and game start, and each leases a node number")
        time.sleep(KILL)
        api = self.running.pop("api")
        api.kill()
        api.communicate()
        say("api is killed: kill -9")
        # MT: the plain library takes no lock.
        library = next(pathlib.Path("/usr/lib").rglob("libfaketimeMT.so.1"))
        clock = {"LD_PRELOAD": str(library), "FAKETIME": "-1h", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        self.start("api, again", SECONDS - KILL, **clock)
        say("api starts again, with its clock an hour back, and leases another number")
        time.sleep(max(0, begin + LOOK - time.monotonic()))
        listings = [self.list_nodes(), self.list_nodes("--namespace", "items")]
        results = {}
        for name, process in self.running.items():
            output, _ = process.communicate(timeout=SECONDS + 60)
            if process.returncode != 0:
                sys.exit(f"{name} failed with status {process.returncode}")
            results[name] = json.loads(output.strip().splitlines()[-1])
        say("all programs have ended: every ID is compared with every other")
        killed = results["api, again"] | {"count": None, "seconds": KILL, "note": None}
        return {"shop": results["shop"], "api": killed, "api, again": results["api, again"], "game": results["game"]}, listings

    def check(self, results):
        """The rows of the table."""
        everything = {}
        for name, result in results.items():
            layout = frazil.Layout(result["spec"].split()[0])
            # A kill may cut the last line; no client has seen that ID.
            lines = (self.folder / f"{name}.ids").read_text().split("\n")[:-1]
            ids = [int(line) for line in lines]
            assert result["count"] in (None, len(ids)), f"{name} wrote {len(ids)} IDs and says {result['count']}"
            # IDs of two layouts may be equal numbers; within one layout none may.
            seen = everything.setdefault(str(layout), set())
            before = len(seen)
            seen.update(ids)
            duplicates = before + len(ids) - len(seen)
            ends = [layout.decode(ids[0]), layout.decode(ids[-1])]
            (field,) = layout.field_bits
            nodes = ", ".join(dict.fromkeys(f"{field}={getattr(end, field)}" for end in ends))
            first, last = (f"{end.time:%H:%M:%S}" for end in ends)
            yield name, result["language"], result["spec"], nodes, len(ids), round(len(ids) / result["seconds"]), first, last, duplicates


def table(rows):
    widths = [max(len(str(row[column])) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = (f"{cell:>{width}}" if isinstance(cell, int) else f"{cell:<{width}}" for cell, width in zip(row, widths))
        print("  ".join(cells).rstrip())


def main():
    print(f"A Python shop, a Node.js API and a C++ game server mint for {SECONDS} s at the same time ...\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        demo = Demo(folder)
        results, listings = demo.run()
        rows = list(demo.check(results))
    print()
    table([("program", "language", "spec", "node", "IDs", "IDs/s", "first", "last", "duplicates"), *rows])
    print(f"\nThe store {SECONDS - LOOK} s before the end:\n")
    print("\n".join(listings))
    print("\n".join(f"{name}: {result['note']}" for name, result in results.items() if result["note"]))
    print(CLOSING.format(kill=KILL, killed=rows[1][3], again=rows[2][3]))
    duplicates = sum(row[-1] for row in rows)
    total = sum(row[4] for row in rows)
    print(f"{total:,} IDs from three languages at once, {duplicates} duplicates")
    sys.exit(duplicates != 0)


main()
