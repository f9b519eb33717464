#!/usr/bin/env python3
"""Writes the summaries of docs/api.toml into the documentation of all five languages.

    tests/repo/api.py            # replaces each first sentence that differs
    tests/repo/api.py --check    # only lists the differences, and fails if there are any

A row of docs/api.toml is [summary, Rust, Python, Node, C++, C]. Each cell names calls. The summary is the first sentence of the first call's
doc comment. Text in backquotes is an example without a doc comment.
"""

import ast
import re
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SOURCE = tomllib.loads((ROOT / "docs/api.toml").read_text())
LANGUAGES = SOURCE["languages"]
# A first sentence: the text up to a period that a space or the end follows.
SENTENCE = re.compile(r"(.*?[.])(?=\s|$)", re.DOTALL)


class Doc(NamedTuple):
    """A doc comment in a file: its range, its text, and its comment marks."""

    path: Path
    start: int
    end: int
    text: str
    indent: str
    style: str

    def first_sentence(self):
        found = SENTENCE.match(self.text.split("\n\n")[0])
        return " ".join((found[1] if found else self.text.split("\n\n")[0]).split())

    def with_summary(self, summary):
        """Returns the comment with another first sentence, and wraps the first paragraph again."""
        paragraph, *others = self.text.split("\n\n")
        found = SENTENCE.match(paragraph)
        rest = paragraph[found.end() :].split() if found else []
        width = 116 - len(self.indent)
        first = "\n".join(textwrap.wrap(" ".join([summary, *rest]), width, break_long_words=False, break_on_hyphens=False))
        lines = "\n\n".join([first, *others]).split("\n")
        if self.style in ("rust", "hpp"):
            return "\n".join(f"{self.indent}/// {line}".rstrip() for line in lines) + "\n"
        if self.style == "jsdoc":
            if len(lines) == 1:
                return f"{self.indent}/** {lines[0]} */\n"
            return f"{self.indent}/**\n" + "".join(f"{self.indent} * {line}".rstrip() + "\n" for line in lines) + f"{self.indent} */\n"
        body = "\n".join([lines[0], *(f"{self.indent}{line}".rstrip() for line in lines[1:])])
        return f'{self.indent}"""{body}"""\n' if len(lines) == 1 else f'{self.indent}"""{body}\n{self.indent}"""\n'


def above(path, code, at, style):
    """Returns the doc comment of the declaration at a position. Attributes may be between them."""
    lines = code[:at].splitlines(keepends=True)
    end = len(lines)
    while end and not re.match(r"\s*(///|\*/|/\*\*.*\*/)", lines[end - 1]):
        # Attributes and macros between the comment and the declaration.
        if not re.match(r"\s*(#\[|FRAZIL_|\S.*\)\]$|[a-z_ ]+=|\)\])", lines[end - 1]):
            return None
        end -= 1
    begin = end
    if style == "jsdoc":
        while begin and "/**" not in lines[begin - 1]:
            begin -= 1
        begin -= 1
        block = "".join(lines[begin:end])
        text = re.sub(r"^\s*/\*\*[ \n]?|\s*\*/\s*$", "", block)
        text = "\n".join(re.sub(r"^\s*\* ?", "", line) for line in text.split("\n"))
    else:
        while begin and re.match(r"\s*///", lines[begin - 1]):
            begin -= 1
        text = "\n".join(re.sub(r"^\s*/// ?", "", line.rstrip("\n")) for line in lines[begin:end])
    if begin == end:
        return None
    indent = re.match(r"\s*", lines[begin])[0]
    start = sum(map(len, lines[:begin]))
    return Doc(path, start, start + sum(map(len, lines[begin:end])), text.strip(), indent, style)


def rust():
    """Returns the doc comments of the core's public functions by their names."""
    found = {}
    for path in sorted((ROOT / "core").rglob("*.rs")):
        if "target" in path.parts or "src" not in path.parts:
            continue
        code = path.read_text()
        for function in re.finditer(r"^pub fn (\w+)", code, re.MULTILINE):
            found.setdefault(function[1], above(path, code, function.start(), "rust"))
        for block in re.finditer(r"^impl(?:<.*?>)? (\w+)(?:<.*?>)? \{\n(.*?)^\}", code, re.MULTILINE | re.DOTALL):
            for function in re.finditer(r"^    pub (?:const |async )?fn (\w+)", block[2], re.MULTILINE):
                found.setdefault(f"{block[1]}::{function[1]}", above(path, code, block.start(2) + function.start(), "rust"))
    return {name: doc for name, doc in found.items() if doc}


