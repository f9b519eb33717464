"""Draws the guide's plots: bench/plot.py [FROM [TO] | --check | --narrow FOLDER].

FROM is the folder of a run of `make bench` (build/bench), whose files hold a language's cases, or `threads`, `latency` or `rows`. TO
(docs/speed) gets the figures as measured.json, and a plot for each file. The narrow forms, which are for phones, are drawn from measured.json
when the guide's site is built.
"""

import json
import math
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs/pictures"))
from draw import NARROW, Picture

GUIDE = ROOT / "docs/speed"

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


def bars(language, cases):
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

    def draw(narrow):
        chart = Chart(f"{LANGUAGES.get(language, language.capitalize())}: ns per {unit}", groups, narrow)
        chart.legend()
        return chart

    return draw


def grouped(cases):
    """The cases of each group, in the order of `SHOWN`, the fastest first."""
    groups = {title: [] for title in SHOWN}
    for case in sorted(cases, key=lambda case: case["ns"]):
        title = next((title for title, words in GROUPS.items() if re.search(words, label(case["case"]), re.IGNORECASE)), SHOWN[0])
        groups[title].append(case)
    return [(title, members) for title, members in groups.items() if members]


def headline(languages):
    """A call of frazil beside its best-known peers, on a linear axis."""
    costs = {(language, label(case["case"])): case["ns"] for language in ("python", "node") for case in languages[language]}
    shown = []
    for language, case, name in HEADLINE:
        ns = costs[language, label(case)]
        shown.append(("frazil" if name.endswith("frazil") else "floor", name, ns, f"{ns:.0f} ns"))
    return lambda narrow: Chart("The time of one ID, in ns", [("", shown)], narrow)


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


def rows(cases):
    """The cost of a row against the number of rows."""
    most = max(max(case["ns"]) for case in cases)
    counts = cases[0]["rows"]
    span = math.log10(counts[-1] / counts[0])
    places = [(math.log10(count / counts[0]) / span, f"{count:,}") for count in counts]
    lines = [(case["case"], case["ns"]) for case in cases]
    return plot("ns per row", "rows, logarithmic", places, lines, up_to(most))


def threads(cases):
    most = max(max(case["millions"]) for case in cases)
    counts = cases[0]["threads"]
    places = [((count - counts[0]) / (counts[-1] - counts[0]), f"{count}") for count in counts]
    lines = [(case["case"], case["millions"]) for case in cases]
    return plot("Million IDs a second", "threads on one generator or segment", places, lines, up_to(most))


def latencies(cases):
    low, high = (extreme(extreme(case["ns"]) for case in cases) for extreme in (min, max))
    ticks = [10**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    places = [(place / 3, name) for place, name in enumerate(["p50", "p99", "p99.9", "max"])]
    lines = [(case["case"], case["ns"]) for case in cases]
    return plot("ns of one call, logarithmic", "quantiles of the calls", places, lines, ticks, math.log10)


def up_to(most):
    """Four to nine ticks from 0 to the first that is not below a value."""
    step = 10 ** math.floor(math.log10(most))
    step = next(step * part for part in (1, 0.5, 0.2) if most / (step * part) > 3)
    return [int(step * number) for number in range(math.ceil(most / step) + 1)]


def plot(title, axis, places, lines, ticks, scale=float):
    return lambda narrow: Plot(title, axis, places, lines, ticks, narrow, scale)


def plots(measured):
    """Returns a function for each plot, which draws it, wide or narrow."""
    kinds = {"rows": rows, "threads": threads, "latency": latencies}
    drawn = {name: kinds[name](cases) if name in kinds else bars(name, cases) for name, cases in measured.items()}
    return drawn | ({"headline": headline(measured)} if {"python", "node"} <= measured.keys() else {})


def text_of(measured):
    """Returns the figures as JSON, with a case in each line."""
    kept = ("case", "ns", "rows", "threads", "millions")
    line = lambda case: "  " + json.dumps({key: case[key] for key in kept if key in case}, ensure_ascii=False)
    files = (f' "{name}": [\n' + ",\n".join(map(line, cases)) + "\n ]" for name, cases in measured.items())
    return "{\n" + ",\n".join(files) + "\n}\n"


def main():
    match sys.argv[1:]:
        case ["--check"]:
            drawn = plots(json.loads((GUIDE / "measured.json").read_text()))
            files = {path.name: path.read_text() for path in GUIDE.glob("*.svg")}
            if files != {f"{name}.svg": draw(False).svg() for name, draw in drawn.items()}:
                sys.exit("docs/speed is not what bench/plot.py draws from measured.json")
        case ["--narrow", folder]:
            for name, draw in plots(json.loads((GUIDE / "measured.json").read_text())).items():
                (Path(folder) / f"{name}_narrow.svg").write_text(draw(True).svg())
        case folders:
            source, folder = (*map(Path, folders), *(Path("build/bench"), GUIDE)[len(folders) :])
            folder.mkdir(parents=True, exist_ok=True)
            files = (path for path in sorted(source.glob("*.json")) if path.name != "measured.json")
            measured = {path.stem: json.loads(path.read_text()) for path in files}
            (folder / "measured.json").write_text(text_of(measured))
            for name, draw in plots(measured).items():
                (folder / f"{name}.svg").write_text(draw(False).svg())
                print(folder / f"{name}.svg")


if __name__ == "__main__":
    main()
