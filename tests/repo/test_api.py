"""docs/api.toml: each operation's summary and names agree with the sources, stubs, declarations and headers."""

import ast
import functools
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import api
import frazil
import frazil.objectid
import frazil.uuid
import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCE, LANGUAGES = api.SOURCE, api.LANGUAGES


def named(language):
    """Returns the names in a column. Text in backquotes is an example, not a name."""
    at = LANGUAGES.index(language) + 1
    cells = [row[at] for group in SOURCE["group"] for row in group["rows"]]
    return {name for cell in cells if cell and "`" not in cell and " " not in cell.replace(", ", "") for name in cell.split(", ")}


def python():
    """Returns the stub's functions, classes and methods."""
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
    """Returns the functions that the documentation shows."""
    found = set()
    # frazil-base has the errors and the function `restored`.
    base = ROOT / "core/base/src"
    for path in [*(ROOT / "core/src").rglob("*.rs"), base / "error.rs", base / "os/fork.rs"]:
        code = path.read_text()
        found |= set(re.findall(r"^pub fn (\w+)", code, re.MULTILINE))
        for name, body in re.findall(r"^impl(?:<.*?>)? (\w+)(?:<.*?>)? \{\n(.*?)^\}", code, re.MULTILINE | re.DOTALL):
            shown = re.sub(r"^    #\[doc\(hidden\)\]\n(?:    #\[.*\n)*    pub (?:const |async )?fn \w+", "", body, flags=re.MULTILINE)
            found |= {f"{name}::{method}" for method in re.findall(r"^    pub (?:const |async )?fn (\w+)", shown, re.MULTILINE)}
    assert "pub fn open(" in (ROOT / "core/src/counters/numbers/handles.rs").read_text()
    return found | {f"{name}::open" for name in ("Segment", "Tickets", "Buffered")}


def test_each_doc_comment_begins_with_the_summary_of_the_api():
    checked = subprocess.run([sys.executable, ROOT / "tests/repo/api.py", "--check"], check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def test_the_built_python_module_shows_the_summaries():
    rows = [row for group in SOURCE["group"] for row in group["rows"]]
    for summary, name in [(row[0], name) for row in rows for name in api.names(row[LANGUAGES.index("Python") + 1])[:1]]:
        shown = functools.reduce(getattr, name.split("."), frazil)
        if not isinstance(shown, type):
            # After the signature with types, which properties do not have.
            doc = " ".join(re.sub(r"^\w+\(.*\n\n", "", inspect.getdoc(shown)).split())
            assert doc.startswith(summary), f"{name}: {doc}"


def test_most_operations_have_a_doc_comment_in_each_language():
    for language, read in api.DOCS:
        at = api.LANGUAGES.index(language) + 1
        first = {name for group in api.SOURCE["group"] for row in group["rows"] for name in api.names(row[at])[:1]}
        assert len(first & set(read())) > 20, language


@pytest.mark.parametrize("language, has", list(zip(LANGUAGES, (rust, python, node, cpp, c), strict=True)))
def test_a_language_has_what_the_table_names(language, has):
    assert sorted(named(language) - has()) == []


# Methods that other pages show, and methods that only one language needs.
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


COMPLETE = """
const ts = require('typescript')
const [declarations, call] = process.argv.slice(1)
const file = '/typed.mts'
const source = `import { Buffered, Layout, Snowflake } from ${JSON.stringify(declarations)}\n${call}`
const shown = (path) => (path === file ? `${source}')` : ts.sys.readFile(path))
const service = ts.createLanguageService({
  useCaseSensitiveFileNames: () => true,
  getCurrentDirectory: () => '/',
  directoryExists: ts.sys.directoryExists,
  getCompilationSettings: () => ({ module: ts.ModuleKind.Node16, moduleResolution: ts.ModuleResolutionKind.Node16, strict: true, types: [] }),
  getScriptFileNames: () => [file],
  getScriptVersion: () => '1',
  getScriptSnapshot: (path) => ts.ScriptSnapshot.fromString(shown(path) ?? ''),
  getDefaultLibFileName: ts.getDefaultLibFilePath,
  readFile: shown,
  fileExists: (path) => path === file || ts.sys.fileExists(path),
})
console.log(service.getCompletionsAtPosition(file, source.length, {})?.entries.map(({ name }) => name).join(' '))
"""


@pytest.mark.parametrize("call", ["new Snowflake('", "Snowflake.open('t", "new Layout('", "Buffered.open('"])
def test_editors_complete_the_presets_in_typescript(call, built_site):
    """The guide has a TypeScript with a language service, which answers as in an editor."""
    environment = {**os.environ, "NODE_PATH": ROOT / "build/guide-node/node_modules"}
    command = ["node", "-e", COMPLETE, ROOT / "node/index.mjs", call]
    offered = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
    names = {preset.split()[0] for preset in re.findall(r"^  (\w+): '\w+'", (ROOT / "node/index.d.ts").read_text(), re.MULTILINE)}
    assert len(names) == 12 and set(offered) == names