def python():
    """Returns the docstrings of the stub by the names of their functions."""
    path = ROOT / "python/frazil/_frazil.pyi"
    code = path.read_text()
    starts = [0, *(found.end() for found in re.finditer("\n", code))]
    found = {}

    def add(name, item):
        first = item.body[0]
        if not (isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str)):
            return
        indent = " " * first.col_offset
        text = "\n".join(line.removeprefix(indent) for line in first.value.value.split("\n")).strip()
        found.setdefault(name, Doc(path, starts[first.lineno - 1], starts[first.end_lineno], text, indent, "python"))

    for item in ast.parse(code).body:
        if isinstance(item, ast.FunctionDef):
            add(f"uuid.{item.name}" if item.name.startswith("uuid") else item.name, item)
        elif isinstance(item, ast.ClassDef):
            within = "objectid." if item.name == "ObjectId" else ""
            for part in item.body:
                if isinstance(part, ast.FunctionDef):
                    add(f"{within}{item.name}.{part.name}", part)
    return found


def node():
    """Returns the doc comments of the declarations by their names."""
    found = {}
    for file in ("index", "uuid", "objectid"):
        path = ROOT / f"node/{file}.d.ts"
        code = path.read_text()
        for part in re.finditer(r"^export (?:abstract )?(?:class|function|const) (\w+)", code, re.MULTILINE):
            found.setdefault(part[1], above(path, code, part.start(), "jsdoc"))
        for block in re.finditer(r"^export (?:abstract )?class (\w+).*?\{\n(.*?)^\}", code, re.MULTILINE | re.DOTALL):
            for method in re.finditer(r"^  (?:static |get |readonly )*(\w+)(?:<.*?>)?[(:]", block[2], re.MULTILINE):
                found.setdefault(f"{block[1]}.{method[1]}", above(path, code, block.start(2) + method.start(), "jsdoc"))
    return {name: doc for name, doc in found.items() if doc}


def cpp():
    """Returns the doc comments of the C++ header by their names."""
    path = ROOT / "include/frazil.hpp"
    code, found = path.read_text(), {}
    for block in re.finditer(r"^class (\w+)(?: : public (\w+).*?)? \{\n(.*?)^\};", code, re.MULTILINE | re.DOTALL):
        for method in re.finditer(r"^    (?:\[\[nodiscard\]\] )?(?:static )?(?:\w|[:<>])+ (\w+)\(", block[3], re.MULTILINE):
            found.setdefault(f"{block[1]}::{method[1]}", above(path, code, block.start(3) + method.start(), "hpp"))
    for function in re.finditer(r"^inline outcome<.*> (\w+)\(", code, re.MULTILINE):
        found.setdefault(function[1], above(path, code, function.start(), "hpp"))
    return {name: doc for name, doc in found.items() if doc}


def c():
    """Returns the doc comments of the C functions, in the Rust code from which the header is generated."""
    found = {}
    for path in sorted((ROOT / "c-api/src").rglob("*.rs")):
        code = path.read_text()
        for function in re.finditer(r'^pub (?:unsafe )?extern "C" fn (frazil_\w+)', code, re.MULTILINE):
            found.setdefault(function[1], above(path, code, function.start(), "rust"))
    return {name: doc for name, doc in found.items() if doc}


DOCS = [("Rust", rust), ("Python", python), ("Node", node), ("C++", cpp), ("C", c)]


def names(cell):
    """Returns the calls that a cell names; examples in backquotes are not calls."""
    return cell.split(", ") if cell and "`" not in cell and " " not in cell.replace(", ", "") else []


def differences():
    """Yields (language, name, doc, summary) for each doc comment whose first sentence is not the summary."""
    for language, read in DOCS:
        docs, at = read(), LANGUAGES.index(language) + 1
        for row in (row for group in SOURCE["group"] for row in group["rows"]):
            for name in names(row[at])[:1]:
                doc = docs.get(name)
                if doc and doc.first_sentence() != row[0]:
                    yield language, name, doc, row[0]


def main():
    found = list(differences())
    if sys.argv[1:] == ["--check"]:
        sys.exit(
            "\n".join(f"{language} {name}: {doc.first_sentence()!r} is not {summary!r}" for language, name, doc, summary in found) or 0
        )
    for path in {doc.path for _, _, doc, _ in found}:
        code = path.read_text()
        for doc, summary in sorted(((doc, summary) for _, _, doc, summary in found if doc.path == path), reverse=True):
            code = code[: doc.start] + doc.with_summary(summary) + code[doc.end :]
        path.write_text(code)


if __name__ == "__main__":
    main()
