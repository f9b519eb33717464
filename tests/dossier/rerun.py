"""One row of table C, run again: `make evidence ROW=C1`.

Exit statuses: 0 if the claim holds, 1 if the run shows it broken or a check of it failed, 3 if the harness failed: an unexpected output, a
missing figure, nothing that was checked, an error.
"""

import re
import subprocess
import sys
import time

from . import records
from .commands import suites

CLEAN, BROKEN, FAILED = 0, 1, 3
# What the runners print if a check failed. An error outside of a check, such as pytest's `1 error`, is the harness's.
CHECK_FAILED = re.compile(r"^test result: FAILED|^(?:\d+ passed, )?[1-9]\d* failed|^# fail [1-9]|^MISSED ", re.MULTILINE)
OF_HARNESS = re.compile(r"^harness: ", re.MULTILINE)


def number(text):
    return int(re.sub(r"[,_]", "", text))


def figures(patterns, output, row):
    """Returns the figures of an output. Each pattern has one group, and the numbers of all its matches are added."""
    found = {}
    for name, pattern in patterns.items():
        matches = re.findall(pattern, output, re.MULTILINE)
        if not matches:
            raise records.Fault(f"{row}: the output has no figure {name!r}")
        found[name] = sum(map(number, matches))
    return found


def judge(row, status, output):
    """Returns the exit status, the figures and the lists of a run."""
    lists = {name: [list(match) for match in re.findall(pattern, output, re.MULTILINE)] for name, pattern in row.lists.items()}
    lists = {name: matches for name, matches in lists.items() if matches}
    # A run that counts duplicates is broken by those alone: its other checks are of the harness, such as "too few faults".
    check_failed = not row.found and CHECK_FAILED.search(output) and not OF_HARNESS.search(output)
    if check_failed or re.search(row.broken, output, re.MULTILINE):
        there = {name: pattern for name, pattern in row.patterns.items() if re.search(pattern, output, re.MULTILINE)}
        return BROKEN, figures(there, output, row.name), lists
    if status or row.expected not in output:
        return FAILED, {}, {}
    try:
        found = figures(row.patterns, output, row.name)
        if nothing := [name for name in (row.amount | row.faults) if not found[name]]:
            raise records.Fault(f"{row.name}: the run had no {', '.join(nothing)}, so it checked nothing")
    except records.Fault as fault:
        print(fault, file=sys.stderr)
        return FAILED, {}, {}
    return BROKEN if any(found[name] for name in row.found) else CLEAN, found, lists


