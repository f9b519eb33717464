"""The wheel and the source distribution: installed by pip into clean environments of every Python, and run there."""

import functools
import html
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest
from conftest import NOTICES, PACKAGES, ROOT, VERSION, names_its_crates, shares_the_unwinder

FOLDER = Path(PACKAGES, "python").resolve() if PACKAGES else ROOT / "build/wheels"
TOOLS = ROOT / "build/tools/bin"
OWN = f"{sys.version_info.major}.{sys.version_info.minor}"
VERSIONS = sorted({"3.11", "3.12", "3.13", OWN})
TOO_OLD = "3.10"

release = pytest.mark.skipif(not PACKAGES, reason="of release artefacts: make package")


@functools.cache
def interpreter(version):
    """A CPython of this machine: our own, from PATH, or from pyenv; None if there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for python in (sys.executable, shutil.which(f"python{version}"), *pyenv.glob(f"versions/{version}.*/bin/python")):
        asked = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        # What pyenv puts into PATH runs only if that version is turned on.
        if python and subprocess.run(asked, check=False, capture_output=True, text=True).stdout.strip() == version:
            return python
    return None


def of_every(versions):
    """These Pythons: all must be there in the full form, and one that is not is named in the short form."""
    absent = lambda version: [] if interpreter(version) or PACKAGES else pytest.mark.skip(reason=f"no python{version} on this machine")
    return [pytest.param(version, marks=absent(version)) for version in versions]


def run(*command, **options):
    """A finished process, away from the source tree's settings."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("FRAZIL", "PYTHON"))}
    env = {**clean, **options.pop("env", {})}
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=900, env=env, **options)


