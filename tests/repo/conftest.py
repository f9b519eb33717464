"""The guide's site, which several modules read."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent


@pytest.fixture(scope="session")
def built_site():
    """The folder of the guide's site. Warnings are errors: an unknown page or anchor is one."""
    built = subprocess.run([ROOT / "scripts/guide.sh"], check=False, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""})
    assert built.returncode == 0, built.stdout + built.stderr
    return ROOT / "build/guide"
