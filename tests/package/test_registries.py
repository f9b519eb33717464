"""`pip install frazil` and `cargo add frazil` as they will be: from registries, which are on loopback until the names are there.

npm's is in test_node.py. The crate's dependencies come from the registry that this machine is set up for.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from conftest import PACKAGES, ROOT, VERSION
from test_python import FOLDER

CRATES_IO = "https://github.com/rust-lang/crates.io-index"


@pytest.fixture
def serve():
    """Serves files by their paths: a function that takes the address and gives them."""
    servers = []

    def serve(files):
        class Registry(BaseHTTPRequestHandler):
            def do_GET(self):
                found = held.get(self.path)
                self.send_response(200 if found else 404)
                self.send_header(
                    "Content-Type", "application/vnd.pypi.simple.v1+json" if self.path.startswith("/simple/") else "text/plain"
                )
                self.end_headers()
                self.wfile.write(found or b"")

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
        address = f"http://127.0.0.1:{server.server_port}"
        held = files(address)
        Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return address

    yield serve
    for server in servers:
        server.shutdown()


def run(*command, cwd, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("FRAZIL", "PIP", "PYTHON"))}
    done = subprocess.run(command, check=False, cwd=cwd, capture_output=True, text=True, timeout=900, env=clean | environment)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def test_pip_installs_from_an_index(serve, tmp_path, example):
    def files(_):
        packed = {path.name: path.read_bytes() for path in [*FOLDER.glob("frazil-*.whl"), *FOLDER.glob("frazil-*.tar.gz")]}
        listed = [
            {"filename": name, "url": f"/files/{name}", "hashes": {"sha256": hashlib.sha256(packed[name]).hexdigest()}} for name in packed
        ]
        page = {"meta": {"api-version": "1.1"}, "name": "frazil", "versions": [VERSION], "files": listed}
        return {"/simple/frazil/": json.dumps(page).encode(), **{f"/files/{name}": content for name, content in packed.items()}}

    run(sys.executable, "-m", "venv", "venv", cwd=tmp_path)
    python = tmp_path / "venv/bin/python"
    told = run(python, "-m", "pip", "install", "--index-url", f"{serve(files)}/simple", "frazil", cwd=tmp_path)
    assert f"Successfully installed frazil-{VERSION}" in told
    (tmp_path / "first.py").write_text(example("python", "docs/start.md"))
    assert "under node" in run(python, "first.py", cwd=tmp_path, FRAZIL_HOME=str(tmp_path / "local"))


def entry(crate):
    """The line of a registry's index for a packed crate."""
    with tarfile.open(crate) as packed:
        manifest = tomllib.load(packed.extractfile(f"{crate.name.removesuffix('.crate')}/Cargo.toml"))
    dependencies = []
    for target, table in [(None, manifest), *((f"{name}", its) for name, its in manifest.get("target", {}).items())]:
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

    def files(address):
        config = {"dl": f"{address}/crates/{{crate}}-{{version}}.crate", "api": address}
        return {
            "/index/config.json": json.dumps(config).encode(),
            "/index/fr/az/frazil": entry(crate).encode(),
            f"/crates/{crate.name}": crate.read_bytes(),
        }

    index = {"CARGO_REGISTRIES_REHEARSAL_INDEX": f"sparse+{serve(files)}/index/"}
    program = tmp_path / "program"
    run("cargo", "new", "--quiet", "--vcs", "none", program, cwd=tmp_path)
    shutil.copy(ROOT / "Cargo.lock", program)
    told = run("cargo", "add", "frazil", "--registry", "rehearsal", "--features", "serde", cwd=program, **index)
    assert f"Adding frazil v{VERSION}" in told and "+ serde" in told and "- sql" in told
    (program / "src/main.rs").write_text(example("rust", "docs/start.md"))
    # The versions that the suites have built already, as they did: what is built is the crate.
    built = {"CARGO_TARGET_DIR": str(ROOT / "target"), "CARGO_PROFILE_DEV_DEBUG": "0", "FRAZIL_HOME": str(tmp_path / "local")}
    run("cargo", "run", "--quiet", cwd=program, **index, **({} if PACKAGES else built))
