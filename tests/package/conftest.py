"""The packages that a user installs, in clean environments away from the source tree.

In the full form, `make package` sets FRAZIL_PACKAGES to the folder of its release artefacts. Without it, in the short form, the
artefacts are those that `make test` has built.
"""

import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

ROOT = Path(__file__).parent.parent.parent
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
PACKAGES = os.environ.get("FRAZIL_PACKAGES")
WHEELS = Path(PACKAGES, "python").resolve() if PACKAGES else ROOT / "build/wheels"
# frazil, and the crates that it depends on.
CRATES = ("frazil", "frazil-base", "frazil-store")
CRATES_IO = "https://github.com/rust-lang/crates.io-index"
# Each artefact with a binary contains this file.
NOTICES = (ROOT / "THIRD-PARTY-NOTICES.txt").read_bytes()
HOST = re.search(r"^host: (.*)$", subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout, re.MULTILINE)[1]


def shares_the_unwinder(library):
    """Returns whether a library for glibc, given as bytes, uses the process's unwinder and not one that zig has put into it."""
    return b"libgcc_s.so.1\0" in library and b"libunwind:" not in library


def names_its_crates(document, library):
    """Returns whether a CycloneDX document, as text, lists all crates whose source files a release's library, as bytes, names."""
    found = {crate.decode() for crate in re.findall(rb"/cargo/registry/src/[^/]+/([\w.+-]+)/", library)}
    return found and found <= {f"{its['name']}-{its['version']}" for its in json.loads(document)["components"]}


@pytest.fixture(scope="session")
def packages():
    """Returns the folder of release artefacts, or None in the short form."""
    return Path(PACKAGES).resolve() if PACKAGES else None


@pytest.fixture(scope="session")
def example():
    """Returns a function that finds a document's first code block in a language."""

    def find(language, document="README.md"):
        return re.search(rf"^```{language}\n(.*?)^```$", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)[1]

    return find


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """Returns a function that runs a command in a folder and returns its output. npm has no settings and no cache."""
    home = tmp_path_factory.mktemp("home")
    env = {name: value for name, value in os.environ.items() if not name.lower().startswith(("npm_config_", "node_"))}
    env |= {
        "HOME": str(home),
        "FRAZIL_HOME": str(home / "local"),
        "npm_config_cache": str(home / "cache"),
        "npm_config_userconfig": str(home / "npmrc"),
    }
    env |= {"npm_config_audit": "false", "npm_config_fund": "false", "npm_config_update_notifier": "false", "NO_PROXY": "127.0.0.1"}

    def run(folder, *command, fails=False):
        result = subprocess.run([*map(str, command)], check=False, cwd=folder, capture_output=True, text=True, env=env)
        assert (result.returncode != 0) == fails, f"{command} exits with {result.returncode}:\n{result.stdout}{result.stderr}"
        return result.stdout + result.stderr

    return run


@pytest.fixture(scope="session")
def serve():
    """Returns a function that starts a server on loopback and returns its address. `content` returns a path's bytes, or None for 404."""
    servers = []

    def serve(content):
        class Registry(BaseHTTPRequestHandler):
            def do_GET(self):
                body = content(self.path)
                self.send_response(200 if body else 404)
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
        servers.append(server)
        Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield serve
    for server in servers:
        server.shutdown()


@pytest.fixture(scope="session")
def packed(packages, run, tmp_path_factory):
    """Returns the folder of the npm packages. The short form packs the addon of node/build.sh, without debug information."""
    if packages:
        return packages / "node"
    folder = tmp_path_factory.mktemp("packed")
    run(ROOT, "strip", "--strip-debug", "-o", folder / "frazil.node", "node/frazil.node")
    run(ROOT, "node", "node/pack.mjs", HOST, folder / "frazil.node", folder)
    return folder


@pytest.fixture(scope="session")
def tarballs(packed):
    """Returns the two tarballs: frazil's, and that of the platform's package."""
    main, platform = sorted(packed.glob("*.tgz"))
    return main, platform


