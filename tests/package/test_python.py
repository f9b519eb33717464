"""The wheel and the source distribution: installed by pip into clean environments of every Python, and run there."""

import functools
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from conftest import NOTICES, PACKAGES, ROOT, VERSION, WHEELS, names_its_crates, shares_the_unwinder

TOOLS = ROOT / "build/tools/bin"
OWN = f"{sys.version_info.major}.{sys.version_info.minor}"
VERSIONS = sorted({"3.11", "3.12", "3.13", OWN})
TOO_OLD = "3.10"

release = pytest.mark.skipif(not PACKAGES, reason="of release artefacts: make package")


@functools.cache
def interpreter(version):
    """Returns a CPython of this machine (this process's, or from PATH or pyenv), or None."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for python in (sys.executable, shutil.which(f"python{version}"), *pyenv.glob(f"versions/{version}.*/bin/python")):
        asked = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        # pyenv's program in PATH runs only if this version is enabled.
        if python and subprocess.run(asked, check=False, capture_output=True, text=True).stdout.strip() == version:
            return python
    return None


def of_every(versions):
    """Returns these Pythons. In the full form, all must exist; in the short form, missing ones are skipped."""
    absent = lambda version: [] if interpreter(version) or PACKAGES else pytest.mark.skip(reason=f"no python{version} on this machine")
    return [pytest.param(version, marks=absent(version)) for version in versions]


def run(*command, **options):
    """Runs a process to its end, without the source tree's settings."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("FRAZIL", "PYTHON"))}
    env = {**clean, **options.pop("env", {})}
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=900, env=env, **options)


