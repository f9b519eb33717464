"""The adapters' requirements for an installation."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# Each module with the packages that it needs and its extra.
ADAPTERS = [
    ("frazil.django", ["django"], "django"),
    ("frazil.sqlalchemy", ["sqlalchemy"], "sqlalchemy"),
    ("frazil.pydantic", ["pydantic", "pydantic_core"], "pydantic"),
    ("frazil.numpy", ["numpy"], "numpy"),
    ("frazil.pandas", ["pandas", "numpy"], "pandas"),
    ("frazil.polars", ["polars", "numpy"], "polars"),
    ("frazil.prometheus", ["prometheus_client"], "prometheus"),
]


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120).stdout


@pytest.mark.parametrize("module, packages, extra", ADAPTERS, ids=[module for module, *_ in ADAPTERS])
def test_a_missing_package_names_the_extra(module, packages, extra):
    for package in packages:
        code = f"""
import sys
sys.modules[{package!r}] = None
try:
    import {module}
except ImportError as error:
    print(error)
"""
        assert f"pip install 'frazil[{extra}]'" in run_python(code)


def test_frazil_alone_imports_none_of_them():
    packages = {package for _, packages, _ in ADAPTERS for package in packages}
    imported = run_python("import sys, frazil; print(*{name.partition('.')[0] for name in sys.modules})").split()
    assert "frazil" in imported and not packages & set(imported)


def test_the_extras_ask_for_the_oldest_versions_that_are_tested():
    extras = tomllib.loads((ROOT / "python/pyproject.toml").read_text())["project"]["optional-dependencies"]
    oldest = dict(re.findall(r"^([\w-]+)(?:\[\w+\])?==(\S+)$", (ROOT / "tests/adapters/python/oldest.txt").read_text(), re.MULTILINE))
    for _, _, extra in ADAPTERS:
        for requirement in extras[extra]:
            package, version = requirement.split(">=")
            tested = oldest[package].split(".")
            asked = version.split(".")
            assert tested[: len(asked)] == asked and set(tested[len(asked) :]) <= {"0"}, requirement
