"""The crates as published: the library as a program's dependency, and the command."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import servers
from conftest import CRATES, ROOT, VERSION


def replaced(crates):
    """Returns the lines of a manifest by which the packed crates replace the registry's, which are not published yet."""
    return "\n".join(["", "[patch.crates-io]", *(f'{name} = {{ path = "{crates}/{name}-{VERSION}" }}' for name in CRATES), ""])


def test_the_packed_files(crates):
    folders = [path for path in crates.iterdir() if path.is_dir()]
    assert {path.name for path in folders} == {f"{name}-{VERSION}" for name in (*CRATES, "frazil-cli")}
    for crate in folders:
        assert {"README.md", "LICENSE-MIT", "LICENSE-APACHE", "Cargo.toml", "src"} <= {path.name for path in crate.iterdir()}
        assert not (crate / "tests").exists() and not list(crate.rglob("simulation*"))
        # A registry's page cannot have relative links.
        assert re.findall(r"\]\((?!https://|#)", (crate / "README.md").read_text()) == [] or crate.name.startswith("frazil-cli")


def environment():
    """Returns an environment with the suites' target folder and settings, so that cargo only builds the crate."""
    return {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target"), "CARGO_PROFILE_DEV_DEBUG": "0"}


def test_the_crate(crates, tmp_path, example):
    program = tmp_path / "program"
    (program / "src").mkdir(parents=True)
    (program / "src/main.rs").write_text(example("rust", "docs/start.md"))
    manifest = f'[package]\nname = "program"\nedition = "2024"\n\n[dependencies]\nfrazil = "{VERSION}"\n'
    (program / "Cargo.toml").write_text(manifest + replaced(crates))
    shutil.copy(ROOT / "Cargo.lock", program)
    local = {"FRAZIL_HOME": str(tmp_path / "local")}
    subprocess.run(["cargo", "run", "--quiet"], cwd=program, check=True, env=environment() | local)


def answer(url, data=None):
    """Sends a request, and returns the answer's status and text."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=data), timeout=20) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def test_the_page_of_rust(crates, tmp_path):
    """Each sample is a program with the dependencies that the page names. The first one is a web service."""
    page = (ROOT / "docs/rust.md").read_text()
    (named,) = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    samples = re.findall(r"^```rust\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    program = tmp_path / "program"
    (program / "src/bin").mkdir(parents=True)
    for number, sample in enumerate(samples):
        (program / f"src/bin/sample{number}.rs").write_text(sample)
    assert named.count("../frazil/core") == 1
    manifest = '[package]\nname = "samples"\nedition = "2024"\n\n' + named.replace("../frazil/core", f"{crates}/frazil-{VERSION}")
    (program / "Cargo.toml").write_text(manifest + replaced(crates))
    shutil.copy(ROOT / "Cargo.lock", program)
    subprocess.run(["cargo", "build", "--quiet"], cwd=program, check=True, env=environment())

    with servers.start("postgresql") as database:
        place = f"127.0.0.1:{free_port()}"
        env = {**os.environ, "FRAZIL_HOME": str(tmp_path / "local"), "DATABASE_URL": database.url, "ADDRESS": place}
        built = ROOT / "target/debug"
        (table,) = re.findall(r"^```sh\n(psql .*?)^```$", page, re.MULTILINE | re.DOTALL)
        subprocess.run(["bash", "-ec", table], check=True, env=env)
        for number in range(1, len(samples)):
            subprocess.run([built / f"sample{number}"], check=True, env=env, timeout=60)
        with subprocess.Popen([built / "sample0"], env=env) as service:
            try:
                orders = f"http://{place}/orders"
                answered = None
                for _ in range(600):
                    try:
                        answered = answer(orders, b"coffee")
                        break
                    except urllib.error.URLError:
                        time.sleep(0.1)
                status, order = answered
                found = json.loads(order)
                assert (status, found["item"], int(found["id"]) > 2**53) == (200, "coffee", True)
                assert answer(f"{orders}/{found['id']}") == (200, order)
                assert answer(f"{orders}/7") == (404, "no such order")
                status, why = answer(f"{orders}/-1")
                assert status == 400 and "ID_INVALID" in why
                service.send_signal(signal.SIGTERM)
                assert service.wait(timeout=30) == 0
            finally:
                service.kill()
        command = [sys.executable, "-m", "frazil", "nodes", database.url, "--json"]
        held = subprocess.run(command, capture_output=True, text=True, check=False)
        assert '"state": "free"' in held.stdout or '"state":"free"' in held.stdout, held


def test_the_command(crates, tmp_path):
    """The command's crate depends on the library's version. A packed crate replaces this, because it is not published yet."""
    shutil.copytree(crates / f"frazil-cli-{VERSION}", tmp_path / "command")
    (tmp_path / "Cargo.toml").write_text(f'[workspace]\nresolver = "3"\nmembers = ["command"]\n{replaced(crates)}')
    shutil.copy(ROOT / "Cargo.lock", tmp_path)
    command = ["cargo", "run", "--quiet", "--package", "frazil-cli", "--", "next", "twitter datacenter=1 worker=7"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True, env=environment())
    assert int(done.stdout) > 0
