"""The crates as they are published: the library in a program of its own, and the command."""

import os
import shutil
import subprocess
import tarfile

from conftest import ROOT


def packed(folder, *names):
    """The crates as they are published, each in a folder of its own, in the order of their names."""
    packages = [word for name in names for word in ("--package", name)]
    built = folder / "target"
    command = ["cargo", "package", "--quiet", "--locked", "--allow-dirty", "--no-verify", *packages, "--target-dir", built]
    subprocess.run(command, cwd=ROOT, check=True)
    for packed in (built / "package").glob("frazil-*.crate"):
        with tarfile.open(packed) as crate:
            crate.extractall(folder, filter="data")
    crates = sorted(folder.glob("frazil-*"))
    assert len(crates) == len(names)
    for crate in crates:
        assert {"README.md", "LICENSE-MIT", "LICENSE-APACHE", "Cargo.toml", "src"} <= {path.name for path in crate.iterdir()}
        assert not (crate / "tests").exists()
    return crates


def environment():
    """The versions that the suites have built already, as they did, and their folder: what is built is the crate."""
    return {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target"), "CARGO_PROFILE_DEV_DEBUG": "0"}


def test_the_crate(tmp_path, example):
    (crate,) = packed(tmp_path, "frazil")

    program = tmp_path / "program"
    (program / "src").mkdir(parents=True)
    (program / "src/main.rs").write_text(example("rust", "docs/start.md"))
    manifest = f'[package]\nname = "program"\nedition = "2024"\n\n[dependencies]\nfrazil = {{ path = "../{crate.name}" }}\n'
    (program / "Cargo.toml").write_text(manifest)
    shutil.copy(ROOT / "Cargo.lock", program)
    local = {"FRAZIL_HOME": str(tmp_path / "local")}
    subprocess.run(["cargo", "run", "--quiet"], cwd=program, check=True, env=environment() | local)


def test_the_command(tmp_path):
    """Its crate names the library by the version, which nobody has published here: the packed one stands for it."""
    core, command = packed(tmp_path, "frazil", "frazil-cli")
    (tmp_path / "Cargo.toml").write_text(
        f'[workspace]\nresolver = "3"\nmembers = ["{command.name}"]\n\n[patch.crates-io]\nfrazil = {{ path = "{core.name}" }}\n'
    )
    shutil.copy(ROOT / "Cargo.lock", tmp_path)
    command = ["cargo", "run", "--quiet", "--package", "frazil-cli", "--", "next", "twitter datacenter=1 worker=7"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True, env=environment())
    assert int(done.stdout) > 0
