"""The guide's site, which several modules use."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent


@pytest.fixture(scope="session")
def built_site():
    """Builds the guide's site, and returns its folder. Warnings, for example about an unknown page or anchor, are errors."""
    built = subprocess.run([ROOT / "scripts/guide.sh"], check=False, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""})
    assert built.returncode == 0, built.stdout + built.stderr
    return ROOT / "build/guide"
