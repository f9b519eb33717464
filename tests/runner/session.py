"""The checkout of a run: its lock, its temporary folder, its environment, and a clean end."""

import contextlib
import errno
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import processes
from .jobs import Plan
from .processes import Interrupted, Signals, say
from .schedule import Failed, Schedule, say_output

ROOT = Path(__file__).resolve().parents[2]
SHARED_MEMORY = Path("/dev/shm")
GIGABYTE = 1 << 30
# The time in which the commands must end after a failure or a signal.
PATIENCE_S = 30


class Session:
    """A run of a plan, with everything that has to be removed after it."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.began = time.monotonic()
        self.signals = Signals()
        self.scratch: Path | None = None
        self.memory: Path | None = None
        self.schedule: Schedule | None = None

    def run(self) -> int:
        """Runs the plan, and returns the exit status."""
        failed, status, interrupted = None, 1, False
        try:
            self.signals.install()
            os.chdir(ROOT)
            lock = take_lock()
            # Servers run under their own accounts, and must be able to write here.
            self.scratch = make_folder(os.environ.get("TMPDIR", "/tmp"))
            if self.plan.memory and has_memory():
                self.memory = make_folder(SHARED_MEMORY)
            self.schedule = Schedule(self.plan, self.scratch, self.environment(), self.signals)
            self.schedule.lock = lock
            self.schedule.run()
            status = 0
        except Failed as failure:
            failed, status = failure, failure.status
        except Interrupted as signal:
            status, interrupted = 128 + signal.number, True
        finally:
            self.signals.ignore()
            self.end(failed, keep=status != 0 and not interrupted)
        return status

    def environment(self) -> dict[str, str]:
        """Returns the environment of every command."""
        env = {**os.environ, "TMPDIR": str(self.scratch), "PATH": path_with_cargo()}
        os.environ["PATH"] = env["PATH"]
        # With this variable, each of hundreds of processes would compile its imports again.
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        # A registry that is busy for a minute does not end a run of half an hour.
        for retries in ("CARGO_NET_RETRY", "PIP_RETRIES", "npm_config_fetch_retries"):
            env.setdefault(retries, "5")
        if self.memory:
            env["FRAZIL_TEST_SERVERS"] = str(self.memory)
        return env

    def end(self, failed: Failed | None, keep: bool) -> None:
        """Ends what still runs, prints the times and a failure, and removes the folders."""
        if self.schedule:
            processes.end([its.process for its in self.schedule.running], PATIENCE_S)
        # The folders must be removed even if the reader has gone or the disk is full.
        with contextlib.suppress(OSError, Interrupted):
            self.report(failed)
        if self.scratch and not keep:
            for folder in filter(None, (self.scratch, self.memory)):
                shutil.rmtree(folder, ignore_errors=True)
        elif self.scratch:
            self.keep(failed)

    def report(self, failed: Failed | None) -> None:
        """Prints the times, and then the failure, because people first read the end of a log."""
        if self.schedule and self.schedule.times:
            lines = "\n".join(self.schedule.times)
            took = time.monotonic() - self.began
            say(f"\n== Times\n{lines}\n{took:5.0f} s  in all\n")
        if failed and failed.log:
            say_output(failed.job.title, failed.log)

    def keep(self, failed: Failed | None) -> None:
        """Keeps the files that a failed run has left, and prints where they are."""
        if self.memory:
            # The files move from memory to the disk, if it has room.
            with contextlib.suppress(OSError, shutil.Error):
                if any(self.memory.iterdir()):
                    shutil.move(self.memory, self.scratch / "servers", copy_function=copy)
                else:
                    self.memory.rmdir()
                self.memory = None
        with contextlib.suppress(OSError):
            self.scratch.rmdir()
            return
        what = f": {failed.job.title}" if failed else ""
        also = f" and {self.memory}" if self.memory else ""
        print(f"Failed{what}. The tests' files are in {self.scratch}{also}", file=sys.stderr)


def copy(source: str, target: str) -> None:
    """Copies a file, and leaves out anything else, such as a socket."""
    if os.path.isfile(source):
        shutil.copy2(source, target)


def take_lock() -> int:
    """Waits until no other run uses this checkout, because two runs would write into the same folders.

    The commands inherit the lock, so it is held until the last of them has ended.
    """
    os.makedirs("build", exist_ok=True)
    lock = os.open("build/.lock", os.O_RDWR | os.O_CREAT, 0o666)
    os.set_inheritable(lock, True)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno != errno.EWOULDBLOCK:
            raise
        print(f"Waiting for the end of another run in {ROOT}", file=sys.stderr, flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def make_folder(where: str | Path) -> Path:
    """Makes a temporary folder in which every account may write, as in /tmp."""
    folder = Path(tempfile.mkdtemp(prefix="frazil-", dir=where))
    folder.chmod(0o1777)
    return folder


def has_memory() -> bool:
    """Returns whether servers may keep their data in memory, where they do not wait for a disk that builds keep busy."""
    with contextlib.suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) * 1024
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
        is_tmpfs = any(mount[1:3] == [str(SHARED_MEMORY), "tmpfs"] for mount in mounts)
        return is_tmpfs and shutil.disk_usage(SHARED_MEMORY).free >= 4 * GIGABYTE and free >= 6 * GIGABYTE
    return False


def path_with_cargo() -> str:
    """Returns PATH with a cargo that is new enough first. If there is none, scripts/setup.sh reports it."""
    script = '. scripts/rust.sh; find_cargo 2>/dev/null; printf %s "$PATH"'
    found = subprocess.run(["sh", "-c", script], check=False, stdout=subprocess.PIPE, text=True)
    return found.stdout or os.environ["PATH"]
