"""The hand-written sources of the tables: claims.toml, evidence.toml, history.toml."""

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Row:
    """A row of table C: a command that can be repeated."""

    name: str
    what: str
    kind: str
    runs: str
    command: str
    minutes: int
    expected: str
    """A text that a clean run prints."""
    control: str
    """The check that would notice if this evidence could not fail."""
    seeds: str = ""
    amount: dict[str, str] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    found: dict[str, str] = field(default_factory=dict)
    lists: dict[str, str] = field(default_factory=dict)
    broken: str = r"(?!)"
    """A pattern of what only a broken claim prints."""

    @property
    def patterns(self):
        return self.amount | self.faults | self.found


def load(name):
    return tomllib.loads((HERE / f"{name}.toml").read_text())


def rows():
    """Returns the rows of table C by their names."""
    return {name: Row(name, **content) for name, content in load("evidence").items()}


def strings(value):
    """Yields every text of a TOML value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)


# Numbers that no run gives: in code, names, dates, versions, hashes and links.
NO_FIGURE = re.compile(r"`[^`]*`|\{[\w.]+\}|\]\([^)]*\)|\b(?:UUID|HTTP/|ID|PRNG)[ -]?\d+|\b(?=\d*[a-f])[0-9a-f]{8}\b|\b\d{4}-\d\d-\d\d\b")
FIGURE = re.compile(r"\b\d+ (?:%|thousand|million|billion)|\b\d+\.\d+\b|\b\d[\d,]*\d\b")


def bare_figures(text):
    """Returns the numbers of a hand-written text without a record: those of two digits and more, with a fraction, or of a unit."""
    return FIGURE.findall(NO_FIGURE.sub("", text))


def filled(text, records):
    """Returns a hand-written text with its places, such as `{C1.seeds}`, filled from the last record of the row."""

    def figure(place):
        row, _, name = place[1].partition(".")
        runs = records.get(row)
        if not runs:
            return f"(not run yet: {row})"
        if name not in runs[-1]["figures"]:
            raise KeyError(f"{row} has no figure {name!r}")
        return f"{runs[-1]['figures'][name]:,}"

    return re.sub(r"\{(\w+\.[\w ]+)\}", figure, text)