def stream(command):
    """Runs a command in the checkout, and shows its output while it runs."""
    with subprocess.Popen(
        ["bash", "-c", command], cwd=records.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as run:
        lines = []
        for line in run.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return run.returncode, re.sub(r"\x1b\[[0-9;]*m", "", "".join(lines))


def hash_of(record):
    """Returns the hash of the traces in a record, or None."""
    return next((hash for _, hash in record.get("lists", {}).get("hash", [])), None) if record else None


def contradiction(old, new):
    """Returns why two records of one product cannot both be right, or None."""
    before, now = hash_of(old), hash_of(new)
    if before and now and before != now and old["product"] == new["product"]:
        return f"harness: the same product had the hash {before} in the last record, and now has {now}"
    return None


def compare(old, new):
    """Returns the old and the new record beside each other."""
    names = dict.fromkeys([*(old or {}).get("figures", {}), *new["figures"]])
    values = [(name, (old or {}).get("figures", {}).get(name), new["figures"].get(name)) for name in names]
    values += [("hash", hash_of(old), hash_of(new))] if hash_of(new) else []
    values += [(name, (old or {}).get(name), new.get(name)) for name in ("exit", "seconds", "start", "commit", "processor", "load")]
    shown = [
        ("", "before", "now"),
        *(
            (name, *("-" if each is None else f"{each:,}" if isinstance(each, int) else str(each)[:40] for each in pair))
            for name, *pair in values
        ),
    ]
    widths = [max(len(line[at]) for line in shown) for at in range(3)]
    return "\n".join("  ".join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip() for line in shown)


def dirty():
    """Returns the tracked files that differ from the commit, apart from the records and the page that is made of them."""
    changed = records.git("status", "--porcelain", "--untracked-files=no") or ""
    names = [line.partition(" ")[2].strip() for line in map(str.strip, changed.splitlines())]
    return [name for name in names if not name.startswith(("docs/evidence/", "docs/assurance.md"))]


def section(row, log):
    """Returns the seconds and the output of a row's suite in the log of a whole run, such as CI's."""
    name = re.fullmatch(r"make test SUITE=([\w-]+)", row.command)
    if not name:
        raise records.Fault(f"{row.name}: its command is not one suite, so no log of a whole run has it")
    titles = [job.title for job in suites.whole("test").jobs]
    title = next(suite.title for suite in suites.SUITES if suite.name == name[1])
    heads = "|".join(re.escape(each) for each in titles)
    parts = re.split(rf"^== ({heads})(: begins)?$", re.sub(r"\x1b\[[0-9;]*m", "", log), flags=re.MULTILINE)
    found = [text for head, begins, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True) if head == title and not begins]
    took = re.search(rf"^ *(\d+) s  {re.escape(title)}", log, re.MULTILINE)
    if not found or not took:
        raise records.Fault(f"{row.name}: the log has no end of {title!r}")
    return int(took[1]), found[-1]


def from_log(row, file, commit, start, note):
    """Records a row's suite from the log of a whole run on this machine."""
    commit = records.git("rev-parse", "--verify", f"{commit}^{{commit}}")
    seconds, output = section(row, file.read_text(errors="replace"))
    exit, found, lists = judge(row, 0, output)
    if commit is None or exit == FAILED:
        print(
            f"{row.name}: {'unknown commit' if commit is None else 'the suite did not end as expected'}; nothing is recorded",
            file=sys.stderr,
        )
        return FAILED
    record = {"row": row.name, "flag": "log", "commit": commit, "product": records.product(commit), "start": start, "seconds": seconds}
    record |= records.machine() | {"load": None, "command": row.command, "figures": found, "exit": exit}
    records.append(record | {name: value for name, value in (("seeds", row.seeds), ("lists", lists), ("note", note)) if value})
    return exit


def rerun(row, note=""):
    """Runs a row, prints the record before it and the new one, and appends the new one."""
    if changed := dirty():
        print(f"{row.name}: commit first, because a record names the code that ran: {', '.join(changed[:5])}", file=sys.stderr)
        return FAILED
    commit = records.git("rev-parse", "HEAD")
    if commit is None:
        print(f"{row.name}: git has no history here, so nothing can be recorded: run it directly: {row.command}", file=sys.stderr)
        return FAILED
    about, start, since = records.machine(), records.now(), time.monotonic()
    print(f"{row.name}: {row.command}", flush=True)
    status, output = stream(row.command)
    exit, found, lists = judge(row, status, output)
    old = records.read().get(row.name, [None])[-1]
    record = {
        "row": row.name, "flag": "again" if old else "first", "commit": commit, "product": records.product(commit), "start": start,
        "seconds": round(time.monotonic() - since), **about, "command": row.command, "figures": found, "exit": exit,
    }  # fmt: skip
    record |= {name: value for name, value in (("seeds", row.seeds), ("lists", lists), ("note", note)) if value}
    print(compare(old, record))
    if exit == CLEAN and (why := contradiction(old, record)):
        print(why, file=sys.stderr)
        exit = FAILED
    if exit == FAILED:
        print(
            f"{row.name}: the harness failed with status {status}, or its output is not as expected. Nothing is recorded.", file=sys.stderr
        )
        return FAILED
    records.append(record)
    print(f"{row.name}: {'the claim is BROKEN' if exit else 'clean'}; recorded in docs/evidence. `make dossier` renews the page.")
    return exit
