"""The promises of the scripts: missing tools are named first, and an old cargo is skipped."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
TIMEOUT_S = 60


@pytest.mark.parametrize(
    "purpose, needed",
    [
        ("--check", {"gcc", "make", "python3-venv"}),
        ("--demo", {"nodejs", "npm", "g++"}),
        ("--test", {"valgrind", "etcd-server", "git", "openssl"}),
    ],
)
def test_everything_that_is_missing_is_named_at_once(purpose, needed, tmp_path):
    """Runs as a user other than root, on a machine with almost no tools."""
    for name in ("bash", "dirname", "grep", "find", "awk", "env"):
        (tmp_path / name).symlink_to(shutil.which(name))
    fakes = {"id": "echo 1000", "df": "printf 'h\\nfs 1 1 1048576 1 /\\n'", "python3": "exit 1", "cargo": "echo cargo 1.63.0"}
    for name, says in fakes.items():
        (tmp_path / name).write_text(f"#!{shutil.which('bash')}\n{says}\n")
        (tmp_path / name).chmod(0o755)
    command = [shutil.which("bash"), ROOT / "scripts/setup.sh", purpose]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 1 and not done.stdout
    lines = done.stderr.splitlines()
    assert lines[0].startswith("frazil needs these packages: ") and needed <= set(lines[0].partition(";")[0].split())
    assert "; root installs them with: apt-get install " in lines[0]
    assert any(f"Rust 1.94 or later: see rustup.rs; {tmp_path}/cargo is 1.63.0" in line for line in lines)
    assert any("Python 3.11" in line for line in lines)
    assert any("GB of free disk space, and in" in line and line.endswith("there are 1") for line in lines)
    assert (purpose == "--test") == any("Python 3.12 or 3.13 as well" in line for line in lines)
    assert (purpose != "--demo") == any("free disk space for temporary files, and in /tmp there are 1" in line for line in lines)
    assert (purpose == "--test") == any("free ports on the loopback interface" in line for line in lines)


def cargo_of(folder, version):
    """Makes a folder with a dummy cargo that prints its version and its arguments."""
    folder.mkdir()
    path = folder / "cargo"
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "cargo {version} (0123456789 2026-01-01)" || echo "$0 $1" >&2\n')
    path.chmod(0o755)
    return folder


BUILDS = ["c-api/install.sh prefix", "node/build.sh --demo", "python/build.sh --demo", "server/build.sh", "cmake -S . -B build/cmake"]


@pytest.mark.parametrize("build", BUILDS)
def test_an_old_cargo_is_named_and_passed_over(build, tmp_path):
    """Debian's cargo cannot read frazil's Cargo.toml, and only reports a TOML error."""
    tree = tmp_path / "a checkout"
    tracked = ("Cargo.toml", "CMakeLists.txt", "scripts/rust.sh", "c-api/install.sh", "node/build.sh", "python/build.sh", "server/build.sh")
    for name in (*tracked, "c-api/lay_out.sh"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    (tree / ".venv/bin").mkdir(parents=True)
    (tree / ".venv/made").touch()
    (tree / ".venv/bin/maturin").write_text("#!/bin/sh\ncargo maturin\n")
    (tree / ".venv/bin/maturin").chmod(0o755)
    old, new = cargo_of(tmp_path / "old", "1.63.0"), cargo_of(tmp_path / "new cargo", "1.99.1")
    # PATH may contain a folder that does not exist.
    path = f"{tmp_path}/none:{old}:/usr/bin:/bin"

    def run(**environment):
        environment = {"PATH": path, "HOME": str(tmp_path), **environment}
        return subprocess.run(build.split(), cwd=tree, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)

    refused = run()
    # CMake wraps lines.
    errors = " ".join(refused.stderr.split())
    assert refused.returncode != 0 and f"frazil needs Rust 1.94 or later: see rustup.rs; {old}/cargo is 1.63.0" in errors
    (tmp_path / "rustup").mkdir()
    (tmp_path / "rustup/bin").symlink_to(new)
    for folder, environment in ((new, {"PATH": f"{path}:{new}"}), (tmp_path / "rustup/bin", {"CARGO_HOME": str(tmp_path / "rustup")})):
        done = run(**environment)
        if "cmake" in build:
            assert done.returncode == 0 and f"frazil is built by {folder}/cargo" in done.stdout, done.stderr
            shutil.rmtree(tree / "build/cmake")
        else:
            assert f"Building with {folder}/cargo, because {old}/cargo is 1.63.0" in done.stderr
            assert f"{folder}/cargo " in done.stderr.partition("\n")[2], done.stderr


def test_a_wheel_of_unchanged_sources_is_kept(tmp_path):
    tree = tmp_path / "a checkout"
    for name in ("Cargo.toml", "scripts/rust.sh", "python/build.sh", "tests/python/requirements.txt"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    for name in ("Cargo.lock", "README.md", "core/Cargo.toml", "core/src/lib.rs", "cli/Cargo.toml", "cli/src/lib.rs", ".venv/made"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    shutil.copy(ROOT / "tests/python/requirements.txt", tree / ".venv/installed")
    (tree / ".venv/bin").mkdir()
    build = "mkdir -p build/wheels; touch build/wheels/frazil-1.whl; echo built >> log"
    for name, script in (("maturin", build), ("python", "exit 0")):
        (tree / ".venv/bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (tree / ".venv/bin" / name).chmod(0o755)
    cargo = cargo_of(tmp_path / "cargo", "1.99.1")

    def builds(*words):
        environment = {"PATH": f"{cargo}:{os.environ['PATH']}", "HOME": str(tmp_path)}
        subprocess.run([tree / "python/build.sh", *words], check=True, env=environment, timeout=TIMEOUT_S)
        return (tree / "log").read_text().count("built")

    assert builds() == 1 and builds() == 1
    # A source that changes while the wheel is built is newer than the mark.
    later = (tree / ".venv/built").stat().st_mtime + 1
    os.utime(tree / "core/src/lib.rs", (later, later))
    assert builds() == 2
    os.utime(tree / "core/src/lib.rs", (0, 0))
    assert builds("--release") == 3 and builds("--release") == 3 and builds() == 4
    (tree / "build/wheels/frazil-1.whl").unlink()
    assert builds() == 5
