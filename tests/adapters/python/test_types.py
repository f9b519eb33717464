"""The adapters' types in mypy's strict mode, with the types of the frameworks' current versions."""

import subprocess
import sys
from pathlib import Path

import frazil
import pytest


@pytest.mark.skipif(sys.prefix.endswith("oldest"), reason="the types are those of the current versions")
def test_types(tmp_path):
    package = Path(frazil.__file__).parent
    # A link outside the installed packages, because mypy does not check those.
    (tmp_path / "frazil").symlink_to(package)
    usage = ["typed_usage.py", "typed_usage_django.py"]
    for name in usage:
        (tmp_path / name).write_text(Path(__file__).with_name(name).read_text())
    modules = [
        "frazil/django",
        *(f"frazil/{name}.py" for name in ("_exact", "_ranges", "numpy", "pandas", "polars", "pydantic", "sqlalchemy")),
    ]
    # pandas ships no types.
    command = [sys.executable, "-m", "mypy", "--strict", "--disable-error-code=import-untyped", *modules, *usage]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
