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
# The groups of a language's chart, each with the words of its cases; the first that matches has the case, and else `One call`.
GROUPS = {
    "Two threads": r"two threads|2 threads",
    "More than a millisecond's sequence": r"60,?000",
    "Batches": r"fill|batch|1000",
    "UUIDs and ObjectIds": r"uuid|object_?id|nanoid|random bytes",
    "Text": r"base62|decimal|character|text|\bstr\(",
    "Segments and rings": r"segment|buffered|\bring\b",
    "A clock or a call alone": r"^SystemTime|^clock_gettime$|^rdtsc$|^Date|hrtime|empty call|does nothing|time_ns|s counter$",
}
SHOWN = ("One call", "Text", "Batches", "Two threads", "Segments and rings", *GROUPS)
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
    """ns per ID by group, the fastest on top. Each group has its own linear axis, and its bars have their figures."""
    unit = "row" if language in ("columns", "orm") else "ID"
    groups = grouped([case for case in cases if "empty loop" not in case["case"]])
    colours = {"frazil": OURS, "floor": FLOOR, "peer": PEER}
    heights = [len(members) + 0.9 for _, members in groups]
    figure, panels = plt.subplots(len(groups), figsize=(8, 0.23 * sum(heights)), height_ratios=heights, squeeze=False)
    for axes, (title, members) in zip(panels.flat, groups, strict=True):
        for place, case in enumerate(members):
            kind, ns = group(case["case"]), case["ns"]
            weight = "bold" if kind == "frazil" else "normal"
            axes.barh(place, ns, height=0.75, color=colours[kind])
            beside(axes, f"{ns:,.{0 if ns >= 100 else 1}f}", ns, place, fontsize=8, weight=weight)
            beside(axes, label(case["case"]), 0, place, left=True, fontsize=8, weight=weight)
        axes.set_title(f"{title}, ns per {unit}", loc="left", fontsize=9, weight="bold", pad=2)
        axes.set(ylim=(len(members) - 0.4, -0.6), xlim=(0, 1.1 * max(case["ns"] for case in members)))
        axes.set_axis_off()
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()]
    panels[0, 0].legend(handles, colours, frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=3, borderpad=0)
    figure.subplots_adjust(hspace=0.25)
    save(figure, folder / f"{language}.svg")


def grouped(cases):
    """The cases of each group, in the order of `SHOWN`, the fastest first."""
    groups = {title: [] for title in SHOWN}
    for case in sorted(cases, key=lambda case: case["ns"]):
        title = next((title for title, words in GROUPS.items() if re.search(words, label(case["case"]), re.IGNORECASE)), SHOWN[0])
        groups[title].append(case)
    return [(title, members) for title, members in groups.items() if members]


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
