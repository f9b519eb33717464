"""Draws the guide's plots from the files of a run of `make bench`: bench/plot.py [FROM TO].

A file of FROM holds a language's cases, or `threads`, `latency` or `rows`.
"""

import json
import re
import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt

mpl.use("svg")
# The same figures give the same file. Text stays text, because glyphs as paths take ten times the space.
mpl.rcParams |= {
    "svg.hashsalt": "frazil",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "sans-serif"],
}
mpl.rcParams |= {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
# Each has a contrast of at least 3:1 on white.
OURS, FLOOR, PEER = "#1f6f8b", "#767676", "#b3721a"
# The calls of the first chart: the file of a language, the case, and the label.
HEADLINE = [
    ("python", "mint = ids.next; mint()", "Python: frazil"),
    ("python", "uuid_utils uuid7()", "Python: uuid_utils, UUID 7"),
    ("python", "snowflake-id next(generator)", "Python: snowflake-id"),
    ("node", "ids.next()", "Node.js: frazil"),
    ("node", "crypto.randomUUID()", "Node.js: crypto.randomUUID"),
    ("node", "@sapphire/snowflake, string", "Node.js: @sapphire/snowflake"),
]


def group(case):
    """The kind of a case, by its name in the benches; C's table sets ours in bold."""
    if "floor: " in case:
        return "floor"
    return "frazil" if case.startswith("frazil") or "**" in case else "peer"


def label(case):
    return re.sub(r"floor: |frazil: |peer: |[*`]", "", case)


def beside(axes, text, x, y, left=False, **style):
    """Writes a text on one side of a point."""
    offset, side = (-4, "right") if left else (4, "left")
    axes.annotate(text, (x, y), xytext=(offset, 0), textcoords="offset points", ha=side, va="center", **style)


def bars(language, cases, folder):
    """ns per ID, the fastest on top."""
    cases = sorted((case for case in cases if "empty loop" not in case["case"]), key=lambda case: -case["ns"])
    colours = {"floor": FLOOR, "frazil": OURS, "peer": PEER}
    figure, axes = plt.subplots(figsize=(8, 0.6 + 0.24 * len(cases)))
    for kind, colour in colours.items():
        places = [place for place, case in enumerate(cases) if group(case["case"]) == kind]
        axes.barh(places, [cases[place]["ns"] for place in places], color=colour, label=kind)
    axes.set_yticks(range(len(cases)), [label(case["case"]) for case in cases])
    axes.set_xscale("log")
    axes.set_xlabel(f"ns per {'row' if language in ('columns', 'orm') else 'ID'}, logarithmic")
    axes.legend(frameon=False, loc="upper right")
    for place, case in enumerate(cases):
        beside(axes, f"{case['ns']:,.{0 if case['ns'] >= 100 else 1}f}", case["ns"], place, fontsize=8)
    axes.margins(x=0.12, y=0.01)
    save(figure, folder / f"{language}.svg")


def headline(languages, folder):
    """A call of frazil beside its best-known peers, on a linear axis."""
    costs = {(language, label(case["case"])): case["ns"] for language in ("python", "node") for case in languages[language]}
    figure, axes = plt.subplots(figsize=(7, 2))
    for place, (language, case, name) in enumerate(reversed(HEADLINE)):
        is_ours, ns = name.endswith("frazil"), costs[language, label(case)]
        weight = "bold" if is_ours else "normal"
        axes.barh(place, ns, color=OURS if is_ours else FLOOR)
        beside(axes, f"{ns:.0f} ns", ns, place, weight=weight)
        beside(axes, name, 0, place, left=True, weight=weight)
    axes.set_axis_off()
    save(figure, folder / "headline.svg")


def rows(cases, folder):
    """The cost of a row against the number of rows."""
    figure, axes = plt.subplots(figsize=(6, 3.2))
    for case, colour in zip(cases, (OURS, PEER, FLOOR), strict=False):
        axes.plot(case["rows"], case["ns"], marker="o", color=colour, label=case["case"])
    axes.set_xscale("log")
    axes.set_xlabel("rows, logarithmic")
    axes.set_ylabel("ns per row")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    save(figure, folder / "rows.svg")


def lines(cases, folder):
    figure, axes = plt.subplots(figsize=(6, 3.2))
    for case in cases:
        axes.plot(case["threads"], case["millions"], marker="o", label=case["case"])
    axes.set_xticks(cases[0]["threads"])
    axes.set_xlabel("threads on one generator or segment")
    axes.set_ylabel("million IDs a second")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    save(figure, folder / "threads.svg")


def latencies(cases, folder):
    figure, axes = plt.subplots(figsize=(6, 3.2))
    quantiles = ["p50", "p99", "p99.9", "max"]
    for case in cases:
        axes.plot(quantiles, case["ns"], marker="o", label=case["case"])
    axes.set_yscale("log")
    axes.set_ylabel("ns of one call, logarithmic")
    axes.legend(frameon=False)
    save(figure, folder / "latency.svg")


def save(figure, path):
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    print(path)


def main():
    source, folder = map(Path, sys.argv[1:] or ["build/bench", "docs/speed"])
    folder.mkdir(parents=True, exist_ok=True)
    measured = {path.stem: json.loads(path.read_text()) for path in sorted(source.glob("*.json"))}
    if {"python", "node"} <= measured.keys():
        headline(measured, folder)
    for name, cases in measured.items():
        match name:
            case "rows":
                rows(cases, folder)
            case "threads":
                lines(cases, folder)
            case "latency":
                latencies(cases, folder)
            case language:
                bars(language, cases, folder)


if __name__ == "__main__":
    main()
