"""An example as a user runs it: copied, installed, started, and inspected from outside."""

import contextlib
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import urllib.parse

from servers import process

ROOT = pathlib.Path(__file__).parent.parent.parent
BUILD = ROOT / "build/examples"
TIMEOUT = 120


class Example:
    """One folder of examples/, and its copy in build/examples."""

    def __init__(self, name):
        self.name = name
        self.source = ROOT / "examples" / name
        self.folder = BUILD / name

    def prepare(self):
        """Copies the example, and installs its packages, with frazil as built by this checkout."""
        installed = {".venv", "node_modules", "package-lock.json"}
        made = {".env", "__pycache__", "dist", "generated"}
        if self.folder.exists():
            for path in self.folder.iterdir():
                if path.name not in installed:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self.source, self.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*installed, *made))
        if (self.folder / "requirements.txt").exists():
            self.install_python()
        if (self.folder / "package.json").exists():
            self.install_node()

    def install_python(self):
        [wheel] = (ROOT / "build/wheels").glob("frazil-*.whl")
        venv, requirements = self.folder / ".venv", self.folder / "requirements.txt"
        pip = [ROOT / "scripts/uv.sh", "pip", "install", "--quiet", "--python", venv / "bin/python"]
        # The marks come last, so that a partial installation is repeated.
        mark = venv / "installed"
        if not mark.exists() or mark.read_bytes() != requirements.read_bytes():
            shutil.rmtree(venv, ignore_errors=True)
            run(sys.executable, "-m", "venv", venv)
            run(*pip, "--find-links", wheel.parent, "--requirement", requirements)
            shutil.copy(requirements, mark)
        built = hashlib.sha256(wheel.read_bytes()).hexdigest()
        mark = venv / "frazil-built"
        if not mark.exists() or mark.read_text() != built:
            run(*pip, "--no-deps", "--reinstall", wheel)
            mark.write_text(built)

    def install_node(self):
        addon, manifest = ROOT / "node/frazil.node", self.folder / "package.json"
        wanted = manifest.read_bytes()
        sources = [path for path in sorted((ROOT / "node").rglob("*.*")) if "node_modules" not in path.parts]
        built = hashlib.sha256(b"".join(path.read_bytes() for path in sources if path.is_file())).hexdigest()
        modules = self.folder / "node_modules"
        marks = {modules / ".installed": wanted, modules / ".frazil-built": built.encode()}
        if any(not mark.exists() or mark.read_bytes() != content for mark, content in marks.items()):
            packed = BUILD / "packed"
            shutil.rmtree(packed, ignore_errors=True)
            packed.mkdir(parents=True)
            host = re.search(r"^host: (.*)$", run("rustc", "-vV"), re.MULTILINE)[1]
            run("strip", "--strip-debug", "-o", packed / "frazil.node", addon)
            run("node", ROOT / "node/pack.mjs", host, packed / "frazil.node", packed)
            (self.folder / "package-lock.json").unlink(missing_ok=True)
            run("npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *packed.glob("*.tgz"), cwd=self.folder)
            # Restores the file, because npm has written the tarballs' paths into it.
            manifest.write_bytes(wanted)
            for mark, content in marks.items():
                mark.write_bytes(content)

    @contextlib.contextmanager
    def start(self, database, port=None, **environment):
        """Runs the example on a database, until the end of the block."""
        with contextlib.ExitStack() as stack:
            if port is None:
                reserved = stack.enter_context(process.reserve_port())
                port = process.port_of(reserved)
            application = Application(self, database, port, environment)
            try:
                application.wait()
                yield application
            finally:
                application.kill()


class Application:
    """A running example: its `url`, the process of `run.sh`, and its descendants."""

    def __init__(self, example, database, port, environment):
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.log = example.folder / f"log-{port}"
        self.log.unlink(missing_ok=True)
        kept = {name: value for name, value in os.environ.items() if name not in ("FRAZIL", "VIRTUAL_ENV")}
        given = {"DATABASE_URL": database, "PORT": str(port)} | environment
        self.running = process.spawn([example.folder / "run.sh"], self.log, cwd=example.folder, env=kept | given)

    def wait(self):
        """Returns once the example serves."""
        ended = process.await_true(lambda: self.running.poll() is not None or self.serves(), TIMEOUT, 0.1)
        assert ended and self.running.poll() is None, f"it does not start; it has said:\n{self.said()}"

    def serves(self):
        """Returns whether one of the example's processes listens."""
        return process.listens(self.running.pid, self.port)

    def said(self):
        """Returns the end of the example's output."""
        return self.log.read_text(errors="replace")[-4000:]

    def worker_of(self, connection):
        """Returns the descendant process at the other end of a connection, or None."""
        ours = connection.getsockname()[1]
        rows = [row.split() for row in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
        held = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(f":{self.port:04X}") and row[2].endswith(f":{ours:04X}")}
        for pid in process.family(self.running.pid)[1:]:
            with contextlib.suppress(OSError):
                if any(os.readlink(entry.path) in held for entry in os.scandir(f"/proc/{pid}/fd")):
                    return pid
        return None

    def stop(self):
        """Ends the example by SIGTERM, as its user does, and returns once all its processes have ended."""
        members = process.family(self.running.pid)
        self.running.send_signal(signal.SIGTERM)
        ended = process.await_true(lambda: self.running.poll() is not None and all(map(process.gone, members)), TIMEOUT)
        assert ended, f"it does not end on SIGTERM; it has said:\n{self.said()}"

    def kill(self):
        """Kills all processes of the example."""
        # The whole session, including workers whose supervisor has ended.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.running.pid, signal.SIGKILL)
        self.running.wait(TIMEOUT)


@functools.cache
def names():
    """Returns the names of all examples."""
    return sorted(path.parent.name for path in ROOT.glob("examples/*/run.sh"))


def run(*command, **options):
    """Runs a command to its end, and returns its output."""
    done = subprocess.run([*map(str, command)], check=False, capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def held_nodes(database):
    """Returns the node numbers that are leased in a store."""
    listed = json.loads(run(sys.executable, "-m", "frazil", "nodes", database, "--json"))
    return [slot["node"] for slot in listed["slots"] if slot["state"] == "held"]


def quoted(text):
    """Quotes a part of a URL."""
    return urllib.parse.quote(str(text), safe="")
