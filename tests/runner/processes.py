"""Commands in their own process groups, and the signals that end a run."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping

# Signals that end a run. Its exit status is then 128 plus the number.
ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
# Python ignores these signals, but a command must not inherit that.
RESTORED = (signal.SIGPIPE, signal.SIGXFSZ)
NOT_FOUND = 127


class Interrupted(BaseException):
    """The end of a run by a signal."""

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number


class Signals:
    """Raises `Interrupted` for each signal that ends a run, but not while a command is being started.

    If the start were interrupted, the command would not be in any list, and nothing would end it.
    """

    def __init__(self) -> None:
        self.held = False
        self.arrived: int | None = None

    def install(self) -> None:
        for number in ENDING:
            # nohup makes a program ignore SIGHUP, and a shell makes background programs ignore SIGINT.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self.receive)

    def receive(self, number: int, _frame: object) -> None:
        if self.arrived is not None:
            return
        self.arrived = number
        if not self.held:
            raise Interrupted(number)

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """Delays signals until the end of the block."""
        self.held = True
        try:
            yield
        finally:
            self.held = False
            if self.arrived is not None:
                raise Interrupted(self.arrived)

    @staticmethod
    def ignore() -> None:
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)


class Process:
    """A running command, which leads its own process group.

    The group lets a signal reach everything that the command has started. No command reads from the
    terminal, so none can wait for it.
    """

    def __init__(self, command: tuple[str, ...], env: Mapping[str, str], output: int | None = None):
        actions: list[tuple] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        if output is not None:
            actions += [(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)]
        self.pid = os.posix_spawnp(command[0], command, env, file_actions=actions, setpgroup=0, setsigdef=RESTORED)
        self.began = time.monotonic()
        self.status: int | None = None
        self.took_s = 0.0
        self.cpu_s = 0.0

    def has_ended(self) -> bool:
        """Returns whether the command has ended. If so, kills what it has left in its group."""
        if self.status is None:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if not pid:
                return False
            code = os.waitstatus_to_exitcode(status)
            self.status = code if code >= 0 else 128 - code
            self.took_s = time.monotonic() - self.began
            self.cpu_s = usage.ru_utime + usage.ru_stime
            self.signal(signal.SIGKILL)
        return True

    def signal(self, number: int) -> bool:
        """Sends a signal to the group, and returns whether anything is left in it."""
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def is_gone(self) -> bool:
        """Returns whether the command and everything in its group have ended."""
        return self.reaped() and not self.signal(0)

    def reaped(self) -> bool:
        """Returns whether the command itself has ended. In contrast to `has_ended`, its group may still run."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None


def end(processes: list[Process], patience_s: float) -> None:
    """Ends processes and everything in their groups, first by SIGTERM, then by SIGKILL."""
    left = [process for process in processes if process.signal(signal.SIGTERM)]
    deadline = time.monotonic() + patience_s
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left = [process for process in left if not process.is_gone()]
    for process in left:
        process.signal(signal.SIGKILL)


def say(text: str) -> None:
    """Prints without a buffer. If the reader has gone, the run ends, as by SIGPIPE."""
    say_bytes(text.encode(errors="replace"))


def say_bytes(data: bytes) -> None:
    try:
        while data:
            data = data[os.write(sys.stdout.fileno(), data) :]
    except BrokenPipeError:
        raise Interrupted(signal.SIGPIPE) from None
    except OSError:
        # The terminal has gone. Its SIGHUP arrives during this pause, unless it has arrived already.
        time.sleep(0.1)
        raise