@pytest.fixture(scope="session")
def install(packages, tmp_path_factory):
    """Returns a function that installs the C library, moves it, and returns the new prefix."""

    def install(suffix=""):
        folder = tmp_path_factory.mktemp("frazil")
        if packages:
            name = f"frazil-{VERSION}-{HOST}{suffix}"
            with tarfile.open(packages / f"c/{name}.tar.gz") as archive:
                archive.extractall(folder, filter="data")
        else:
            name = "installed"
            script = [ROOT / "c-api/install.sh", *(["--lean"] if suffix else ["--aligned"]), folder / name]
            done = subprocess.run(script, check=False, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        return (folder / name).rename(folder / "moved")

    return install


@pytest.fixture(scope="session")
def prefix(install):
    return install()


@pytest.fixture(scope="session")
def asked():
    """Returns the list of the names that the registry has been asked for."""
    return []


@pytest.fixture(scope="session")
def registry(packed, serve, asked):
    """Starts a registry with frazil and the packages of all platforms, but with the tarball of this platform only. Returns its address."""
    manifests = {path.parent.name: json.loads(path.read_text()) for path in packed.glob("npm/*/package.json")}

    def content(path):
        name = path.strip("/")
        asked.append(name)
        if name not in manifests:
            return (packed / name).read_bytes() if (packed / name).is_file() else None
        manifest = manifests[name]
        tarball = f"{address}/{name}-{manifest['version']}.tgz"
        versions = {manifest["version"]: {**manifest, "dist": {"tarball": tarball}}}
        return json.dumps({"name": name, "dist-tags": {"latest": manifest["version"]}, "versions": versions}).encode()

    address = serve(content)
    return address


@pytest.fixture(scope="session")
def wheel():
    (found,) = WHEELS.glob("frazil-*.whl")
    return found


@pytest.fixture(scope="session")
def metadata(wheel):
    with zipfile.ZipFile(wheel) as files:
        (name,) = [name for name in files.namelist() if name.endswith(".dist-info/METADATA")]
        return BytesParser().parsebytes(files.read(name))


@pytest.fixture(scope="session")
def index(wheel, metadata, tmp_path_factory):
    """Makes a package index with the files to be published, and the same requirements as on PyPI."""
    folder = tmp_path_factory.mktemp("index")
    (folder / "frazil").mkdir()
    needs = html.escape(metadata["Requires-Python"])
    files = [wheel, *WHEELS.glob("frazil-*.tar.gz")]
    links = [f'<a href="{file.as_uri()}" data-requires-python="{needs}">{file.name}</a>' for file in files]
    (folder / "frazil/index.html").write_text("<!DOCTYPE html>\n" + "\n".join(links))
    return folder.as_uri()


def entry(crate):
    """Returns the line of a registry's index for a packed crate."""
    with tarfile.open(crate) as packed:
        manifest = tomllib.load(packed.extractfile(f"{crate.name.removesuffix('.crate')}/Cargo.toml"))
    dependencies = []
    for target, table in [(None, manifest), *manifest.get("target", {}).items()]:
        for kind, key in (("normal", "dependencies"), ("build", "build-dependencies")):
            for name, wanted in table.get(key, {}).items():
                wanted = {"version": wanted} if isinstance(wanted, str) else wanted
                dependencies.append({
                    "name": name, "req": wanted["version"], "features": wanted.get("features", []), "optional": wanted.get("optional", False),
                    "default_features": wanted.get("default-features", True), "target": target, "kind": kind,
                    "registry": None if name.startswith("frazil-") else CRATES_IO,
                    "package": wanted.get("package"),
                })  # fmt: skip
    checksum = hashlib.sha256(crate.read_bytes()).hexdigest()
    line = {
        "name": manifest["package"]["name"],
        "vers": VERSION,
        "deps": dependencies,
        "cksum": checksum,
        "yanked": False,
        "v": 2,
        "features": {},
    }
    # Features that name a dependency in the newer syntax are in a separate field.
    return json.dumps(line | {"features2": manifest.get("features", {}), "rust_version": manifest["package"]["rust-version"]})


@pytest.fixture(scope="session")
def crates(tmp_path_factory):
    """Packs frazil's crates as they will be published, and returns the folder with the archives and with each crate's folder.

    It is one folder, so that cargo compiles each crate once for all programs of the tests.
    """
    folder = tmp_path_factory.mktemp("crates")
    names = [word for name in (*CRATES, "frazil-cli") for word in ("--package", name)]
    package = ["cargo", "package", "--quiet", "--locked", "--allow-dirty", "--no-verify", *names, "--target-dir", folder / "target"]
    subprocess.run(package, cwd=ROOT, check=True)
    for path in (folder / "target/package").glob("frazil*.crate"):
        path.rename(folder / path.name)
        with tarfile.open(folder / path.name) as crate:
            crate.extractall(folder, filter="data")
    shutil.rmtree(folder / "target")
    return folder


@pytest.fixture(scope="session")
def crates_index(serve, crates):
    """Starts a registry with frazil's crates, and returns the address of its index. Their dependencies come from crates.io."""
    packed = [crates / f"{name}-{VERSION}.crate" for name in CRATES]

    def content(path):
        config = {"dl": f"{address}/crates/{{crate}}-{{version}}.crate", "api": address}
        held = {"/index/config.json": json.dumps(config).encode()}
        held |= {f"/index/fr/az/{name}": entry(crate).encode() for name, crate in zip(CRATES, packed, strict=True)}
        return (held | {f"/crates/{crate.name}": crate.read_bytes() for crate in packed}).get(path)

    address = serve(content)
    return f"sparse+{address}/index/"
