"""Draws the guide's plots from the files of a run of `make bench`: bench/plot.py [FROM TO].

A file of FROM holds a language's cases, or `threads`, `latency` or `rows`.
"""

import json
import math
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "docs/pictures"))
from draw import NARROW, Picture

# Each has a contrast of at least 3:1 on its card.
LIGHT, DARK = ("#1f6f8b", "#767676", "#b3721a"), ("#5cabc8", "#8b939c", "#d08c35")
KINDS = ("frazil", "floor", "peer")


def style(names, rule):
    """The rule of each name with its colour, on light and on dark pages."""
    light, dark = ("".join(rule % (name, colour) for name, colour in zip(names, colours, strict=True)) for colours in (LIGHT, DARK))
    return f"<style>{light}\n@media (prefers-color-scheme:dark){{{dark}}}</style>"


LANGUAGES = {"c": "C and C++", "node": "Node.js"}
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


class Chart(Picture):
    """Horizontal bars by group on linear axes, on a card like the guide's other pictures. On a phone a bar's label is above it."""

    def __init__(self, title, groups, narrow):
        row, head = (34, 38) if narrow else (22, 38)
        self.narrow, self.row = narrow, row
        self.edge, self.left, self.right = (16, 16, 384) if narrow else (24, 24, 836)
        if not narrow:
            # A letter has 7 of the picture's units, and a bold one 7.6.
            self.left += max(len(text) * (7.6 if kind == "frazil" else 7) for _, bars in groups for kind, text, _, _ in bars)
        # A bar's figure is to its right.
        self.most = self.right - self.left - 52
        self.y = 44 + 24 * (narrow and bool(groups[0][0]))
        height = self.y + sum(head * bool(name) + row * len(bars) for name, bars in groups)
        super().__init__(NARROW if narrow else 860, height + 12, title)
        self.parts.append(style(KINDS, ".%s{fill:%s}").replace("<style>", "<style>.long{font-size:10px}"))
        self.text(self.edge, 30, title, "bold")
        for name, bars in groups:
            self.group(name, bars, head)

    def group(self, name, bars, head):
        if name:
            self.text(self.edge if self.narrow else self.left, self.y + head - 12, name, "bold small")
            self.y += head
        for kind, text, value, shown in bars:
            style = "small bold" if kind == "frazil" else "small"
            length = max(1, self.most * value / max(value for _, _, value, _ in bars))
            top = self.y + (20 if self.narrow else 4)
            if self.narrow:
                self.text(self.left, self.y + 15, text, f"{style} long" if len(text) > 55 else style)
            else:
                self.text(self.left - 8, self.y + 16, text, style, "end")
            self.parts.append(
                f'<rect x="{self.left:.1f}" y="{top}" width="{length:.1f}" height="{12 if self.narrow else 15}" class="{kind}"/>'
            )
            self.text(self.left + length + 6, top + (10 if self.narrow else 12), shown, style)
            self.y += self.row

    def legend(self):
        x, y = (self.edge, 46) if self.narrow else (self.right - 200, 20)
        for kind in KINDS:
            self.parts.append(f'<rect x="{x}" y="{y}" width="14" height="11" class="{kind}"/>')
            self.text(x + 20, y + 10, kind, "small dim")
            x += 74


def bars(language, cases, folder):
    """ns per ID by group, the fastest on top. Each group has its own linear axis, and its bars have their figures."""
    unit = "row" if language in ("columns", "orm") else "ID"
    groups = [
        (
            title,
            [
                (group(case["case"]), label(case["case"]), case["ns"], f"{case['ns']:,.{0 if case['ns'] >= 100 else 1}f}")
                for case in members
            ],
        )
        for title, members in grouped([case for case in cases if "empty loop" not in case["case"]])
    ]
    for narrow in (False, True):
        chart = Chart(f"{LANGUAGES.get(language, language.capitalize())}: ns per {unit}", groups, narrow)
        chart.legend()
        write(chart, folder / f"{language}{'_narrow' * narrow}.svg")


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
    shown = []
    for language, case, name in HEADLINE:
        ns = costs[language, label(case)]
        shown.append(("frazil" if name.endswith("frazil") else "floor", name, ns, f"{ns:.0f} ns"))
    for narrow in (False, True):
        write(Chart("The time of one ID, in ns", [("", shown)], narrow), folder / f"headline{'_narrow' * narrow}.svg")


