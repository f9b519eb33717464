"""`cargo add frazil` as it will be, but from a registry on loopback, because the name is not published yet.

test_node.py has the same for npm, test_python.py for pip, and test_rehearsal.py all of them on machines without a checkout.
"""

import os
import shutil
import subprocess

from conftest import PACKAGES, ROOT, VERSION


def run(*command, cwd, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("FRAZIL", "PIP", "PYTHON"))}
    done = subprocess.run(command, check=False, cwd=cwd, capture_output=True, text=True, timeout=900, env=clean | environment)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def test_cargo_adds_the_crate(crates_index, tmp_path, example):
    index = {"CARGO_REGISTRIES_REHEARSAL_INDEX": crates_index}
    program = tmp_path / "program"
    run("cargo", "new", "--quiet", "--vcs", "none", program, cwd=tmp_path)
    shutil.copy(ROOT / "Cargo.lock", program)
    output = run("cargo", "add", "frazil", "--registry", "rehearsal", "--features", "serde", cwd=program, **index)
    assert f"Adding frazil v{VERSION}" in output and "+ serde" in output and "- sql" in output
    (program / "src/main.rs").write_text(example("rust", "docs/start.md"))
    # The same versions and settings as in the suites, so that cargo only builds the crate.
    built = {"CARGO_TARGET_DIR": str(ROOT / "target"), "CARGO_PROFILE_DEV_DEBUG": "0", "FRAZIL_HOME": str(tmp_path / "local")}
    run("cargo", "run", "--quiet", cwd=program, **index, **({} if PACKAGES else built))
