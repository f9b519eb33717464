"""Runs the jobs of a plan: each as soon as what it needs has ended and a place is free."""

import contextlib
import os
import re
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from .jobs import Job, Plan
from .processes import NOT_FOUND, Process, Signals, say, say_bytes

PAUSE_S = 0.05
# A test that prints without end must not fill the log.
OUTPUT_MAX = 10_000_000
# The closing lines of libtest, pytest, Node, tests/c/suite.h and tests/mutants.
RAN = re.compile(
    r"^test result: \w+\. (\d+) passed; (\d+) failed"
    r"|^(?:=+ )?(?:.*, )?(\d+) (?:passed|failed|skipped|errors?)\b.* in [\d.]+s"
    r"|^(?:#|ℹ) (?:pass|fail) (\d+)"
    r"|^(\d+) passed, (\d+) failed"
    r"|^\d+ of (\d+) mutants",
    re.MULTILINE,
)


class Failed(Exception):
    """The failure of a job."""

    def __init__(self, job: Job, status: int, log: Path | None):
        super().__init__(job.title)
        self.job, self.status, self.log = job, status, log


class Running:
    """A job that has been started."""

    def __init__(self, job: Job, log: Path | None, process: Process):
        self.job, self.log, self.process = job, log, process
        self.shown = 0
        self.was_interrupted = False

    def show(self) -> None:
        """Prints what the job has written since the last call."""
        if self.log:
            with self.log.open("rb") as file:
                file.seek(self.shown)
                while data := file.read(65536):
                    self.shown += len(data)
                    say_bytes(data)

    def interrupt_if_it_hangs(self, limit_s: float, farewell_s: float) -> None:
        """Interrupts a job that hangs, so that it can print where, and kills it if it does not end."""
        age = time.monotonic() - self.process.began
        if age >= limit_s and not self.was_interrupted:
            self.was_interrupted = True
            note = f"\nNot ended after {age:.0f} s: interrupted\n"
            if self.log:
                with self.log.open("a") as file:
                    file.write(note)
            else:
                say(note)
            self.process.signal(signal.SIGTERM)
        elif age >= limit_s + farewell_s:
            self.process.signal(signal.SIGKILL)


class Schedule:
    """The state of a plan's run."""

    def __init__(self, plan: Plan, scratch: Path, env: Mapping[str, str], signals: Signals):
        self.plan, self.scratch, self.env, self.signals = plan, scratch, env, signals
        self.waiting = list(plan.jobs)
        self.running: list[Running] = []
        self.times: list[str] = []
        self.started = 0
        self.lock: int | None = None

    def run(self) -> None:
        """Runs all jobs. The first failure ends the run with `Failed`."""
        for note in self.plan.notes:
            say(f"\n== {note}\n")
        while self.waiting or self.running:
            self.end_jobs()
            self.start_jobs()
            if self.plan.limit_s is not None:
                for running in self.running:
                    running.interrupt_if_it_hangs(self.plan.limit_s, self.plan.farewell_s)
            time.sleep(PAUSE_S)

    def start_jobs(self) -> None:
        places = 1 if self.plan.live else self.plan.places
        while len(self.running) < places and (job := self.first_ready()):
            self.waiting.remove(job)
            self.start(job)

    def first_ready(self) -> Job | None:
        unfinished = {job.title for job in self.waiting} | {its.job.title for its in self.running}
        ready = (job for job in self.waiting if not unfinished.intersection(job.needs))
        return next(ready, None)

    def start(self, job: Job) -> None:
        """Starts a job. Its output goes to a file, unless it is shown at once and nothing reads it."""
        say(f"\n== {job.title}{'' if self.plan.live else ': begins'}\n")
        self.started += 1
        log = None if self.plan.live and not job.pattern else self.scratch / f"output-{self.started}"
        if not job.holds_lock and self.lock is not None:
            os.close(self.lock)
            self.lock = None
        # Suites that run at the same time use the same fixed node numbers.
        env = {**self.env, "FRAZIL_GUARD_SCOPE": str(self.scratch / f"scope-{self.started}"), **job.env}
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(log.open("ab")) if log else None
            try:
                with self.signals.holding():
                    process = Process(job.command, env, file.fileno() if file else None)
                    self.running.append(Running(job, log, process))
            except OSError as error:
                say(f"{job.command[0]}: {error.strerror}\n")
                raise Failed(job, NOT_FOUND, None) from None

    def end_jobs(self) -> None:
        for running in list(self.running):
            ended = running.process.has_ended()
            if self.plan.live:
                running.show()
            if ended:
                self.running.remove(running)
                self.finish(running)

    def finish(self, running: Running) -> None:
        """Prints the output of a job that has ended, or ends the run because it has failed."""
        job, log, process = running.job, running.log, running.process
        self.times.append(f"{process.took_s:5.0f} s  {job.title}, {process.cpu_s:.0f} s of a processor")
        if self.plan.live and log:
            ran = tests_run(log.read_text(errors="replace"))
            log.unlink()
            # pytest's status is 5 if a pattern selects nothing.
            if process.status in (0, 5) and not ran:
                say(f"K={job.pattern} selects no test of this suite: {job.title}\n")
                raise Failed(job, 1, None)
        if process.status:
            if log and not self.plan.live:
                say(f"\n== {job.title}: failed, and is printed once the others have ended\n")
            raise Failed(job, process.status, None if self.plan.live else log)
        if log and not self.plan.live:
            say_output(job.title, log)
            log.unlink()


def tests_run(output: str) -> int:
    """Returns the number of tests that ran, from the closing lines of the runners."""
    return sum(int(number) for found in RAN.finditer(output) for number in found.groups() if number)


def say_output(title: str, log: Path) -> None:
    """Prints the output of a job, or the end of it if it is very long."""
    say(f"\n== {title}\n")
    size = log.stat().st_size
    with log.open("rb") as file:
        if size > OUTPUT_MAX:
            say(f"The last 10 of {size // 1_000_000} MB:\n")
            file.seek(size - OUTPUT_MAX)
        data = file.read()
    say_bytes(data if not data or data.endswith(b"\n") else data + b"\n")
