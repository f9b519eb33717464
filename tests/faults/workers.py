"""The workers: programs in four languages that mint and write down their IDs (worker.py has the format)."""

import atexit
import functools
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import clock
from servers import process

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HOUR_S = 3600
# The time in which a worker ends after a stop: the longest wait of a policy or a store, on a busy machine.
FAREWELL_S = 30

# Each worker's name and program, whether it forks, and whether its clock can be set.
CREW = [
    ("python-1", "worker.py", True, True),
    ("python-2", "worker.py", False, True),
    ("node-1", "worker.mjs", False, False),
    ("node-2", "worker.mjs", False, True),
    ("c", "worker.c", True, False),
    ("cpp", "worker.cpp", True, True),
]
# The things that all workers do besides minting, and the files that show them.
DEEDS = {"late openers that waited": "waits.*.ids", "late openers that polled": "polls.*.ids", "IDs observed": "observed"}


@functools.cache
def build():
    """Compiles the C and the C++ worker once for all runs. Returns the command of each program."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="frazil-workers-"))
    atexit.register(shutil.rmtree, folder)
    lib = ROOT / "build/c/lib"
    flags = ["-O2", "-pthread", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/build/c/include", f"-L{lib}", f"-Wl,-rpath,{lib}"]
    c, cpp = folder / "worker_c", folder / "worker_cpp"
    subprocess.run(["cc", "-std=c99", *flags, HERE / "worker.c", "-lfrazil", "-o", c], check=True, timeout=120)
    subprocess.run(["c++", "-std=c++17", *flags, HERE / "worker.cpp", "-lfrazil", "-o", cpp], check=True, timeout=120)
    return {
        "worker.py": [sys.executable, HERE / "worker.py"],
        "worker.mjs": ["node", HERE / "worker.mjs"],
        "worker.c": [c],
        "worker.cpp": [cpp],
    }


class Worker:
    """One place in the crew. After kill -9, a new start fills it with another process."""

    def __init__(self, place, command, kind, pace, child_limit_s, spec, folder):
        self.name, _, forks, self.has_clock = place
        self.folder = folder
        self.command = [*command, kind, spec, folder, self.name]
        rare, few = map(str, pace)
        self.environment = os.environ | {
            "FRAZIL_WORKER_FORKS": str(int(forks)),
            "FRAZIL_WORKER_RARE": rare,
            "FRAZIL_WORKER_FEW": few,
            "FRAZIL_WORKER_CHILD_LIMIT": str(child_limit_s),
        }
        if self.has_clock:
            self.clock = folder / f"{self.name}.clock"
            self.environment |= clock.under(self.clock)
        self.running = None
        self.started = []

    def start(self):
        self.running = process.spawn(self.command, self.folder / f"{self.name}.out", env=self.environment)
        self.started.append(self.running.pid)

    def kill(self):
        """Kills the process, but not its forked child, which ends by itself."""
        self.running.kill()
        self.running.wait(FAREWELL_S)

    def stop(self):
        """Stops the process and its forked child. Returns a function that continues both."""
        group = self.running.pid
        signal_group(group, signal.SIGSTOP)
        return lambda: signal_group(group, signal.SIGCONT)

    def turn_clock(self, seconds):
        """Sets the worker's clock to the true time plus a number of seconds."""
        clock.turn(seconds, self.clock)

    def minted(self):
        """Returns the number of IDs that the current process has written down."""
        path = self.folder / f"{self.name}.{self.running.pid}.ids"
        return path.stat().st_size // 8 if path.exists() else 0

    def last_minted(self):
        """Returns the last ID that the current process has written down, or None."""
        path = self.folder / f"{self.name}.{self.running.pid}.ids"
        ids = path.read_bytes() if path.exists() else b""
        whole = len(ids) // 8 * 8
        return int.from_bytes(ids[whole - 8 : whole], sys.byteorder) if whole else None

    def log_text(self):
        """Returns the current process's errors, one on each line."""
        path = self.folder / f"{self.name}.{self.running.pid}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def forked(self):
        """Returns the number of forked children that have minted."""
        minted = {path.name.split(".")[1] for path in self.folder.glob(f"{self.name}.*.ids") if path.stat().st_size > 0}
        return len(minted - set(map(str, self.started)))

    def done(self, deed):
        """Counts how often the worker or a forked child has done one of the DEEDS. A file of IDs counts once, another file by its bytes."""
        sizes = [path.stat().st_size for path in self.folder.glob(f"{self.name}.*.{DEEDS[deed]}")]
        return sum(sizes) if deed == "IDs observed" else sum(size > 0 for size in sizes)

    def died(self):
        """Returns the reason if the process has ended by itself, or None."""
        if self.running.poll() is None:
            return None
        out = (self.folder / f"{self.name}.out").read_text(errors="replace")[-1000:]
        return f"{self.name} ended with {self.running.returncode}: {out}"

    def leave(self):
        """Waits until the worker exits. If it hangs, returns its threads' stacks."""
        if process.await_true(lambda: self.running.poll() is not None, FAREWELL_S):
            return self.died() if self.running.returncode else None
        return f"{self.name} hangs: {threads_of(self.running.pid)}"

    def destroy(self):
        """Kills the process."""
        if self.running:
            self.running.kill()
            self.running.wait(FAREWELL_S)


def destroy_children(folder):
    """Kills the children that a run's workers have left. Their command lines contain the folder."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if str(folder).encode() in arguments:
            process.send([int(entry.name)], signal.SIGKILL)


def signal_group(group, number):
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        pass


def threads_of(pid):
    """Returns the calls in which a process's threads wait, as far as the kernel shows them."""
    waiting = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        try:
            waiting.append(f"{(task / 'comm').read_text().strip()} in {(task / 'wchan').read_text() or 'user space'}")
        except OSError:
            continue
    return ", ".join(waiting)
