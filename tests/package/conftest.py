"""The packages that a user installs, in clean environments away from the source tree.

`make package` names the folder of its release artefacts in FRAZIL_PACKAGES: the full form. Without it the artefacts are those
that `make test` has built before: the short form.
"""

import json
import os
import re
import subprocess
import tarfile
import tomllib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

ROOT = Path(__file__).parent.parent.parent
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
PACKAGES = os.environ.get("FRAZIL_PACKAGES")
# What each artefact with a binary holds.
NOTICES = (ROOT / "THIRD-PARTY-NOTICES.txt").read_bytes()
HOST = re.search(r"^host: (.*)$", subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout, re.MULTILINE)[1]


def shares_the_unwinder(library):
    """Tells whether a library for glibc, given as bytes, uses the process's unwinder and not one that zig has put into it."""
    return b"libgcc_s.so.1\0" in library and b"libunwind:" not in library


def names_its_crates(document, library):
    """Tells whether a CycloneDX document, as text, names all crates whose files the texts of a release's library, given as bytes, name."""
    found = {crate.decode() for crate in re.findall(rb"/cargo/registry/src/[^/]+/([\w.+-]+)/", library)}
    return found and found <= {f"{its['name']}-{its['version']}" for its in json.loads(document)["components"]}


@pytest.fixture(scope="session")
def packages():
    """The folder of release artefacts; None in the short form."""
    return Path(PACKAGES).resolve() if PACKAGES else None


@pytest.fixture(scope="session")
def example():
    """The first code block in a language of a document of the repository."""

    def find(language, document="README.md"):
        return re.search(rf"^```{language}\n(.*?)^```$", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)[1]

    return find


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """Runs a command in a folder, with an npm that knows nobody's settings and has cached nothing; its output."""
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
        told = subprocess.run([*map(str, command)], check=False, cwd=folder, capture_output=True, text=True, env=env)
        assert (told.returncode != 0) == fails, f"{command} exits with {told.returncode}:\n{told.stdout}{told.stderr}"
        return told.stdout + told.stderr

    return run


@pytest.fixture(scope="session")
def serve():
    """A function that serves on loopback the bytes which another one gives for a path, and 404 for none; it returns the address."""
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
    """The folder of the npm packages. The short form packs the addon that node/build.sh has built, without its debug information."""
    if packages:
        return packages / "node"
    folder = tmp_path_factory.mktemp("packed")
    run(ROOT, "strip", "--strip-debug", "-o", folder / "frazil.node", "node/frazil.node")
    run(ROOT, "node", "node/pack.mjs", HOST, folder / "frazil.node", folder)
    return folder


@pytest.fixture(scope="session")
def tarballs(packed):
    """The two tarballs: frazil's, and that of the platform's package."""
    main, platform = sorted(packed.glob("*.tgz"))
    return main, platform


@pytest.fixture(scope="session")
def install(packages, tmp_path_factory):
    """A function that gives a new prefix of the C library, which lies elsewhere than where it was installed."""

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
