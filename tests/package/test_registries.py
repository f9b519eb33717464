"""`cargo add frazil` as it will be: from a registry, which is on loopback until the name is there.

npm's is in test_node.py, and pip's index in test_python.py. The crate's dependencies come from the registry of this machine.
"""

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tomllib

from conftest import PACKAGES, ROOT, VERSION

CRATES_IO = "https://github.com/rust-lang/crates.io-index"


def run(*command, cwd, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("FRAZIL", "PIP", "PYTHON"))}
    done = subprocess.run(command, check=False, cwd=cwd, capture_output=True, text=True, timeout=900, env=clean | environment)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def entry(crate):
    """The line of a registry's index for a packed crate."""
    with tarfile.open(crate) as packed:
        manifest = tomllib.load(packed.extractfile(f"{crate.name.removesuffix('.crate')}/Cargo.toml"))
    dependencies = []
    for target, table in [(None, manifest), *manifest.get("target", {}).items()]:
        for kind, key in (("normal", "dependencies"), ("build", "build-dependencies")):
            for name, wanted in table.get(key, {}).items():
                wanted = {"version": wanted} if isinstance(wanted, str) else wanted
                dependencies.append({
                    "name": name, "req": wanted["version"], "features": wanted.get("features", []), "optional": wanted.get("optional", False),
                    "default_features": wanted.get("default-features", True), "target": target, "kind": kind, "registry": CRATES_IO,
                    "package": wanted.get("package"),
                })  # fmt: skip
    checksum = hashlib.sha256(crate.read_bytes()).hexdigest()
    line = {"name": "frazil", "vers": VERSION, "deps": dependencies, "cksum": checksum, "yanked": False, "v": 2, "features": {}}
    # What names a dependency in the new way is in a field of its own.
    return json.dumps(line | {"features2": manifest["features"], "rust_version": manifest["package"]["rust-version"]})


def test_cargo_adds_the_crate(serve, tmp_path, example):
    package = [
        "cargo",
        "package",
        "--quiet",
        "--locked",
        "--allow-dirty",
        "--no-verify",
        "--package",
        "frazil",
        "--target-dir",
        tmp_path / "target",
    ]
    subprocess.run(package, cwd=ROOT, check=True)
    [crate] = (tmp_path / "target/package").glob("frazil-*.crate")

    def content(path):
        config = {"dl": f"{address}/crates/{{crate}}-{{version}}.crate", "api": address}
        held = {"/index/config.json": json.dumps(config).encode(), "/index/fr/az/frazil": entry(crate).encode()}
        return {**held, f"/crates/{crate.name}": crate.read_bytes()}.get(path)

    address = serve(content)
    index = {"CARGO_REGISTRIES_REHEARSAL_INDEX": f"sparse+{address}/index/"}
    program = tmp_path / "program"
    run("cargo", "new", "--quiet", "--vcs", "none", program, cwd=tmp_path)
    shutil.copy(ROOT / "Cargo.lock", program)
    told = run("cargo", "add", "frazil", "--registry", "rehearsal", "--features", "serde", cwd=program, **index)
    assert f"Adding frazil v{VERSION}" in told and "+ serde" in told and "- sql" in told
    (program / "src/main.rs").write_text(example("rust", "docs/start.md"))
    # The versions that the suites have built already, as they did: what is built is the crate.
    built = {"CARGO_TARGET_DIR": str(ROOT / "target"), "CARGO_PROFILE_DEV_DEBUG": "0", "FRAZIL_HOME": str(tmp_path / "local")}
    run("cargo", "run", "--quiet", cwd=program, **index, **({} if PACKAGES else built))
