"""The parts that all servers share: a folder, a port, a process, and ways to make them fail."""

import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

from . import process

# The time limit of a first start on a busy machine. Most starts take a second or two.
TIMEOUT = 90

# The servers' folders. `make test` puts them in memory, because an fsync takes seconds on a busy disk.
PLACE = os.environ.get("FRAZIL_TEST_SERVERS") or tempfile.gettempdir()


class Failure(Exception):
    """A server that does not do what the tests need."""


class Missing(Failure):
    """A server's program that this system does not have."""


class Server:
    """A server of one kind. Its `url` stays the same after restarts."""

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

    # Each kind of server defines these methods.

    def prepare(self):
        """Makes an empty database in the data folder."""

    def command(self):
        """Returns the command line of the server."""
        raise NotImplementedError

    def answers(self, connection):
        """Returns whether the server serves. The connection is new."""
        raise NotImplementedError

    @property
    def url(self):
        return self.url_at(self.port)

    def url_at(self, port):
        """Returns the store's URL through another port, such as a proxy's."""
        raise NotImplementedError

    # The methods that all kinds share.

    def begin(self):
        """Makes the data folder with an empty database in it."""
        self.data.mkdir(mode=0o700)
        if self.account and os.geteuid() == 0:
            who = pwd.getpwnam(self.account)
            for path in (self.folder, self.data):
                os.chown(path, who.pw_uid, who.pw_gid)
        self.prepare()

    @classmethod
    def find(cls):
        """Returns the path of the program, which need not be on the PATH."""
        places = [*os.environ.get("PATH", "").split(os.pathsep), "/usr/sbin", "/usr/bin"]
        found = [*map(str, sorted(pathlib.Path("/").glob(cls.program[1:]), reverse=True))] if cls.program[0] == "/" else []
        path = found[0] if found else shutil.which(cls.program, path=os.pathsep.join(places))
        if not path:
            raise Missing(f"{cls.program} is missing: scripts/setup.sh installs it (Debian's package {cls.package})")
        return path

    def run(self, command, **options):
        """Runs one of the server's tools to its end, under the same account."""
        command = process.bound_to_us(command, self.account)
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=TIMEOUT, cwd=self.folder, **options)
        if done.returncode != 0:
            raise Failure(f"{' '.join(command)} failed with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        return done.stdout

    def launch(self):
        """Starts the server. `wait` returns once it serves."""
        self.running = process.spawn(self.command(), self.log, self.account, cwd=self.folder)

    def wait(self):
        """Returns once this process serves, and not another one."""
        deadline = time.monotonic() + TIMEOUT
        while not self.serves():
            if not self.runs() or time.monotonic() > deadline:
                state = f"ended with {self.running.returncode}" if not self.runs() else "does not answer"
                raise Failure(f"{self.name} {state}; the end of its log:\n{self.log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.05)

    def runs(self):
        """Returns whether the process runs. After its end, the kernel may give its ID to another process."""
        return self.running is not None and self.running.poll() is None

    def serves(self):
        """Returns whether the server serves now."""
        if not process.listens(self.running.pid, self.port):
            return False
        try:
            with process.connect(self.port) as connection:
                return self.answers(connection)
        except OSError:
            return False

    def kill9(self):
        """Kills the server and its helpers at once, like a power cut. The data stays."""
        if not self.runs():
            return
        members = process.family(self.running.pid)
        process.send(members, signal.SIGKILL)
        self.running.wait(TIMEOUT)
        self.paused = []
        if not process.await_true(lambda: all(map(process.gone, members)), TIMEOUT):
            raise Failure(f"{self.name} does not die")

    def restart(self):
        """Kills the server, and starts it with the same data and port."""
        self.kill9()
        self.launch()
        self.wait()

    def wipe(self):
        """Restarts the server without its data, at the same address."""
        self.kill9()
        shutil.rmtree(self.data)
        self.begin()
        self.restart()

    def pause(self):
        """Freezes the server. Connections stay open, and nothing answers."""
        if not self.runs():
            return
        # The parent is stopped first, so that it starts no more helpers.
        self.paused = [self.running.pid]
        is_stopped = process.freeze(self.paused, TIMEOUT)
        self.paused = process.family(self.running.pid)
        if not (is_stopped and process.freeze(self.paused, TIMEOUT)):
            raise Failure(f"{self.name} does not stop")

    def resume(self):
        """Continues the server after `pause`."""
        process.send(self.paused, signal.SIGCONT)
        self.paused = []

    def stop(self):
        """Ends the server, and removes its data."""
        try:
            self.kill9()
        finally:
            self.reserved.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
