"""The structure of the Rust code, measured by scripts/house.py. It may only become simpler."""

import json
import re
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
    return house.figures()["crates"]


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
