"""The wheel: its stubs and metadata, and the check that these tests run against it."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import frazil
import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "python/README.md", *sorted(ROOT.glob("docs/*.md"))]
CHECKERS = {"mypy": ["mypy", "--strict", "--cache-dir=."], "pyright": ["pyright", "--pythonpath", sys.executable]}


def test_stubs(tmp_path):
    allowlist = Path(__file__).with_name("stubtest_allowlist.txt")
    # The packages of the extras are not installed, so their types are Any, which matches the first of two overloads.
    (tmp_path / "mypy.ini").write_text("[mypy]\nignore_missing_imports = True\ndisable_error_code = overload-cannot-match\n")
    command = [sys.executable, "-m", "mypy.stubtest", "frazil", "--allowlist", str(allowlist), "--mypy-config-file", "mypy.ini"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("checker", CHECKERS)
def test_types_in_use(checker, tmp_path):
    """Each checker must accept the program, and the examples of all documents."""
    shutil.copy(Path(__file__).with_name("typed_usage.py"), tmp_path)
    for document in DOCUMENTS:
        name = "_".join(document.relative_to(ROOT).with_suffix("").parts).lower()
        for number, code in enumerate(re.findall(r"^```python\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)):
            (tmp_path / f"{name}_{number}.py").write_text(code)
    assert list(tmp_path.glob("readme_*.py")), "the README has examples"
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict", "reportUnnecessaryTypeIgnoreComment": true}')
    done = subprocess.run(
        [sys.executable, "-m", *CHECKERS[checker], *sorted(path.name for path in tmp_path.glob("*.py"))],
        check=False, capture_output=True, text=True, cwd=tmp_path, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_installed():
    assert Path(frazil.__file__).is_relative_to(sys.prefix), "the tests run against the wheel: python/build.sh"
    assert frazil.__version__ == metadata.version("frazil")
    files = {file.name for file in metadata.files("frazil")}
    assert {"py.typed", "_frazil.pyi", "LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-NOTICES.txt"} <= files


def test_the_command(tmp_path):
    """The script and the module have the same output, errors and exit status."""
    store = f"file:{tmp_path}/store"
    # Another process leases a number, and ends before the listing is read.
    hold = "import frazil, sys; ids = frazil.Snowflake('game', server=4711, store=sys.argv[1]); ids.next(); ids.close()"
    subprocess.run([sys.executable, "-c", hold, store], check=True, cwd=tmp_path, timeout=60)
    script = Path(sys.executable).with_name("frazil")
    for command in ([script], [sys.executable, "-m", "frazil"]):
        run = lambda *given: subprocess.run([*command, *given], check=False, capture_output=True, text=True, cwd=tmp_path, timeout=60)  # noqa: B023
        done = run("nodes", store)
        assert (done.returncode, done.stderr) == (0, "")
        assert "\n4711  server=4711  free " in done.stdout
        assert done.stdout.endswith("\n0 of 1048576 node numbers held, 1 free or passed, 1048575 never used\n")
        slot = json.loads(run("nodes", store, "--json").stdout)["slots"][0]
        assert (slot["node"], slot["state"]) == (4711, "free")
        refused = run("nodes", "nowhere")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr.startswith("error[SPEC]: ")
        assert run("sql", "postgresql", "twitter").stdout.startswith(f"-- frazil {frazil.__version__}: functions for PostgreSQL")
        assert run("nodes").returncode == 2
        assert run("--version").stdout == f"frazil {frazil.__version__}\n"


CLOSED = "error[OUTPUT]: the output cannot be written: it is closed\n  https://github.com/frazil/frazil/blob/main/docs/errors.md#output\n"


def test_the_command_without_an_output_or_with_a_directory_as_input(tmp_path):
    """Python leaves a closed output closed. Python itself refuses a directory as input."""
    script = Path(sys.executable).with_name("frazil")
    for command in ([script], [sys.executable, "-m", "frazil"]):
        closed = subprocess.run(
            ["sh", "-c", 'exec "$@" >&-', "sh", *command, "layouts"], check=False, stderr=subprocess.PIPE, text=True, timeout=60
        )  # fmt: skip
        assert (closed.returncode, closed.stderr) == (1, CLOSED)
    folder = os.open(tmp_path, os.O_RDONLY)
    results = [
        subprocess.run([*command], check=False, capture_output=True, text=True, stdin=folder, timeout=60)
        for command in ([script, "decode", "twitter"], [sys.executable, "-c", "pass"])
    ]
    os.close(folder)
    assert [done.returncode for done in results] == [1, 1]
    assert all("<stdin> is a directory, cannot continue" in done.stderr for done in results), results
