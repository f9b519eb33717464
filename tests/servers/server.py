"""The parts that all servers share: a folder, a port, a process, and the ways in which these may fail."""

import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

from . import process

# For a first start on a busy machine; most take a second or two.
TIMEOUT = 90

# A whole run has a folder in memory for them: on a busy disk an fsync takes seconds.
PLACE = os.environ.get("FRAZIL_TEST_SERVERS") or tempfile.gettempdir()


class Failure(Exception):
    """A server that does not do what the tests need."""


class Server:
    """A server of one kind. Its `url` stays the same over restarts."""

    name: str
    """The name of the server in the tests."""
    package: str
    """Debian's package."""
    program: str
    """The file to run: a name on the PATH, or a pattern."""
    account: str | None = None
    """The account that runs it when we are root and it refuses root."""

    def __init__(self):
        self.running = None
        self.paused = []
        self.executable = self.find()
        self.reserved = process.reserve_port()
        self.port = process.port_of(self.reserved)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"frazil-{os.getpid()}-{self.name}-", dir=PLACE))
        self.log = self.folder / "log"
        self.data = self.folder / "data"
        try:
            self.begin()
        except BaseException:
            self.reserved.close()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    # What each kind says for itself.

    def prepare(self):
        """Makes an empty database in the data folder."""

    def command(self):
        """The command line of the server."""
        raise NotImplementedError

    def answers(self, connection):
        """Returns whether it serves; the connection is a fresh socket."""
        raise NotImplementedError

    @property
    def url(self):
        """The store's URL."""
        return self.url_at(self.port)

    def url_at(self, port):
        """The store's URL when it is reached through another port: a proxy's."""
        raise NotImplementedError

    # What they do all alike.

    def begin(self):
        """Makes the data folder, and in it an empty database."""
        self.data.mkdir(mode=0o700)
        if self.account and os.geteuid() == 0:
            who = pwd.getpwnam(self.account)
            for path in (self.folder, self.data):
                os.chown(path, who.pw_uid, who.pw_gid)
        self.prepare()

    @classmethod
    def find(cls):
        """The path of the program, which need not be on the PATH."""
        places = [*os.environ.get("PATH", "").split(os.pathsep), "/usr/sbin", "/usr/bin"]
        found = [*map(str, sorted(pathlib.Path("/").glob(cls.program[1:]), reverse=True))] if cls.program[0] == "/" else []
        path = found[0] if found else shutil.which(cls.program, path=os.pathsep.join(places))
        if not path:
            raise Failure(f"{cls.program} is missing: scripts/setup.sh installs it (Debian's package {cls.package})")
        return path

    def run(self, command, **options):
        """Runs a tool of the server's to its end, under the same account."""
        command = process.bound_to_us(command, self.account)
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=TIMEOUT, cwd=self.folder, **options)
        if done.returncode != 0:
            raise Failure(f"{' '.join(command)} failed with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        return done.stdout

    def launch(self):
        """Starts it; `wait` says when it serves."""
        self.running = process.spawn(self.command(), self.log, self.account, cwd=self.folder)

    def wait(self):
        """Returns once it serves, and it is this very process that does."""
        deadline = time.monotonic() + TIMEOUT
        while not self.serves():
            if not self.runs() or time.monotonic() > deadline:
                state = f"ended with {self.running.returncode}" if not self.runs() else "does not answer"
                raise Failure(f"{self.name} {state}; the end of its log:\n{self.log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.05)

    def runs(self):
        """Returns whether there is a process of ours: after its end the kernel may give its number to any other."""
        return self.running is not None and self.running.poll() is None

    def serves(self):
        """Returns whether it serves at this moment."""
        if not process.listens(self.running.pid, self.port):
            return False
        try:
            with process.connect(self.port) as connection:
                return self.answers(connection)
        except OSError:
            return False

    def kill9(self):
        """Kills it and its helpers at once, as a power cut would; the data stay."""
        if not self.runs():
            return
        members = process.family(self.running.pid)
        process.send(members, signal.SIGKILL)
        self.running.wait(TIMEOUT)
        self.paused = []
        if not process.await_true(lambda: all(map(process.gone, members)), TIMEOUT):
            raise Failure(f"{self.name} does not die")

    def restart(self):
        """Kills it, and starts it on the same data and the same port."""
        self.kill9()
        self.launch()
        self.wait()

    def wipe(self):
        """Loses everything: it is as new, at the same address."""
        self.kill9()
        shutil.rmtree(self.data)
        self.begin()
        self.restart()

    def pause(self):
        """Stops it in the middle of whatever it does; connections stay open, and nothing answers."""
        if not self.runs():
            return
        # The parent first: it starts no more helpers.
        self.paused = [self.running.pid]
        stands = process.freeze(self.paused, TIMEOUT)
        self.paused = process.family(self.running.pid)
        if not (stands and process.freeze(self.paused, TIMEOUT)):
            raise Failure(f"{self.name} does not stop")

    def resume(self):
        """Lets it go on after `pause`."""
        process.send(self.paused, signal.SIGCONT)
        self.paused = []

    def stop(self):
        """Ends it and removes its data."""
        try:
            self.kill9()
        finally:
            self.reserved.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
