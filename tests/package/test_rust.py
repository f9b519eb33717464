"""The crate as it is published, in a program of its own."""

import os
import shutil
import subprocess
import tarfile

from conftest import ROOT


def test_the_crate(tmp_path, example):
    built = tmp_path / "target"
    packed = ["cargo", "package", "--quiet", "--locked", "--allow-dirty", "--no-verify", "--package", "frazil", "--target-dir", built]
    subprocess.run(packed, cwd=ROOT, check=True)
    with tarfile.open(next((built / "package").glob("frazil-*.crate"))) as crate:
        crate.extractall(tmp_path, filter="data")
    (crate,) = tmp_path.glob("frazil-*")
    assert {"README.md", "LICENSE-MIT", "LICENSE-APACHE", "Cargo.toml", "src"} <= {path.name for path in crate.iterdir()}
    assert not (crate / "tests").exists()

    program = tmp_path / "program"
    (program / "src").mkdir(parents=True)
    (program / "src/main.rs").write_text(example("rust"))
    manifest = f'[package]\nname = "program"\nedition = "2024"\n\n[dependencies]\nfrazil = {{ path = "../{crate.name}" }}\n'
    (program / "Cargo.toml").write_text(manifest)
    # The versions that the suites have built already, as they did, and their folder: what is built is the crate.
    shutil.copy(ROOT / "Cargo.lock", program)
    environment = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target"), "CARGO_PROFILE_DEV_DEBUG": "0"}
    subprocess.run(["cargo", "run", "--quiet"], cwd=program, check=True, env=environment)
