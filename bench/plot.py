"""Draws the guide's plots from what a run of `make bench` has kept: bench/plot.py [FROM TO].

A file of FROM holds a language's cases, or `threads`, or `latency`.
"""

import json
import re
import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt

mpl.use("svg")
# The same text gives the same file.
mpl.rcParams |= {"svg.hashsalt": "frazil", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
OURS, FLOOR, PEER = "#1f6f8b", "#b8b8b8", "#d9a441"


def group(case):
    """The kind of a case, by its name in the benches; C's table sets ours in bold."""
    if "floor: " in case:
        return "floor"
    return "frazil" if case.startswith("frazil") or "**" in case else "peer"


def label(case):
    return re.sub(r"floor: |frazil: |peer: |[*`]", "", case)


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
    axes.set_xlabel(f"ns per {'row' if language == 'orm' else 'ID'}, logarithmic")
    axes.legend(frameon=False, loc="upper right")
    for place, case in enumerate(cases):
        axes.annotate(f" {case['ns']:,.{0 if case['ns'] >= 100 else 1}f}", (case["ns"], place), va="center", fontsize=8)
    axes.margins(x=0.12, y=0.01)
    save(figure, folder / f"{language}.svg")


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
    for path in sorted(source.glob("*.json")):
        cases = json.loads(path.read_text())
        match path.stem:
            case "threads":
                lines(cases, folder)
            case "latency":
                latencies(cases, folder)
            case language:
                bars(language, cases, folder)


if __name__ == "__main__":
    main()
