#!/usr/bin/env python3
"""Measures the structure of the Rust code: lines by module, long files, circles of imports, first words of doc comments.

    scripts/house.py            # a table for each crate, and the circles with what ties them
    scripts/house.py --json     # the same figures, to compare two states

A line of product code is one that is neither blank, nor a comment, nor part of a test. A circle is a set of files of which each imports,
directly or through others, every other one. A module's root that only re-exports a name imports nothing by that: whoever uses the name
imports the file that defines it. What a file takes from the module of which it is a part does not count.
"""

import json
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CRATES = ("core", "cli", "server", "python", "node", "c-api")
LONG = 250
# Files that no Linux builds.
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
# Comments, and what could be taken for one or for a path.
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|r#+".*?"#+|b?"(?:\\.|[^"\\])*"|b?\'(?:\\.[^\']*|[^\\\'])\'', re.DOTALL)
TEST_MODULE = re.compile(r"#\[cfg\((?:test|all\(test\b[^\]]*)\)\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*\{")
DEFINITION = re.compile(
    r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:default|const|async|unsafe|extern\s*(?:\"[^\"]*\")?)\s+)*"
    r"(?:fn|struct|enum|trait|type|const|static|union|macro_rules!)\s+(?:mut\s+)?(\w+)",
    re.MULTILINE,
)
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
        """Returns the deepest module of an absolute path, and what is left of it."""
        parts = path.split("::")
        for count in range(len(parts), -1, -1):
            if "/".join(parts[:count]) in self.files:
                return "/".join(parts[:count]), parts[count:]
        return None

    def absolute(self, module: str, path: str) -> str | None:
        """Returns a path seen from the crate's root, or nothing where it leads out of the crate."""
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
        """Returns, for each file, the files that it imports, and the names."""
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
                # A module that is named by itself is a declaration's; its names are seen where they are used. And a part of a module
                # may use the module that it is a part of.
                is_part = f"{module}/".startswith(f"{target}/")
                if not is_part and name != target.rsplit("/", 1)[-1]:
                    arrows.setdefault(path, {}).setdefault(self.files[target], set()).add(name)
        return arrows

    def lines(self) -> Counter:
        return Counter({path: sum(bool(line.strip()) for line in code(path).splitlines()) for path in self.files.values()})


def circles(arrows: dict[str, dict[str, set[str]]]) -> list[list[str]]:
    """Returns the sets of files that import each other: Tarjan's strongly connected components of more than one."""
    order, low, stack, found = {}, {}, [], []

    def visit(file: str) -> None:
        order[file] = low[file] = len(order)
        stack.append(file)
        for other in arrows.get(file, {}):
            if other not in order:
                visit(other)
                low[file] = min(low[file], low[other])
            elif other in stack:
                low[file] = min(low[file], order[other])
        if low[file] == order[file]:
            circle = stack[stack.index(file) :]
            del stack[stack.index(file) :]
            if len(circle) > 1:
                found.append(sorted(circle))

    for file in list(arrows):
        if file not in order:
            visit(file)
    return sorted(found)


def figures() -> dict:
    measured = {"crates": {}, "first words": {}}
    for name in CRATES:
        crate = Crate(name)
        lines, arrows = crate.lines(), crate.imports()
        rooms = Counter()
        for path, count in lines.items():
            rooms["elsewhere" if path.endswith(ELSEWHERE) else re.sub(r"\.rs$", "", path.split("/")[2])] += count
        measured["crates"][name] = {
            "lines": sum(lines.values()),
            "rooms": dict(rooms.most_common()),
            "long": {path: count for path, count in lines.most_common() if count > LONG},
            "circles": circles(arrows),
        }
    for ending in DOC_COMMENTS:
        found, all_of_them = misbegun(ending)
        measured["first words"][ending] = [len(found), all_of_them]
    return measured


def main() -> None:
    measured = figures()
    if sys.argv[1:] == ["--json"]:
        print(json.dumps(measured, indent=1))
        return
    for name, crate in measured["crates"].items():
        rooms = ", ".join(f"{room} {count}" for room, count in crate["rooms"].items())
        print(f"{name}: {crate['lines']} lines of product code, {len(crate['long'])} files above {LONG}, {len(crate['circles'])} circles")
        print(f"  {rooms}")
        for path, count in crate["long"].items():
            print(f"  above {LONG}: {path} {count}")
        arrows = Crate(name).imports() if crate["circles"] else {}
        for circle in crate["circles"]:
            print(f"  circle of {len(circle)}: {' '.join(circle)}")
            for file in circle:
                for other, names in sorted(arrows.get(file, {}).items()):
                    if other in circle:
                        print(f"    {file} -> {other}: {', '.join(sorted(names))}")
    for ending, (found, all_of_them) in measured["first words"].items():
        print(f"*.{ending}: {found} of {all_of_them} doc comments begin with a word that names no thing and no act")


if __name__ == "__main__":
    main()
