"""Versions, case names and generated files agree wherever they are written."""

import json
import pathlib
import re
import subprocess
import sys
import tomllib

import frazil
import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
CASES = set(json.loads((ROOT / "tests/vectors/cases.json").read_text())["cases"])


def named(pattern, *globs):
    files = [path for glob in globs for path in ROOT.glob(glob)]
    return set(re.findall(pattern, "\n".join(path.read_text() for path in files), re.MULTILINE))


def test_every_suite_has_every_case():
    suites = {
        "python": named(r"^(?:async )?def test_(\w+)", "tests/python/*.py"),
        "node": named(r"^test\('(\w+)'", "tests/node/*.js", "tests/node/*.mjs"),
        "c": named(r"^CASE\((\w+)\)", "tests/c/*.c"),
        "c++": named(r"^CASE\((\w+)\)", "tests/c/*.cpp"),
    }
    missing = {suite: sorted(CASES - names) for suite, names in suites.items() if CASES - names}
    assert not missing, f"cases.json lists cases that a suite lacks: {missing}"


def test_every_system_is_linked_to_its_tests():
    guide = (ROOT / "docs/moving.md").read_text()
    links = {name: (path, case) for name, path, case in re.findall(r'^\[([^]]+)\]: \.\./(\S+) "(\w+)"$', guide, re.MULTILINE)}
    definitions = {
        ".rs": r"^fn {}\(",
        ".py": r"^(?:async )?def test_{}\(",
        ".mjs": r"^test\('{}'",
        ".c": r"^CASE\({}\)",
        ".cpp": r"^CASE\({}\)",
    }
    for name, (path, case) in links.items():
        file = ROOT / path
        assert re.search(definitions[file.suffix].format(case), file.read_text(), re.MULTILINE), f"[{name}]: {path} has no case {case}"

    table = guide.split("\n## Systems\n")[1].split("\n## ")[0]
    rows = [re.split(r" *(?<!\\)\| *", line)[1:-1] for line in re.findall(r"^\|.*\|$", table, re.MULTILINE)[2:]]
    assert rows, "the guide has a table of systems"
    systems = [row["system"] for row in json.loads((ROOT / "tests/vectors/takeover.json").read_text())["takeovers"]]
    for system, _, _, proof in rows:
        proofs = [links[name] for name in re.findall(r"\]\[([^]]+)\]", proof)]
        assert {pathlib.Path(path).suffix for path, _ in proofs} == set(definitions), f"{system} is proven in every language"
        if "takeover" in {case for _, case in proofs}:
            assert any(name in system for name in systems), f"takeover.json has no row for {system}"
    for name in systems:
        assert any(name in system for system, *_ in rows), f"the guide's table has no row for {name}"


def test_one_version():
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    header = (ROOT / "include/frazil.h").read_text()
    macros = [re.search(rf"#define FRAZIL_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH")]
    result = subprocess.run(["node", "-p", "require(process.argv[1]).version", ROOT / "node"], check=True, capture_output=True, text=True)
    image = re.compile(r"frazil-server:(\S+)$", re.MULTILINE)
    versions = {
        "deployment.yaml": image.search((ROOT / "server/dist/kubernetes/deployment.yaml").read_text())[1],
        "compose.yaml": image.search((ROOT / "server/dist/compose.yaml").read_text())[1],
        "python": frazil.__version__,
        "package.json": json.loads((ROOT / "node/package.json").read_text())["version"],
        "node": result.stdout.strip(),
        "frazil.h": ".".join(macros),
        "vcpkg": json.loads((ROOT / "packaging/vcpkg/frazil/vcpkg.json").read_text())["version"],
        "changelog": re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1],
    }
    assert versions == dict.fromkeys(versions, version)


def test_vectors_are_what_the_script_computes():
    subprocess.run([sys.executable, ROOT / "tests/vectors/generate.py", "--check"], check=True)


def test_the_header_is_what_cbindgen_generates():
    subprocess.run([ROOT / "c-api/generate.sh", "--check"], check=True)


@pytest.mark.parametrize(
    "crate",
    sorted(path.parent for folder in ("bench", "fuzz", "trial") for path in (ROOT / folder).rglob("Cargo.lock")),
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_a_crate_beside_the_workspace_has_a_current_lock_file(crate):
    """Cargo updates the workspace's own lock file. The benches do not build with an outdated one once the core has another dependency."""
    read = subprocess.run(
        ["cargo", "metadata", "--locked", "--format-version", "1"], cwd=crate, capture_output=True, text=True, check=False
    )
    assert read.returncode == 0, read.stderr


def test_the_bindings_have_the_same_files():
    names = "lib error convert layout lease wait event stats snowflake next numbers object_id uuid"
    shared = {f"{name}.rs" for name in names.split()}
    for binding in ("python", "node", "c-api"):
        files = {path.name for path in (ROOT / binding / "src").glob("*.rs")}
        assert files == shared, f"{binding}: {sorted(shared ^ files)}"


def test_the_guides_wrap():
    """Prose has at most 120 columns. Tables, examples and printed output have no limit."""
    for path in (ROOT / "docs").glob("*.md"):
        prose = re.sub(r"^ *```.*?^ *```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
        long = [line for line in prose.splitlines() if len(line) > 120 and not re.match(r" *\||    ", line)]
        assert not long, f"{path.name}: {long[0]}"


BINDINGS = ("frazil-c", "frazil-node", "frazil-python")
# These crates may have other features, because a test of the addon links without node.
ALONE = {"napi", "napi-sys"}


def features(*of):
    """Returns the crates of these packages' builds, with the sets of features of each crate."""
    command = ["cargo", "tree", "--locked", "--prefix", "none", "--format", "{p}|{f}", *of]
    found = {}
    for line in subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines():
        crate, _, enabled = line.removesuffix(" (*)").partition("|")
        found.setdefault(" ".join(crate.split()[:2]), set()).add(enabled)
    return found


def test_shared_crates_are_compiled_once():
    """The Rust suites share crates with each binding, and the demo's bindings with each other: see `aligned` in Cargo.toml."""
    aligned = ",".join(f"{binding}/aligned" for binding in BINDINGS)
    together = features("--workspace", "--features", f"frazil/stores,{aligned}", "--edges", "normal,build,dev")
    lean = [
        features("--package", name, "--no-default-features", "--features", "aligned-lean", "--edges", "normal,build") for name in BINDINGS
    ]
    # CMake's tests share the dependencies, but not the core.
    beside = features("--package", "frazil-c", "--features", "aligned-dependencies", "--edges", "normal,build")
    apart = {crate for crate, found in beside.items() if not found <= together[crate]}
    assert {crate.split()[0] for crate in apart} == {"frazil", "frazil-c", "frazil-store"}
    for number, name in enumerate(BINDINGS):
        for crate, found in features("--package", name, "--features", "aligned", "--edges", "normal,build").items():
            assert found <= together[crate] or crate.split()[0] in ALONE, f"{name} compiles {crate} with {found}, and not {together[crate]}"
        for crate, found in lean[number].items():
            for other in lean:
                assert found == other.get(crate, found), f"{name}, lean, compiles {crate} with {found}, and not {other[crate]}"