class Plot(Picture):
    """Lines over places of an axis, each with its name at its last point, the highest one above it; `scale` is that of the other axis."""

    def __init__(self, title, axis, places, lines, ticks, narrow, scale=float):
        width = NARROW if narrow else 560
        super().__init__(width, 320, title)
        self.parts += [style("012", ".dot%s{fill:%s}"), style("012", ".line%s{stroke:%s;fill:none}")]
        left, right, top, bottom = 66, width - 20, 56, 262
        x = lambda place: left + 14 + (right - left - 28) * place
        y = lambda value: bottom - (bottom - top) * (scale(value) - scale(ticks[0])) / (scale(ticks[-1]) - scale(ticks[0]))
        self.text(16, 28, title, "bold")
        for tick in ticks:
            self.line([(left, y(tick)), (right, y(tick))], "grid", 1)
            self.text(left - 8, y(tick) + 4, f"{tick:,}", "small dim", "end")
        for place, name in places:
            is_wide = len(name) > 6 and place == 1
            self.text(right if is_wide else x(place), bottom + 20, name, "small dim", "end" if is_wide else "middle")
        self.text((left + right) / 2, bottom + 42, axis, "small dim", "middle")
        highest = max(values[-1] for _, values in lines)
        for number, (name, values) in enumerate(lines):
            points = [(x(place), y(value)) for (place, _), value in zip(places, values, strict=True)]
            self.line(points, f"line{number}", 2.5)
            for at_x, at_y in points:
                self.parts.append(f'<circle cx="{at_x:.1f}" cy="{at_y:.1f}" r="4" class="dot{number}"/>')
            # Below a line that rises, a name begins below the line's height there.
            (before_x, before_y), (end_x, end_y) = points[-2:]
            below = 14 + max(8, 7.6 * len(name) * (before_y - end_y) / (end_x - before_x))
            self.text(right - 6, round(end_y + (-10 if values[-1] == highest else below), 1), name, f"small bold dot{number}", "end")


def rows(cases, folder):
    """The cost of a row against the number of rows."""
    most = max(max(case["ns"]) for case in cases)
    counts = cases[0]["rows"]
    span = math.log10(counts[-1] / counts[0])
    places = [(math.log10(count / counts[0]) / span, f"{count:,}") for count in counts]
    lines = [(case["case"], case["ns"]) for case in cases]
    plot("rows", folder, "ns per row", "rows, logarithmic", places, lines, up_to(most))


def threads(cases, folder):
    most = max(max(case["millions"]) for case in cases)
    counts = cases[0]["threads"]
    places = [((count - counts[0]) / (counts[-1] - counts[0]), f"{count}") for count in counts]
    lines = [(case["case"], case["millions"]) for case in cases]
    plot("threads", folder, "Million IDs a second", "threads on one generator or segment", places, lines, up_to(most))


def latencies(cases, folder):
    low, high = (extreme(extreme(case["ns"]) for case in cases) for extreme in (min, max))
    ticks = [10**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    places = [(place / 3, name) for place, name in enumerate(["p50", "p99", "p99.9", "max"])]
    lines = [(case["case"], case["ns"]) for case in cases]
    plot("latency", folder, "ns of one call, logarithmic", "quantiles of the calls", places, lines, ticks, math.log10)


def up_to(most):
    """Four to nine ticks from 0 to the first that is not below a value."""
    step = 10 ** math.floor(math.log10(most))
    step = next(step * part for part in (1, 0.5, 0.2) if most / (step * part) > 3)
    return [int(step * number) for number in range(math.ceil(most / step) + 1)]


def plot(name, folder, title, axis, places, lines, ticks, scale=float):
    for narrow in (False, True):
        write(Plot(title, axis, places, lines, ticks, narrow, scale), folder / f"{name}{'_narrow' * narrow}.svg")


def write(chart, path):
    path.write_text(chart.svg())
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
                threads(cases, folder)
            case "latency":
                latencies(cases, folder)
            case language:
                bars(language, cases, folder)


if __name__ == "__main__":
    main()
