"""Writes docs/assurance.md from the records and the hand-written sources."""

import re
import statistics

from . import records, source, supply

PAGE = records.ROOT / "docs/assurance.md"
NOT_RUN = "not run yet"


def table(head, rows):
    """Returns a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def amounts(figures, names):
    return ", ".join(f"{figures[name]:,} {name}" for name in names if name in figures)


def link(text, target):
    return f"[{text}]({target})"


class Page:
    """The tables, from the records by row and the sources."""

    def __init__(self, runs, rows, claims, history, planted):
        self.runs, self.rows, self.claims, self.history, self.planted = runs, rows, claims, history, planted
        self.kinds, self.attacks = claims["kinds"], claims["attacks"]
        self.claimed = {name: claim for name, claim in claims.items() if re.fullmatch(r"A\d+", name)}

    def last(self, row):
        """Returns the last record of a row, or None."""
        return self.runs.get(row, [None])[-1]

    def holds(self, row):
        """Returns whether the last run of a row was clean."""
        return (self.last(row) or {"exit": 1})["exit"] == 0

    def unlisted(self, row, name):
        """Returns why a row has no such list for a table: it was not run, or was broken. None if it has one."""
        record = self.last(row)
        if record and name in record.get("lists", {}):
            return None
        return f"{row}: {'broken' if record else NOT_RUN}."

    def when(self, row):
        record = self.last(row)
        return NOT_RUN if record is None else record["start"][:10] + (" **BROKEN**" if record["exit"] else "")

    def arguments(self, claim):
        """Returns the evidence of a claim by its kinds; a row that was not run counts, but is shown as such."""
        kinds = {"proof on paper": list(claim["paper"])} if claim["paper"] else {}
        for row in claim["evidence"]:
            kinds.setdefault(self.rows[row].kind, []).append(row)
        return kinds

    def computed_gaps(self):
        """Yields what the tables lack: claims with too few kinds of evidence that ran, rows that were not run, rows without a control."""
        for name, claim in self.claimed.items():
            ran = [kind for kind, by in self.arguments(claim).items() if kind == "proof on paper" or any(map(self.holds, by))]
            if len(ran) < 2:
                yield f"{name}: {f'{ran[0]} alone' if ran else 'no evidence that ran'}", "one kind of mistake could hide a broken claim"
        missing = [row for row in self.rows if not self.last(row)]
        if missing:
            yield f"{', '.join(missing)}: {NOT_RUN} for a record", "their commands are known to parse, and no more is shown"
        blind = [name for name, row in self.rows.items() if row.control.startswith("none")]
        if blind:
            yield f"{', '.join(blind)}: no positive control", "a check that cannot fail would look the same"

    def a(self):
        rows = []
        for name, claim in self.claimed.items():
            kinds = self.arguments(claim)
            rows.append([name, link(claim["claim"], claim["link"]), claim["holds"], claim["fails"], ", ".join(kinds)])
        return table(["claim", "the sentence", "holds if", "does **not** hold if", "arguments"], rows)

    def b(self):
        blind = table(["kind", "what it cannot see"], self.kinds.items())
        rows = []
        for name, claim in self.claimed.items():
            for kind, by in self.arguments(claim).items():
                if kind == "proof on paper":
                    rows.append([name, kind, ", ".join(link(f"`{path}`", f"../{path}") for path in by), "-", "table F"])
                else:
                    dates = ", ".join(dict.fromkeys(f"{row}: {self.when(row)}" for row in by))
                    controls = "; ".join(dict.fromkeys(self.rows[row].control for row in by))
                    rows.append([name, kind, ", ".join(by), dates, controls])
        return f"{blind}\n\n" + table(["claim", "kind", "evidence", "last run", "positive control"], rows)

    def c(self):
        rows = []
        for name, row in self.rows.items():
            record, all_runs = self.last(name), self.runs.get(name, [])
            figures = record["figures"] if record else {}
            ever = {figure: sum(run["figures"].get(figure, 0) for run in all_runs) for figure in row.amount}
            found = "-" if not record else "**the claim is broken**" if record["exit"] else amounts(figures, row.found) or "nothing"
            total = f"{amounts(ever, row.amount)} in {len(all_runs)} runs" if len(all_runs) > 1 else "the same" if record else "-"
            if broken := sum(run["exit"] != 0 for run in all_runs):
                total += f", **{broken} broken**"
            amount, faults = amounts(figures, row.amount) or NOT_RUN, amounts(figures, row.faults) or "-"
            rows.append([name, row.what, row.runs, amount, faults, found, total])
        return table(["row", "what", "what ran", "amount of the last run", "faults", "found", "totals ever"], rows)

    def commands(self):
        rows = []
        for name, row in self.rows.items():
            took = NOT_RUN
            if record := self.last(name):
                load = "in a whole run" if record["load"] is None else f"load {record['load']}"
                start = record["start"].replace("T", " ")[:16]
                took = f"{start}, {record['seconds']} s, {load}, `{record['commit'][:8]}`"
            rows.append([name, f"`{row.command}`", row.minutes, f"`{row.expected.strip()}`", took])
        return table(
            ["row", "command", "minutes (estimate)", "a clean run prints", "last run (UTC), seconds, load of the machine, commit"], rows
        )

    def d(self):
        rows = self.unlisted("C1", "reached") or self.last("C1")["lists"]["reached"]
        if isinstance(rows, str):
            return rows
        head = ["a state that must be reached", "times", "at least"]
        return table(head, [[text, f"{int(n):,}", f"{int(least):,}"] for n, least, text in rows])

    def e(self):
        record, why = self.last("C3"), self.unlisted("C3", "hash")
        if why:
            return why
        about = f"{record['figures']['trace lines']:,}", f"`{record['commit'][:8]}`"
        rows = [["simulation", seeds, *about, f"`{hash}`"] for seeds, hash in record["lists"]["hash"]]
        same = "hash of all traces, which another machine must get at this commit"
        return table(["check", "seeds run twice", "equal lines of their traces", "commit", same], rows)

    def f(self):
        caught = {}
        for run in sorted(self.runs.get("C5", []) + self.runs.get("C26", []), key=lambda run: run["start"]):
            caught |= {name: found for name, found in run.get("lists", {}).get("caught", [])}
            caught |= {name: "" for name, _ in run.get("lists", {}).get("missed", [])}
        rows = []
        for name, _, check in self.planted:
            found = caught.get(name)
            seed = re.match(r"seed (\d+): ", found or "")
            needed = f"{int(seed[1]) + 1:,}" if seed else "1 case" if found else "-"
            rows.append([name, check, f"`{found}`" if found else NOT_RUN if found is None else "**missed**", needed])
        seeds = sorted(int(n) + 1 for found in caught.values() for n in re.findall(r"^seed (\d+): ", found))
        middle = f"The seeds that a bug needs: {statistics.median_low(seeds):,} in the middle, {seeds[-1]:,} at worst." if seeds else ""
        attacks = [
            [name, "`make try-to-break`", f"by {by}", f"{seconds} s"]
            for seconds, name, by in (self.last("C23") or {}).get("lists", {}).get("found", [])
        ]
        text = f"{sum(map(bool, caught.values()))} of {len(rows)} were found when they were last run. {middle}\n\n"
        return text + table(["planted bug", "the check that must find it", "found as", "seeds"], rows + attacks)

    def g(self):
        return table(
            ["check", "false alarm or blindness", "found by", "fixed in", "the test that holds it"],
            [[each["check"], each["kind"], each["found"], each["fixed"], f"`{each['test']}`"] for each in self.history["mistakes"]],
        )

    def h(self):
        rows = []
        for each in self.history["defects"]:
            record = self.last(f"H-{each['name']}")
            shown = f"`make defect-{each['name']}`" + ("" if record else f" ({NOT_RUN})") if "command" in each else "none"
            repeated = amounts(record["figures"], record["figures"]) if record else "not measured"
            repeated = "shown by a failing test" if record and not record["figures"] else repeated
            rows.append(
                [each["defect"], repeated, each["introduced"], each["found"], each["late"], each["fixed"], shown, f"`{each['test']}`"]
            )
        return table(
            ["defect", "IDs repeated", "introduced in", "found by", "why not earlier", "fixed in", "shown by", "the test that holds it"],
            rows,
        )

    def i(self):
        rows = [[each["what"], each["consequence"], each["closes"], each["since"]] for each in self.history["gaps"]]
        rows += [
            [what, consequence, "the missing runs, kinds or controls (computed from the tables above)", "now"]
            for what, consequence in self.computed_gaps()
        ]
        return table(["what is not shown", "consequence", "what would close it", "since"], rows)

    def unsafe(self):
        rows = [
            [f"`{name}`", places, " · ".join(reasons), supply.attack(name, self.attacks)] for name, places, reasons in supply.unsafe_files()
        ]
        text = f"{sum(row[1] for row in rows)} blocks, implementations, foreign functions and sections in {len(rows)} files. Equal comments of a file are shown once."
        return f"{text}\n\n" + table(["file", "places", "why it is sound", "what attacks it"], rows)

    def crates(self):
        rows = [[licence, len(names), ", ".join(names)] for licence, names in supply.crates().items()]
        return table(["licence", "crates", "names and versions"], rows)

    def text(self):
        dates = [record["start"][:10] for runs in self.runs.values() for record in runs]
        names = (*"abcdefghi", "commands", "unsafe", "crates")
        tables = {name: getattr(self, name)() for name in names}
        template = (source.HERE / "assurance.md.in").read_text()
        filled = re.sub(r"^\{(\w+)\}$", lambda place: tables[place[1]], template, flags=re.MULTILINE)
        filled = filled.replace("{date}", max(dates, default=NOT_RUN)).replace("{runs}", str(len(dates)))
        return source.filled(filled, self.runs)


def planted():
    """Returns each planted bug with the kind of its check, from the list of tests/mutants."""
    import sys

    sys.path.insert(0, str(records.ROOT / "tests/mutants"))
    import run

    yield from ((name, "seeds", "the simulation, by a duplicate") for name, *_ in run.MUTANTS)
    yield from ((name, tests, f"`{tests}`") for name, _, _, tests in run.FOUND_BY_TESTS)


def make(runs=None):
    """Returns the page as the committed records give it."""
    runs = records.read() if runs is None else runs
    return Page(runs, source.rows(), source.load("claims"), source.load("history"), list(planted())).text()
