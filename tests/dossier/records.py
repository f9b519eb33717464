"""Records of runs: one JSON object on each line of docs/evidence/*.jsonl, sealed with a hash.

The hash covers the record and the hash of the record before it of the same row. So an edited or removed record is found, unless all later
hashes are made anew too: the hash finds mistakes, and no forger. The remedy against a forger is to run the row's command.
"""

import datetime
import hashlib
import json
import os
import platform
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/evidence"
# The folders whose code ships. A record has the hash of their content.
PRODUCT = ("core", "cli", "server", "python", "node", "c-api", "include", "Cargo.lock", "Cargo.toml")
REQUIRED = {
    "row",
    "flag",
    "commit",
    "product",
    "start",
    "seconds",
    "processor",
    "cores",
    "load",
    "kernel",
    "command",
    "figures",
    "exit",
    "hash",
}
OPTIONAL = {"seeds", "lists", "note"}
START = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class Fault(Exception):
    """A record or a row that does not hold, with its name."""


def git(*arguments):
    """Returns the output of git, or None if it fails."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def product(commit):
    """Returns the hash of the product's files at a commit, or None if the repository does not have it."""
    listed = git("ls-tree", "-r", commit, "--", *PRODUCT)
    return listed and hashlib.sha256(listed.encode()).hexdigest()[:16]


def seal(record, before):
    """Returns the hash of a record that follows the one with the hash `before`."""
    content = {name: value for name, value in record.items() if name != "hash"}
    text = json.dumps([before, content], sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read(folder=FOLDER):
    """Returns the records of each row, oldest first. Fails with the row of one that was edited."""
    rows = {}
    for file in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            try:
                record = json.loads(line)
            except ValueError as error:
                raise Fault(f"{file.name}:{number} is not JSON: {error}") from None
            row = record.get("row", "?")
            missing, unknown = REQUIRED - set(record), set(record) - REQUIRED - OPTIONAL
            if missing or unknown:
                raise Fault(f"{row} ({file.name}:{number}): missing fields {sorted(missing)}, unknown fields {sorted(unknown)}")
            before = rows[row][-1]["hash"] if row in rows else ""
            if record["hash"] != seal(record, before):
                raise Fault(f"{row} ({file.name}:{number}): the record was edited, or one before it was removed")
            if not START.fullmatch(record["start"]):
                raise Fault(f"{row} ({file.name}:{number}): start={record['start']} is not a time in UTC")
            rows.setdefault(row, []).append(record)
    return rows


def append(record, folder=FOLDER):
    """Seals a record, and writes it after the others."""
    before = read(folder).get(record["row"], [{"hash": ""}])[-1]["hash"]
    folder.mkdir(exist_ok=True)
    sealed = record | {"hash": seal(record, before)}
    with (folder / "runs.jsonl").open("a") as file:
        file.write(json.dumps(sealed, ensure_ascii=False) + "\n")
    return sealed


def removed(lines):
    """Returns the rows of records that a commit of this history had, and that are not among these lines."""
    log = git("log", "--format=", "--patch", "--unified=0", "--", str(FOLDER)) or ""
    had = dict.fromkeys(line[1:] for line in log.splitlines() if line.startswith("+{"))
    return [json.loads(line)["row"] for line in had if line not in lines]


def ancestry(record):
    """Returns why a record's commit is not part of this history, or None. Fails with `LookupError` if that cannot be known."""
    commit = record["commit"]
    if git("cat-file", "-e", f"{commit}^{{commit}}") is None:
        if git("rev-parse", "--is-shallow-repository") == "false":
            return f"{record['row']}: the whole history does not have {commit[:12]}"
        raise LookupError(f"{record['row']}: this repository does not have {commit[:12]}: it has no history, or a shallow one")
    if git("merge-base", "--is-ancestor", commit, "HEAD") is None:
        return f"{record['row']}: {commit[:12]} is not an ancestor of this commit"
    if product(commit) != record["product"]:
        return f"{record['row']}: the product at {commit[:12]} has another hash than the record says"
    return None


def machine():
    """Returns what a record says of the machine: no name, no user, no path."""
    info = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*: (.*)$", info.read_text(), re.MULTILINE) if info.exists() else None
    return {
        "processor": found[1] if found else platform.machine(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "kernel": re.match(r"[\d.]*", platform.release())[0].rstrip("."),
    }


def now():
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
