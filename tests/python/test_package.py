"""The wheel: its stubs, its metadata, and that it is what these tests run against."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import frazil


def test_stubs(tmp_path):
    allowlist = Path(__file__).with_name("stubtest_allowlist.txt")
    command = [sys.executable, "-m", "mypy.stubtest", "frazil", "--allowlist", str(allowlist)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_installed():
    assert Path(frazil.__file__).is_relative_to(sys.prefix), "the tests run against the wheel: python/build.sh"
    assert frazil.__version__ == metadata.version("frazil")
    files = {file.name for file in metadata.files("frazil")}
    assert {"py.typed", "_frazil.pyi", "LICENSE-MIT", "LICENSE-APACHE"} <= files
