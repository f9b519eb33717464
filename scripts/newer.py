#!/usr/bin/env python3
"""Fails if a registry serves a newer framework than the one that the adapters are tested with.

usage: scripts/newer.py; it queries the registries that npm and pip are configured for
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def in_table():
    """Returns the frameworks of the guide's table, with the oldest (only those with an adapter have one) and the newest version."""
    table = (ROOT / "docs/platforms.md").read_text().partition("## Frameworks")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\S+) \| (\d\S*)? ?\| (\d\S*) \|$", table, re.MULTILINE)
    return {name: (oldest, newest) for name, oldest, newest in rows}


def in_node():
    """Returns the versions that the tests of Node's adapters install: the oldest and the newest of each framework."""
    tested = json.loads((ROOT / "tests/adapters/node/package.json").read_text())["dependencies"]
    nest = json.loads((ROOT / "tests/adapters/node/nestjs-oldest/package.json").read_text())["dependencies"]
    oldest = {name: tested.get(f"{name}-oldest", nest.get(name, "")).rpartition("@")[2] for name in tested}
    return {name: (oldest[name], newest) for name, newest in tested.items() if not name.endswith("-oldest")}


def in_python():
    """Returns the versions that the tests of Python's adapters install."""

    def versions(name):
        lines = (ROOT / f"tests/adapters/python/{name}.txt").read_text().splitlines()
        return dict(re.fullmatch(r"([\w-]+)(?:\[.*\])?==(\S+)", line).groups() for line in lines if not line.startswith("#"))

    oldest = versions("oldest")
    return {name: (oldest.get(name, ""), newest) for name, newest in versions("current").items()}


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def number(version):
    return [int(part) for part in re.findall(r"\d+", version)]


def served():
    """Yields each framework of the table, the version that is tested, and the newest that its registry serves."""
    python = in_python()
    for name, (_, newest) in in_table().items():
        if name not in python:
            yield name, newest, output("npm", "view", name, "version").strip()
            continue
        answer = output(sys.executable, "-m", "pip", "index", "versions", "--disable-pip-version-check", "--ignore-requires-python", name)
        yield name, newest, re.match(r"\S+ \((\S+)\)", answer)[1]


if __name__ == "__main__":
    newer = [f"{name}: {tested} is tested, and {found} is served" for name, tested, found in served() if number(found) > number(tested)]
    print("\n".join(newer) or "No registry serves a newer framework than those that are tested")
    sys.exit(bool(newer))