def output_of(*command, **options):
    """Runs a command, which must succeed, and returns its output."""
    done = run(*command, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def new_environment(folder, version):
    """Makes an empty virtual environment, and returns its Python."""
    assert interpreter(version), f"the tests of the packages need python{version}: put it into PATH, or into pyenv"
    output_of(interpreter(version), "-m", "venv", "--without-pip", folder)
    return folder / "bin/python"


def pip(python, *arguments, **options):
    """Runs this Python's pip for the packages of another Python."""
    return run(sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", *arguments, **options)


def install(python, index):
    """Runs `pip install frazil`, without a build from source."""
    return pip(python, "install", "--isolated", "--index-url", index, "--only-binary", ":all:", "frazil")


@pytest.fixture(scope="module", params=of_every(VERSIONS))
def installed(request, index, tmp_path_factory):
    """Returns a Python with only frazil installed."""
    python = new_environment(tmp_path_factory.mktemp("installed"), request.param)
    done = install(python, index)
    assert done.returncode == 0 and f"Successfully installed frazil-{VERSION}" in done.stdout, done.stdout + done.stderr
    return python


@pytest.fixture
def python(tmp_path):
    """Returns the Python of an empty environment."""
    return new_environment(tmp_path / "venv", OWN)


@pytest.mark.parametrize(
    ("document", "prints"),
    [
        ("README.md", r"\d{18,19} \d{4}-\d\d-\d\d .* \d+ \d+\n"),
        ("python/README.md", r"\d{4}-\d\d-\d\d .* \d+\n"),
        ("docs/start.md", r"(.*\n)*\d{18,19} under node \d+\n(.*\n)*"),
    ],
)
def test_the_quick_start_runs(installed, example, document, prints, tmp_path):
    (tmp_path / "quick_start.py").write_text(example("python", document))
    assert re.fullmatch(prints, output_of(installed, "quick_start.py", cwd=tmp_path, env={"FRAZIL_HOME": str(tmp_path / "local")}))


def test_a_forked_child_never_repeats_its_parent(installed, tmp_path):
    (tmp_path / "forked.py").write_text("""
import os
import frazil

fixed = frazil.Snowflake("twitter", datacenter=1, worker=7)
leased = frazil.Snowflake("standard", store="local")
mine = [fixed.next(), *leased.batch(1000)]
reader, writer = os.pipe()
if not os.fork():
    try:
        fixed.next()
    except frazil.errors.ForkedError:
        os.write(writer, ",".join(map(str, leased.batch(1000))).encode())
        leased.close()
    os._exit(0)
os.close(writer)
with open(reader) as child:
    mine += [int(number) for number in child.read().split(",")]
mine += leased.batch(1000)
print(len(mine), len(set(mine)))
""")
    assert output_of(installed, "forked.py", cwd=tmp_path, env={"FRAZIL_HOME": str(tmp_path)}) == "3001 3001\n"


def test_the_command_runs(installed, metadata, tmp_path):
    command, store = installed.with_name("frazil"), f"file:{tmp_path}/store"
    assert output_of(command, "--version", cwd=tmp_path) == f"frazil {metadata['Version']}\n"
    output_of(installed, "-c", f"import frazil; frazil.Snowflake('twitter', store='{store}').close()", cwd=tmp_path)
    assert output_of(command, "nodes", store, cwd=tmp_path).endswith("\n0 of 1024 node numbers held, 1 free or passed, 1023 never used\n")


def test_nothing_is_left_behind(python, index, tmp_path):
    before = set(tmp_path.rglob("*"))
    assert install(python, index).returncode == 0
    output_of(python.with_name("frazil"), "--version")
    assert set(tmp_path.rglob("*")) > before
    assert pip(python, "uninstall", "--yes", "frazil").returncode == 0
    assert set(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("native", [None, b"\x7fELF of another machine"], ids=["missing", "unfit"])
def test_a_package_without_its_native_module_says_what_to_do(python, native, tmp_path):
    package = shutil.copytree(ROOT / "python/frazil", tmp_path / "tree/frazil")
    if native:
        (package / "_frazil.abi3.so").write_bytes(native)
    done = run(python, "-c", "import frazil", cwd=tmp_path / "tree")
    assert f"ImportError: frazil's native module is missing in {package}, or is not one for this Python: start" in done.stderr
    assert done.stderr.endswith("run: python -m pip install --force-reinstall frazil\n")


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as files:
        names = {re.sub(r"^frazil-[^/]*\.dist-info/", "", name) for name in files.namelist()}
        native = files.getinfo("frazil/_frazil.abi3.so")
        [notices] = [name for name in files.namelist() if name.endswith(".dist-info/licenses/THIRD-PARTY-NOTICES.txt")]
        assert files.read(notices) == NOTICES
    package = ROOT / "python/frazil"
    paths = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    sources = {f"frazil/{path.relative_to(package)}" for path in paths}
    about = {"METADATA", "RECORD", "WHEEL", "entry_points.txt"}
    about |= {f"licenses/{name}" for name in ("LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY-NOTICES.txt")}
    listed = {"sboms/frazil.cdx.json"} if PACKAGES else set()
    assert names == sources | about | listed | {"frazil/_frazil.abi3.so"}
    assert not PACKAGES or native.file_size <= 7_500_000, "the extension is stripped and has no more than 7.5 MB"


def test_pypi_shows_the_projects_page(metadata):
    from trove_classifiers import classifiers

    unknown = set(metadata.get_all("Classifier")) - classifiers
    assert not unknown, f"PyPI refuses these: {unknown}"
    urls = dict(url.split(", ") for url in metadata.get_all("Project-URL"))
    assert {"Homepage", "Documentation", "Changelog", "Issues"} == set(urls)
    assert (metadata["Author"], metadata["License-Expression"]) == ("The frazil developers", "MIT OR Apache-2.0")
    # Relative links would be broken, because PyPI does not have the repository's files.
    links = re.findall(r"\]\(([^)]+)\)|^\[[^\]]+\]: (\S+)", metadata.get_payload(), re.MULTILINE)
    assert links and all("".join(link).startswith("https://") for link in links)


@release
def test_pypi_accepts_it():
    output_of(TOOLS / "twine", "check", "--strict", *WHEELS.iterdir())


@release
def test_the_wheel_runs_on_old_systems(wheel):
    if "linux" not in wheel.name:
        pytest.skip("auditwheel reads Linux' wheels")
    oldest = "musllinux_1_2_" if "musllinux" in wheel.name else "manylinux_2_17_"
    assert oldest in wheel.name
    assert f'"{oldest}' in output_of(TOOLS / "auditwheel", "show", wheel).split("is consistent with")[1]
    with zipfile.ZipFile(wheel) as files:
        native = files.read("frazil/_frazil.abi3.so")
        [document] = [name for name in files.namelist() if name.endswith("/sboms/frazil.cdx.json")]
        assert names_its_crates(files.read(document), native)
    assert shares_the_unwinder(native) == ("manylinux" in wheel.name)


@release
@pytest.mark.parametrize("version", of_every([TOO_OLD]))
def test_an_old_python_is_refused_with_the_version_it_needs(version, index, metadata, tmp_path):
    # The source distribution states the requirement. pip ignores a wheel for another Python.
    done = pip(new_environment(tmp_path, version), "install", "--isolated", "--index-url", index, "frazil")
    assert done.returncode == 1
    assert f"require a different python version: {metadata['Version']} Requires-Python >=3.11" in done.stderr, done.stderr


@release
def test_the_suite_passes_with_the_wheel(python, index, tmp_path):
    assert install(python, index).returncode == 0
    # The wheel's environment comes first. The suite's dependencies are in the checkout's environment.
    (own,) = [path for path in map(Path, sys.path) if path.name == "site-packages"]
    (site,) = tmp_path.glob("venv/lib/*/site-packages")
    (site / "own.pth").write_text(f"{own}\n")
    for server in ("gunicorn", "uwsgi"):
        shutil.copy(Path(sys.executable).with_name(server), python.parent)
    # In its own folder, this suite's processes do not conflict with another suite's node numbers.
    output_of(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--confcutdir={ROOT / 'tests'}", ROOT / "tests/python", cwd=tmp_path)


def test_an_interpreter_that_is_not_cpython_is_refused(tmp_path):
    """The refusal comes from the source build that its pip starts, because there is no wheel for it."""
    (tmp_path / "pypy").write_text("implementation=PyPy\nversion=3.11\npointer_width=64\n")
    settings = {"PYO3_CONFIG_FILE": str(tmp_path / "pypy"), "CARGO_TARGET_DIR": str(tmp_path / "target")}
    build = ["cargo", "check", "--quiet", "--locked", "--package", "frazil-python", "--no-default-features"]
    done = subprocess.run(build, cwd=ROOT, env=os.environ | settings, check=False, capture_output=True, text=True)
    assert done.returncode != 0
    assert "frazil is for CPython 3.11 and later, and this is PyPy: run CPython" in done.stderr


@release
def test_the_source_distribution_builds(python, example, tmp_path):
    (source,) = WHEELS.glob("frazil-*.tar.gz")
    with tarfile.open(source) as files:
        names = {name.split("/", 1)[1] for name in files.getnames()}
    assert {"Cargo.lock", "LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-NOTICES.txt", "README.md"} <= names
    assert {"core/src/lib.rs", "python/src/lib.rs"} <= names
    assert not [name for name in names if name.startswith(("tests/", "node/", "c-api/", "bench/"))]

    target = tmp_path / "target"
    settings = {"CARGO_TARGET_DIR": str(target), "CARGO_PROFILE_DEV_DEBUG": "0", "MATURIN_PEP517_ARGS": "--profile dev"}
    done = pip(python, "install", "--no-binary", "frazil", source, env=settings, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(target)
    (tmp_path / "quick_start.py").write_text(example("python"))
    output_of(python, "quick_start.py", cwd=tmp_path, env={"FRAZIL_HOME": str(tmp_path / "local")})