def told(*command, **options):
    """The output of a command, which must succeed."""
    done = run(*command, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def new_environment(folder, version):
    """The Python of a new virtual environment with nothing in it."""
    assert interpreter(version), f"the tests of the packages need python{version}: put it into PATH, or into pyenv"
    told(interpreter(version), "-m", "venv", "--without-pip", folder)
    return folder / "bin/python"


def pip(python, *arguments, **options):
    """Runs our pip for the packages of another Python."""
    return run(sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", *arguments, **options)


@pytest.fixture(scope="module")
def wheel():
    (found,) = FOLDER.glob("frazil-*.whl")
    return found


@pytest.fixture(scope="module")
def metadata(wheel):
    with zipfile.ZipFile(wheel) as files:
        (name,) = [name for name in files.namelist() if name.endswith(".dist-info/METADATA")]
        return BytesParser().parsebytes(files.read(name))


@pytest.fixture(scope="module")
def index(wheel, metadata, tmp_path_factory):
    """A package index with what is to be published, which tells pip what PyPI would."""
    folder = tmp_path_factory.mktemp("index")
    (folder / "frazil").mkdir()
    needs = html.escape(metadata["Requires-Python"])
    files = [wheel, *FOLDER.glob("frazil-*.tar.gz")]
    links = [f'<a href="{file.as_uri()}" data-requires-python="{needs}">{file.name}</a>' for file in files]
    (folder / "frazil/index.html").write_text("<!DOCTYPE html>\n" + "\n".join(links))
    return folder.as_uri()


def install(python, index):
    """pip install frazil, and never from source."""
    return pip(python, "install", "--isolated", "--index-url", index, "--only-binary", ":all:", "frazil")


@pytest.fixture(scope="module", params=of_every(VERSIONS))
def installed(request, index, tmp_path_factory):
    """A Python in whose environment is frazil, and nothing else."""
    python = new_environment(tmp_path_factory.mktemp("installed"), request.param)
    done = install(python, index)
    assert done.returncode == 0 and f"Successfully installed frazil-{VERSION}" in done.stdout, done.stdout + done.stderr
    return python


@pytest.fixture
def python(tmp_path):
    """The Python of an empty environment."""
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
    assert re.fullmatch(prints, told(installed, "quick_start.py", cwd=tmp_path, env={"FRAZIL_HOME": str(tmp_path / "local")}))


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
    assert told(installed, "forked.py", cwd=tmp_path, env={"FRAZIL_HOME": str(tmp_path)}) == "3001 3001\n"


def test_the_command_runs(installed, metadata, tmp_path):
    command, store = installed.with_name("frazil"), f"file:{tmp_path}/store"
    assert told(command, "--version", cwd=tmp_path) == f"frazil {metadata['Version']}\n"
    told(installed, "-c", f"import frazil; frazil.Snowflake('twitter', store='{store}').close()", cwd=tmp_path)
    assert told(command, "nodes", store, cwd=tmp_path).endswith("\n0 of 1024 node numbers held, 1 free or passed, 1023 never used\n")


def test_nothing_is_left_behind(python, index, tmp_path):
    before = set(tmp_path.rglob("*"))
    assert install(python, index).returncode == 0
    told(python.with_name("frazil"), "--version")
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


def test_pypi_shows_what_is_to_be_shown(metadata):
    from trove_classifiers import classifiers

    unknown = set(metadata.get_all("Classifier")) - classifiers
    assert not unknown, f"PyPI refuses these: {unknown}"
    urls = dict(url.split(", ") for url in metadata.get_all("Project-URL"))
    assert {"Homepage", "Documentation", "Changelog", "Issues"} == set(urls)
    assert (metadata["Author"], metadata["License-Expression"]) == ("The frazil developers", "MIT OR Apache-2.0")
    # PyPI knows no file of the repository.
    links = re.findall(r"\]\(([^)]+)\)|^\[[^\]]+\]: (\S+)", metadata.get_payload(), re.MULTILINE)
    assert links and all("".join(link).startswith("https://") for link in links)


@release
def test_pypi_takes_it():
    told(TOOLS / "twine", "check", "--strict", *FOLDER.iterdir())


@release
def test_the_wheel_runs_on_old_systems(wheel):
    if "linux" not in wheel.name:
        pytest.skip("auditwheel reads Linux' wheels")
    oldest = "musllinux_1_2_" if "musllinux" in wheel.name else "manylinux_2_17_"
    assert oldest in wheel.name
    assert f'"{oldest}' in told(TOOLS / "auditwheel", "show", wheel).split("is consistent with")[1]
    with zipfile.ZipFile(wheel) as files:
        native = files.read("frazil/_frazil.abi3.so")
        [document] = [name for name in files.namelist() if name.endswith("/sboms/frazil.cdx.json")]
        assert names_its_crates(files.read(document), native)
    assert shares_the_unwinder(native) == ("manylinux" in wheel.name)


@release
@pytest.mark.parametrize("version", of_every([TOO_OLD]))
def test_an_old_python_is_told_which_one_it_takes(version, index, metadata, tmp_path):
    # It is the source distribution that says so: a wheel whose name has another Python is no candidate at all.
    done = pip(new_environment(tmp_path, version), "install", "--isolated", "--index-url", index, "frazil")
    assert done.returncode == 1
    assert f"require a different python version: {metadata['Version']} Requires-Python >=3.11" in done.stderr, done.stderr


@release
def test_the_suite_passes_with_the_wheel(python, index, tmp_path):
    assert install(python, index).returncode == 0
    # What the suite needs is in our own environment; the wheel's comes first.
    (own,) = [path for path in map(Path, sys.path) if path.name == "site-packages"]
    (site,) = tmp_path.glob("venv/lib/*/site-packages")
    (site / "own.pth").write_text(f"{own}\n")
    for server in ("gunicorn", "uwsgi"):
        shutil.copy(Path(sys.executable).with_name(server), python.parent)
    # The folder above says which processes may have the same node numbers.
    told(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--confcutdir={ROOT / 'tests'}", ROOT / "tests/python", cwd=tmp_path)


def test_an_interpreter_that_is_not_cpython_is_refused(tmp_path):
    """By the build that its pip begins, because no wheel is for it."""
    (tmp_path / "pypy").write_text("implementation=PyPy\nversion=3.11\npointer_width=64\n")
    settings = {"PYO3_CONFIG_FILE": str(tmp_path / "pypy"), "CARGO_TARGET_DIR": str(tmp_path / "target")}
    build = ["cargo", "check", "--quiet", "--locked", "--package", "frazil-python", "--no-default-features"]
    done = subprocess.run(build, cwd=ROOT, env=os.environ | settings, check=False, capture_output=True, text=True)
    assert done.returncode != 0
    assert "frazil is for CPython 3.11 and later, and this is PyPy: run CPython" in done.stderr


@release
def test_the_source_distribution_builds(python, example, tmp_path):
    (source,) = FOLDER.glob("frazil-*.tar.gz")
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
    told(python, "quick_start.py", cwd=tmp_path, env={"FRAZIL_HOME": str(tmp_path / "local")})
