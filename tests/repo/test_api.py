"""The table of the API: made of its source, which names what each language has, and every method of generators and numbers."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCE = tomllib.loads((ROOT / "docs/api.toml").read_text())
LANGUAGES = SOURCE["languages"]


def named(language):
    """The names in a column; what is in code is an example, and no name."""
    at = LANGUAGES.index(language) + 1
    cells = [row[at] for group in SOURCE["group"] for row in group["rows"]]
    return {name for cell in cells if cell and "`" not in cell and " " not in cell.replace(", ", "") for name in cell.split(", ")}


def python():
    """The stub's functions, classes and their methods."""
    found = set()
    for node in ast.parse((ROOT / "python/frazil/_frazil.pyi").read_text()).body:
        if isinstance(node, ast.ClassDef):
            within = {"ObjectId": "objectid."}.get(node.name, "")
            found.add(within + node.name)
            found |= {f"{within}{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef):
            found.add(f"uuid.{node.name}" if node.name.startswith("uuid") else node.name)
    return found


def node():
    declared = "".join((ROOT / f"node/{name}.d.ts").read_text() for name in ("index", "uuid", "objectid"))
    found = set(re.findall(r"^export (?:abstract )?(?:class|function|const) (\w+)", declared, re.MULTILINE))
    for name, body in re.findall(r"^export (?:abstract )?class (\w+).*?\{\n(.*?)^\}", declared, re.MULTILINE | re.DOTALL):
        methods = re.findall(r"^  (?:static |get |readonly )*(\w+)(?:<.*?>)?[(:]", body, re.MULTILINE)
        found |= {f"{name}.{method}" for method in methods}
    return found


def cpp():
    header = (ROOT / "include/frazil.hpp").read_text()
    methods = {}
    for name, base, body in re.findall(r"^class (\w+)(?: : public (\w+).*?)? \{\n(.*?)^\};", header, re.MULTILINE | re.DOTALL):
        shown = re.split(r"^(?:private|protected):", body, flags=re.MULTILINE)[0]
        own = re.findall(r"^    (?:\[\[nodiscard\]\] )?(?:static )?(?:\w|[:<>])+ (\w+)\(", shown, re.MULTILINE)
        methods[name] = {*own, *methods.get(base, ())} - {name}
    found = {f"{name}::{method}" for name, own in methods.items() for method in own}
    return found | set(re.findall(r"^inline outcome<.*> (\w+)\(", header, re.MULTILINE))


def c():
    header = (ROOT / "include/frazil.h").read_text()
    return set(re.findall(r"^\w.*?\b(frazil_\w+)\(", header, re.MULTILINE))


def rust():
    """The functions that the documentation shows."""
    found = set()
    for path in (ROOT / "core/src").rglob("*.rs"):
        code = path.read_text()
        found |= set(re.findall(r"^pub fn (\w+)", code, re.MULTILINE))
        for name, body in re.findall(r"^impl(?:<.*?>)? (\w+)(?:<.*?>)? \{\n(.*?)^\}", code, re.MULTILINE | re.DOTALL):
            shown = re.sub(r"^    #\[doc\(hidden\)\]\n(?:    #\[.*\n)*    pub (?:const |async )?fn \w+", "", body, flags=re.MULTILINE)
            found |= {f"{name}::{method}" for method in re.findall(r"^    pub (?:const |async )?fn (\w+)", shown, re.MULTILINE)}
    assert "pub fn open(" in (ROOT / "core/src/numbers/handles.rs").read_text()
    return found | {f"{name}::open" for name in ("Segment", "Tickets", "Buffered")}


def test_the_page_is_made_of_its_source():
    subprocess.run([sys.executable, ROOT / "scripts/api.py", "--check"], check=True)


@pytest.mark.parametrize("language, has", zip(LANGUAGES, (rust, python, node, cpp, c), strict=True))
def test_a_language_has_what_the_table_names(language, has):
    assert sorted(named(language) - has()) == []


# What other pages show, and what a language needs by its nature.
ELSEWHERE = {
    "Rust": {"Snowflake::portable_spec", "Snowflake::is_for_one_process", "Numbers::portable_spec", "Numbers::is_for_one_process"},
    "Python": set(),
    "Node": {f"{name}.{method}" for name in ("Snowflake", "Numbers") for method in ("constructor", "toString", "toJSON")},
    "C++": {f"{name}::end" for name in ("snowflake", "numbers")},
    "C": set(),
}


@pytest.mark.parametrize(
    "language, has, of",
    [
        ("Rust", rust, r"(Snowflake|Numbers)::"),
        ("Python", python, r"(Snowflake|Numbers)\.(?!_)"),
        ("Node", node, r"(Snowflake|Numbers)\."),
        ("C++", cpp, r"(snowflake|numbers)::"),
        ("C", c, r"frazil_(snowflake|numbers|segment|tickets|buffered)_"),
    ],
)
def test_the_table_names_every_method_of_generators_and_numbers(language, has, of):
    methods = {name for name in has() if re.match(of, name)}
    assert len(methods) > 20
    assert sorted(methods - named(language) - ELSEWHERE[language]) == []
