"""Makes docs/trial.md from trial/results.jsonl and trial/libraries.toml: trial/page.py, or trial/page.py --check."""

import json
import re
import sys
import textwrap
import tomllib
from pathlib import Path

TRIAL = Path(__file__).resolve().parent
PAGE = TRIAL.parent / "docs/trial.md"
LANGUAGES = {"rust": "Rust", "python": "Python", "node": "Node.js"}
ENDINGS = {"rust": "rs", "python": "py", "node": "mjs"}
WIDTH = 120
NOT_RUN = "not run"
"""The outcome of a trial without a record."""
WAITED_S = 0.5
"""A trial whose longest pause between two calls is above this has waited. The pauses of the trials themselves are 1 ms."""
TABLES = {
    "In one process": ("burst", "two", "pause", "json"),
    "Several processes": ("fork", "prefork", "kill"),
    "The clock is set back by 2 s": ("back", "restart"),
}
HEADS = {
    "burst": "burst",
    "two": "two generators, one number",
    "pause": "pause",
    "json": "JSON",
    "fork": "fork",
    "prefork": "four processes, one number",
    "kill": "kill, then a start",
    "back": "clock back while it runs",
    "restart": "clock back before a restart",
}
EVEN = {"None": "`None` instead of an ID", "Do not know how to serialize a BigInt": "`TypeError`: no form in JSON"}


def libraries():
    rows = tomllib.loads((TRIAL / "libraries.toml").read_text())
    return {f"{language}/{name}": row for language, group in rows.items() for name, row in group.items()}


def results():
    """Returns the records by library and trial."""
    return {(record["library"], record["trial"]): record for record in map(json.loads, (TRIAL / "results.jsonl").read_text().splitlines())}


def failed(record):
    """Returns whether a trial found an ID twice, a broken order, a process that hangs, or an ID that JavaScript reads as another."""
    return any(record.get(figure) for figure in ("duplicates", "descents", "changed", "cut"))


def cell(record, running):
    """Returns the outcome of a trial as text. `running` is whether the library followed the clock in the positive control."""
    if record is None:
        return NOT_RUN
    if record.get("not_applicable"):
        return "not applicable"
    said = []
    if record["trial"] == "json":
        if record.get("changed"):
            return f"**{record['changed']:,}** of {record['ids']:,} read as another number"
        if record["ids"]:
            return "exact"
    elif record["duplicates"]:
        said.append(f"**{record['duplicates']:,} duplicates** of {record['ids']:,}")
    elif record["ids"]:
        said.append(f"0 of {record['ids']:,}")
    if record.get("descents"):
        said.append(f"**order broken** {record['descents']:,} times")
    if record.get("cut"):
        said.append("**a process did not end**")
    errors = record["errors"]
    if errors:
        said.append("error: " + ", ".join(EVEN.get(error, f"`{error}`" if error.isidentifier() else error) for error in errors))
    if record["trial"] not in ("burst", "pause") and record.get("longest", 0) > WAITED_S:
        said.append(f"waited {record['longest']:.1f} s")
    if record["trial"] == "back" and not running:
        said.append("does not follow the clock")
    return "; ".join(said)


def program(key):
    """Returns the file with a library's function, and the numbers of the function's first and last line."""
    language, name = key.split("/")
    file = TRIAL / "programs" / f"libraries.{ENDINGS[language]}"
    lines = file.read_text().splitlines()
    [first] = [number for number, line in enumerate(lines) if re.match(rf"(?:def|fn|async function) {name}\(", line)]
    last = next(number for number in range(first, len(lines)) if number + 1 == len(lines) or re.match(r"\S", lines[number + 1]))
    return file, first + 1, last + 1


def row(key, library):
    file, line, _ = program(key)
    return f"[{library.get('row', library['library'])}](../trial/programs/{file.name}#L{line})"


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(cells) + " |" for cells in rows])


def tables(records, known):
    for title, trials in TABLES.items():
        yield f"### {title}\n"
        for language, shown in LANGUAGES.items():
            rows = []
            for key, library in known.items():
                if not key.startswith(f"{language}/"):
                    continue
                running = records[key, "control"].get("running")
                rows.append([row(key, library), *(cell(records.get((key, trial)), running) for trial in trials)])
            yield table([shown, *(HEADS[trial] for trial in trials)], rows) + "\n"


def failures(records, known):
    """Returns frazil's own failed trials, with their rows and languages."""
    found = {}
    for (key, trial), record in records.items():
        if known[key]["library"] == "frazil" and failed(record):
            found.setdefault((trial, known[key]["row"]), []).append(LANGUAGES[key.split("/")[0]])
    return "; ".join(
        f"{HEADS[trial]}, {row.removeprefix('frazil, ')} ({', '.join(languages)})" for (trial, row), languages in found.items()
    )


def page():
    records, known = results(), libraries()
    text = (TRIAL / "page.md").read_text()
    dates = sorted(record["date"] for record in records.values())
    ran = sorted({record["processor"] for record in records.values()}), sorted({record["kernel"] for record in records.values()})
    runtimes = sorted({record["runtime"] for record in records.values()})
    judged = [record for record in records.values() if record["trial"] not in ("control", "json") and not record.get("not_applicable")]
    control = [record for record in records.values() if record["trial"] == "control"]
    own = [record for record in judged if known[record["library"]]["library"] == "frazil"]
    peers = [record for record in judged if record not in own]
    says = table(
        ["library", "version", "its number", "what its page says, in our words"],
        (
            [
                f"[{library['library']}]({library['source']}), {LANGUAGES[key.split('/')[0]]}",
                records[key, "control"]["version"],
                library["number"],
                library["says"],
            ]
            for key, library in known.items()
            if not key.endswith("leased")
        ),
    )
    made = text.format(
        libraries=len({library["source"] for library in known.values() if library["library"] != "frazil"}),
        cells=len(peers),
        ids=f"{sum(record['ids'] for record in judged):,}",
        own_ids=f"{sum(record['ids'] for record in own):,}",
        duplicates=sum(bool(record["duplicates"]) for record in peers),
        own_failures=failures(records, known),
        processor=", ".join(ran[0]),
        kernel=", ".join(ran[1]),
        runtimes=", ".join(runtimes),
        first=dates[0].replace("+00:00", "Z"),
        last=dates[-1].replace("+00:00", "Z"),
        running=sum(bool(record.get("running")) for record in control),
        starting=sum(bool(record.get("starting")) for record in control),
        controls=len(control),
        tables="\n".join(tables(records, known)).strip(),
        says=says,
    )
    return "".join(f"{wrapped(line)}\n" for line in made.splitlines())


def wrapped(line):
    """Returns a line of prose in lines of at most 120 columns."""
    if len(line) <= WIDTH or line.startswith("|"):
        return line
    return textwrap.fill(
        line, WIDTH, subsequent_indent="  " if line.startswith("- ") else "", break_long_words=False, break_on_hyphens=False
    )


if __name__ == "__main__":
    made = page()
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if made == PAGE.read_text() else "docs/trial.md is not what trial/results.jsonl gives: run trial/page.py")
    PAGE.write_text(made)
