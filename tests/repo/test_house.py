"""The house: the structure of the Rust code, prose rules, and the map of the tests. The figures may only become smaller."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import house

# The number of files with more than 250 lines of code. The figures only fall, unless an issue adds code.
LONG = {"core": 3, "cli": 2, "server": 1}
# The bounds of the gauges of scripts/house.py --gauges. Each only falls, unless an issue adds code.
BOUNDS = json.loads((Path(__file__).parent / "house.json").read_text())


@pytest.fixture(scope="module")
def crates():
    return house.figures()


@pytest.mark.parametrize("name", house.CRATES)
def test_files_import_one_way(crates, name):
    circles = crates[name]["circles"]
    assert not circles, f"scripts/house.py says what ties them: {circles}"


def test_no_module_of_frazil_imports_one_above_it():
    """The table at the head of the crate names each module once, below all modules that it imports."""
    text = (ROOT / "core/src/lib.rs").read_text().partition("# The modules")[2]
    order = re.findall(r"^// \| `(\w+)` \|", text, re.MULTILINE)
    imports = dict(house.floors("core"))
    assert sorted(order) == sorted(imports)
    above = {name: imports[name] - set(order[:at]) for at, name in enumerate(order)}
    assert not any(above.values()), above


def test_the_page_of_the_floors_is_current():
    page = (ROOT / "CONTRIBUTING.md").read_text().partition("<!-- floors -->\n")[2].partition("\n<!-- end -->")[0]
    assert page == house.page(), "scripts/house.py --floors prints it"


@pytest.mark.parametrize("name", house.CRATES)
def test_files_are_short(crates, name):
    assert len(crates[name]["long"]) <= LONG.get(name, 0), crates[name]["long"]


def test_no_gauge_rises():
    measured = house.gauges()
    assert measured.keys() == BOUNDS.keys()
    risen = {name: (value, BOUNDS[name]) for name, value in measured.items() if value > BOUNDS[name]}
    assert not risen, f"measured, allowed: {risen}"


def test_imports_are_seen(tmp_path, monkeypatch):
    """A re-exported name counts for its own file. Comments, strings and tests do not import."""
    files = {
        "lib.rs": "mod a;\nmod b;\n",
        "a/mod.rs": "mod inner;\npub(crate) use inner::Thing;\n",
        "a/inner.rs": "pub struct Thing;\nfn f() { crate::b::g(); }\n",
        "b.rs": 'use crate::a::Thing;\n// use crate::c::No;\nconst S: &str = "crate::c::No";\n#[cfg(test)]\nmod tests { use crate::c::No; }\n',
        "c.rs": "use super::b;\npub struct No;\nfn f() { b::g(); }\n",
    }
    for name, text in files.items():
        path = tmp_path / "crate" / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(house, "ROOT", tmp_path)
    monkeypatch.setattr(house, "tracked", lambda _: sorted(f"crate/src/{name}" for name in files))
    house.code.cache_clear()
    arrows = house.Crate("crate").imports()
    house.code.cache_clear()
    inner, b, c = (f"crate/src/{name}" for name in ("a/inner.rs", "b.rs", "c.rs"))
    assert {file: set(others) for file, others in arrows.items()} == {inner: {b}, b: {inner}, c: {b}}
    assert house.circles(arrows) == [[inner, b]]


# The files that pytest, node --test, tests/c/run.sh and cargo treat as tests.
IS_TEST = re.compile(r"tests/.*/(test_\w+\.py|[\w-]+\.test\.mjs)|tests/c/cases\w*\.(c|cpp)|(core|cli)/tests/(?!common/).*\.rs")


ROW = re.compile(r"^\| \S.* \| `([\w./-]+)` \|$", re.MULTILINE)


def test_the_map_names_every_file_with_tests():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True)
    files = {path for path in listed.stdout.splitlines() if IS_TEST.fullmatch(path) and (ROOT / path).exists()}
    rows = ROW.findall((ROOT / "tests/README.md").read_text())
    assert len(rows) == len(set(rows)), "a file is named twice"
    assert files - set(rows) == set(), "tests/README.md does not name them"
    assert set(rows) - files == set(), "tests/README.md names no file with tests"


# The number of doc comments with wrong first words, by language. The figures may only fall.
ALLOWED = {"rs": 0, "py": 0, "ts": 0}


# The rule on subjects applies to commits after this one.
FIRST_JUDGED = "dd7e906"


SUBJECT_MAX = 72


@pytest.mark.parametrize("ending", ALLOWED)
def test_first_words_of_doc_comments(ending):
    found, _ = house.misbegun(ending)
    more = len(found) - ALLOWED[ending]
    assert more <= 0, f"{more} doc comments too many begin with a word that names no thing and no act; all of them:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("ending", "text", "expected"),
    [
        ("rs", "/// What is asked.\n/// More.\nfn f() {}\n", ["What is asked."]),
        ("rs", "//! A module.\n\n    /// Whether.\n", ["A module.", "Whether."]),
        ("py", 'def f():\n    """How it is.\n\n    More.\n    """\n', ["How it is."]),
        ("ts", "/** Of a thing. */\n/**\n * When it ends.\n */\n", ["Of a thing. */", "When it ends."]),
    ],
)
def test_first_lines_are_found(ending, text, expected):
    assert house.first_lines(ending, text) == expected


def test_subjects_of_commits():
    # A shallow clone may lack that commit. Then only the last commit is checked.
    ancestry = ["git", "merge-base", "--is-ancestor", FIRST_JUDGED, "HEAD"]
    known = subprocess.run(ancestry, cwd=ROOT, capture_output=True, check=False).returncode == 0
    subjects = house.git("log", "--no-merges", "--format=%s", *([f"{FIRST_JUDGED}..HEAD"] if known else ["-1"])).splitlines()
    long = [f"{len(subject)}: {subject}" for subject in subjects if len(subject) > SUBJECT_MAX]
    assert not long, f"subjects of more than {SUBJECT_MAX} characters (area: verb object; the why goes into the body):\n" + "\n".join(long)
    nameless = [subject for subject in subjects if not re.match(r"(Merge |Revert )|[a-z][\w./+, -]*: \S", subject)]
    assert not nameless, "subjects that are not `area: verb object`:\n" + "\n".join(nameless)
