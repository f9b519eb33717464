#!/usr/bin/env python3
"""Measures the structure of the Rust code: lines by module, long files, circles of imports, first words of doc comments, and the gauges.

    scripts/house.py            # a table for each crate, and its circles with the imports that cause them
    scripts/house.py --gauges   # the gauges of tests/repo/house.json, which only fall
    scripts/house.py --floors   # which crate, and which module of frazil, imports which: the page in CONTRIBUTING.md

Product code excludes blank lines, comments and tests. In a circle, each file imports every other file, directly or indirectly.
A re-export is not an import: a file that uses a re-exported name imports the file that defines it.
A file may import from the modules that contain it; these imports do not count.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# From the lowest floor up: a crate imports only those before it.
CRATES = ("core/base", "core/store", "core", "cli", "server", "python", "node", "c-api")
LONG = 250
# Files that are not built on Linux.
ELSEWHERE = ("/windows.rs", "/lock_files.rs", "/elsewhere.rs")
# A doc comment begins with a noun phrase or a verb in the third person, not with one of these.
FIRST_WORDS = re.compile(r"(What|Who|Whose|Whoever|How|Whether|Where|When|Of|As|For|Until|The same)\b")
DOC_COMMENTS = {
    # The first line of a block of `///` or `//!`.
    "rs": re.compile(r"(?:^|\n)[ \t]*//[/!] ?(.*(?:\n[ \t]*//[/!].*)*)"),
    "py": re.compile(r'^\s*(?:"""|\'\'\')(\S.*)', re.MULTILINE),
    "ts": re.compile(r"/\*\*\s*(?:\*\s)?\s*(\S.*)"),
}
# Files of a module tree that hold no product code.
TESTS = re.compile(r"(^|/)(tests?|simulation|suite|loom_tests|\w+_tests|copy|sigpipe)(/|\.rs$)")
# Comments, and strings that look like a comment or a path.
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|r#+".*?"#+|b?"(?:\\.|[^"\\])*"|b?\'(?:\\.[^\']*|[^\\\'])\'', re.DOTALL)
TEST_MODULE = re.compile(r"#\[cfg\((?:test|all\(test\b[^\]]*)\)\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*\{")
TYPE = re.compile(r"^(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+)?(?:struct|enum|trait|union|type)\s+(\w+)", re.MULTILINE)
# Words that frazil's texts have used in unusual senses.
PRIVATE_WORDS = re.compile(
    r"\b(?:tell|tells|told|telling|behind|stands?|meanwhile|mend(?:s|ed)?|by hand|so many)\b"
    r"|\b[Ww]ho(?:ever)? (?:asks?|comes?|waits?|calls?|has|have|is|are|uses?|opens?|takes?|wants?|sends?|reads?|looks?|gets?|ends?|was|were|does|did)\b"
    r"|\bof (?:its|their|his|your) own\b|\b(?:goes?|went|going) on\b|\b(?:given|gives?|gave|giving) (?:\w+ )?back\b|\blets? (?:\w+ )?go\b"
    r"|\b(?:is|are|was|were) no (?!longer|more\b|such|one\b)\w+|\blies? ready\b|(?:^|[.:;] )What (?:is|are|was|the|a|it|they)\b|\bfor who\b"
    r"|\bas the \w+ says\b",
    re.MULTILINE,
)
PROSE = ("rs", "py", "pyi", "js", "mjs", "ts", "sh", "h", "hpp", "c", "cpp", "md")
NO_PROSE = re.compile(r"zh-CN|\.ja\.|CHANGELOG|THIRD|LICENSE|generated|/proto/|scripts/house\.py")
TEST_FILES = re.compile(r"(^|/)(tests?|bench|benches|trial|demo|examples|fuzz)(/|\.)|simulation|suite|_test")
USE = re.compile(r"^\s*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.MULTILINE)
INNER_PATH = re.compile(r"(?<!:)\b\w+(?:::\w+)+")


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def tracked(*patterns: str) -> list[str]:
    return [path for path in git("ls-files", "-z", *patterns).split("\0") if path and (ROOT / path).exists()]


def first_lines(ending: str, text: str) -> list[str]:
    """Returns the first lines of the doc comments in a file's text."""
    return [found.splitlines()[0].strip() for found in DOC_COMMENTS[ending].findall(text) if found]


def misbegun(ending: str) -> tuple[list[str], int]:
    """Returns the doc comments that begin with one of `FIRST_WORDS`, and the number of all."""
    found = [(path, line) for path in tracked(f"*.{ending}") for line in first_lines(ending, (ROOT / path).read_text())]
    return [f"{path}: {line}" for path, line in found if FIRST_WORDS.match(line)], len(found)


@cache
def code(path: str) -> str:
    """Returns a file's code without comments, strings and test modules; line breaks stay."""
    text = NOISE.sub(lambda found: "\n" * found[0].count("\n"), (ROOT / path).read_text())
    while found := TEST_MODULE.search(text):
        end, depth = found.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        text = text[: found.start()] + text[end:]
    return text


def leaves(tree: str) -> list[str]:
    """Returns the paths that a `use` tree names: `a::{b, c as d}` is `a::b` and `a::c`."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if not brace:
        return [re.sub(r"\s+as\s+\w+$", "", tree)]
    parts, depth, part = [], 0, ""
    for sign in rest[: rest.rindex("}")] + ",":
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if sign == "," and not depth:
            parts.append(part)
            part = ""
        else:
            part += sign
    return [re.sub(r"::self$", "", head + leaf) for part in parts if part.strip() for leaf in leaves(part)]


class Crate:
    """The modules of a crate, and what they import from each other."""

    def __init__(self, name: str):
        self.name = name
        self.files = {}
        for path in tracked(f"{name}/src/*.rs"):
            module = re.sub(r"(/mod)?\.rs$", "", path.removeprefix(f"{name}/src/"))
            if not TESTS.search(path) and not module.startswith("bin/"):
                self.files["" if module in ("lib", "main") else module] = path
        self.exports = {module: self.re_exports(module) for module in self.files}

    def module(self, path: str) -> tuple[str, list[str]] | None:
        """Returns the deepest module of an absolute path, and the rest of the path."""
        parts = path.split("::")
        for count in range(len(parts), -1, -1):
            if "/".join(parts[:count]) in self.files:
                return "/".join(parts[:count]), parts[count:]
        return None

    def absolute(self, module: str, path: str) -> str | None:
        """Returns a path relative to the crate's root, or None if it is outside the crate."""
        first, _, rest = path.partition("::")
        here = [part for part in module.split("/") if part]
        if first == "crate":
            return rest
        if first in ("self", "super"):
            while first in ("super", "self"):
                here = here if first == "self" else here[:-1]
                first, _, rest = rest.partition("::")
            return "::".join([*here, first, *([rest] if rest else [])])
        inside = "/".join([*here, first])
        return "::".join([*here, path]) if inside in self.files else None

    def re_exports(self, module: str) -> dict[str, str]:
        exports = {}
        for public, tree in USE.findall(code(self.files[module])):
            for leaf in leaves(tree) if public else ():
                if (path := self.absolute(module, leaf.strip())) is not None:
                    exports[path.rsplit("::", 1)[-1]] = path
        return exports

    def home(self, path: str, depth: int = 0) -> tuple[str, str] | None:
        """Returns the module that defines what a path names, and its name."""
        found = self.module(path)
        if found is None or not found[1]:
            return found and (found[0], found[0].rsplit("/", 1)[-1])
        module, rest = found
        exports = self.exports.get(module, {}) if depth < 9 else {}
        if rest[0] in exports and exports[rest[0]] != path:
            return self.home("::".join([exports[rest[0]], *rest[1:]]), depth + 1)
        return module, rest[0]

    def imports(self) -> dict[str, dict[str, set[str]]]:
        """Returns the files that each file imports, with the imported names."""
        arrows = {}
        for module, path in self.files.items():
            text = code(path)
            uses = [leaf.strip() for public, tree in USE.findall(text) if not public for leaf in leaves(tree)]
            text = USE.sub("", text)
            # `use super::b`, and then `b::g()`.
            seen_as = {path.rsplit("::", 1)[-1]: path for path in uses}
            inside = [(path, path.split("::")[0]) for path in INNER_PATH.findall(text)]
            named = uses + [seen_as.get(first, first) + path.removeprefix(first) for path, first in inside]
            for leaf in named:
                absolute = self.absolute(module, leaf)
                if absolute is None or (home := self.home(absolute)) is None:
                    continue
                target, name = home
                # A path to a module itself counts only where one of its names is used. A file may also use the modules
                # that contain it.
                is_part = f"{module}/".startswith(f"{target}/")
                if not is_part and name != target.rsplit("/", 1)[-1]:
                    arrows.setdefault(path, {}).setdefault(self.files[target], set()).add(name)
        return arrows

    def lines(self) -> Counter:
        return Counter({path: sum(bool(line.strip()) for line in code(path).splitlines()) for path in self.files.values()})


def reached(arrows: dict[str, dict[str, set[str]]], file: str) -> set[str]:
    """Returns the files that a file imports, directly or indirectly."""
    found, left = set(), [file]
    while left:
        new = arrows.get(left.pop(), {}).keys() - found
        found |= new
        left += new
    return found


def circles(arrows: dict[str, dict[str, set[str]]]) -> list[list[str]]:
    """Returns the sets of files that import each other."""
    reach = {file: reached(arrows, file) for file in arrows}
    found = {frozenset(other for other in reach[file] if file in reach.get(other, ())) for file in arrows}
    return sorted(sorted(circle) for circle in found if len(circle) > 1)


def rooms_of(path: str, name: str) -> str:
    """Returns the module at the root of its crate to which a file belongs."""
    return re.sub(r"\.rs$", "", path.removeprefix(f"{name}/src/").split("/")[0])


def floors(name: str) -> list[tuple[str, set[str]]]:
    """Returns a crate's root modules with their imports, each after the modules that it imports. Raises `CycleError` for a circle."""
    arrows: dict[str, set[str]] = {rooms_of(path, name): set() for path in Crate(name).files.values()}
    for path, others in Crate(name).imports().items():
        arrows[rooms_of(path, name)] |= {rooms_of(other, name) for other in others} - {rooms_of(path, name), "lib"}
    arrows.pop("lib", None)
    sorter, order = TopologicalSorter(arrows), []
    sorter.prepare()
    while sorter.is_active():
        free = sorted(sorter.get_ready())
        sorter.done(*free)
        order += [(room, arrows[room]) for room in free]
    return order


def page() -> str:
    """Returns the floors as a page: the crates, and the modules of frazil, each above those that it imports."""
    manifests = {name: tomllib.loads((ROOT / name / "Cargo.toml").read_text()) for name in CRATES}
    folders = {manifest["package"]["name"]: name for name, manifest in manifests.items()}
    rows = [("crate", "stands on")]
    for name, manifest in reversed(manifests.items()):
        tables = [manifest, *manifest.get("target", {}).values()]
        wanted = [pair for table in tables for pair in table.get("dependencies", {}).items()]
        needed = {options.get("package", of) if isinstance(options, dict) else of for of, options in wanted}
        rows.append((f"`{name}`", ", ".join(f"`{folders[of]}`" for of in folders if of in needed)))
    rows += [("", ""), ("module of `core`", "imports")]
    rows += [(f"`{room}`", ", ".join(f"`{other}`" for other in sorted(others))) for room, others in reversed(floors("core"))]
    lines = [f"| {left} | {right} |".replace("|  |", "| - |") if left else "" for left, right in rows]
    return "\n".join(line + "\n|---|---|" if line.startswith(("| crate", "| module")) else line for line in lines)


def private_words() -> dict[str, float]:
    """Returns the private words per 1,000 lines, by area."""
    found, lines = Counter(), Counter()
    for path in tracked(*(f"*.{ending}" for ending in PROSE)):
        if NO_PROSE.search(path):
            continue
        text = (ROOT / path).read_text()
        folder = path.split("/")[0]
        area = "tests" if TEST_FILES.search(path) else "docs" if path.endswith(".md") else folder
        found[area] += len(PRIVATE_WORDS.findall(text))
        lines[area] += text.count("\n")
    return {area: round(1000 * found[area] / count, 1) for area, count in sorted(lines.items()) if count >= 1000}


def gauges() -> dict[str, float]:
    """Returns the figures that tests/repo/house.json bounds."""
    crates = {name: Crate(name) for name in CRATES}
    homes: dict[tuple[str, str], set[str]] = {}
    for name, crate in crates.items():
        for module, path in crate.files.items():
            # Variants of a type for several operating systems count as one type.
            system = re.sub(r"\b(unix|windows|linux|elsewhere|lock_files)\b", "*", module)
            for of in TYPE.findall(code(path)):
                homes.setdefault((name, of), set()).add(system)
    sources = [(path, (ROOT / path).read_text()) for path in tracked("*.rs")]
    features = {path: len(re.findall(r"cfg(?:_attr)?\([^\]]*feature\b", text)) for path, text in sources}
    return {
        "lines of product code": sum(sum(crate.lines().values()) for crate in crates.values()),
        "lines of frazil": sum(crates["core"].lines().values()),
        "root modules of frazil": len(floors("core")),
        "cfg(feature) in frazil": sum(count for path, count in features.items() if path.startswith("core/src/")),
        "cfg(feature)": sum(features.values()),
        "type names with two meanings in a crate": sum(len(modules) > 1 for modules in homes.values()),
        "lines of scripts": sum((ROOT / path).read_text().count("\n") for path in tracked("scripts/*")),
        "tracked files": len(tracked("*")),
    } | {f"private words per 1,000 lines: {area}": rate for area, rate in private_words().items()}


def figures() -> dict[str, dict]:
    """Returns, for each crate, its lines, those of its root modules, its long files, and its circles with the imports that cause them."""
    measured = {}
    for name in CRATES:
        crate = Crate(name)
        lines, arrows = crate.lines(), crate.imports()
        rooms = Counter()
        for path, count in lines.items():
            rooms["elsewhere" if path.endswith(ELSEWHERE) else rooms_of(path, name)] += count
        measured[name] = {
            "lines": sum(lines.values()),
            "rooms": dict(rooms.most_common()),
            "long": {path: count for path, count in lines.most_common() if count > LONG},
            "circles": [{file: arrows[file] for file in circle} for circle in circles(arrows)],
        }
    return measured


def main() -> None:
    if sys.argv[1:]:
        return print(page() if sys.argv[1] == "--floors" else json.dumps(gauges(), indent=1))
    for name, crate in figures().items():
        print(f"{name}: {crate['lines']} lines of product code, {len(crate['long'])} files above {LONG}, {len(crate['circles'])} circles")
        print(f"  {', '.join(f'{room} {count}' for room, count in crate['rooms'].items())}")
        for path, count in crate["long"].items():
            print(f"  above {LONG}: {path} {count}")
        for circle in crate["circles"]:
            print(f"  circle of {len(circle)}:")
            for file, others in circle.items():
                print(f"    {file} -> {', '.join(f'{other}: {sorted(names)}' for other, names in others.items() if other in circle)}")
    for ending in DOC_COMMENTS:
        found, all_of_them = misbegun(ending)
        print(f"*.{ending}: {len(found)} of {all_of_them} doc comments begin with a word that names no thing and no act")


if __name__ == "__main__":
    main()
