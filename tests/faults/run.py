"""One run against one store: starts the workers, breaks things at a steady pace, and reports.

The seed determines the steps of a run, except for the timing of the machine. The environment sets FRAZIL_FAULTS (their number; 25),
FRAZIL_FAULT_IDS (the minimum of IDs; 1,000,000), FRAZIL_FAULT_SEED, FRAZIL_FAULT_PACE (seconds between faults; 1.7),
FRAZIL_FAULT_WINDOW and FRAZIL_FAULT_RENEW (ms; 2000 and 600), FRAZIL_FAULT_BESIDE (additional leases of each Python process; 0).
The defaults here are those of runs with leased node numbers.
"""

import collections
import dataclasses
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import frazil
import servers

from . import check, workers

# FRAZIL_FAULT_BESIDE adds leases to each Python process, so the layout then has more node numbers.
LAYOUT = f"time:41@1ms node:{8 if 'FRAZIL_FAULT_BESIDE' in os.environ else 4} sequence:12 epoch:2025-01-01"
# The time after the last fault until every worker must have minted again, even if Redis has lost its records.
RECOVERY_S = 45
STORES = ("file", *servers.ALL)
# The stores without a clock.
CLOCKLESS = ("etcd", "zookeeper")
# Errors that are not defects with a fixed number: a child may not use it, and it cannot be released.
FIXED = {"FORKED", "SPEC"}
# Errors of `observe` for an ID of a worker whose clock is ahead.
AHEAD = {"OUT_OF_RANGE"}


def setting(name, usual):
    return type(usual)(os.environ.get(f"FRAZIL_{name}", usual))


@dataclasses.dataclass
class Report:
    """The outcome of a run, which has succeeded if `problems` is empty."""

    name: str
    seed: int
    faults: collections.Counter
    events: collections.Counter
    found: check.Found
    seconds: float
    problems: list[str]

    def __str__(self):
        def counts(counter):
            return ", ".join(f"{name} {count}" for name, count in sorted(counter.items())) or "none"

        lines = [
            f"store       {self.name}, seed {self.seed}, {self.seconds:.0f} s",
            f"faults      {self.faults.total()}: {counts(self.faults)}",
            f"events      {counts(self.events)}",
            f"IDs         {self.found.total:,}",
            f"errors      {counts(self.found.errors)}",
            f"duplicates  {self.found.duplicates}",
            *(f"PROBLEM     {problem}" for problem in self.problems),
        ]
        return "\n".join(lines)


class Run:
    """The store, the workers, and the faults in progress."""

    kind = "Snowflake"
    """The class that the workers open."""
    pace = 1000, 32
    """The average number of steps between two of a worker's rare things of one kind, and the number of IDs of a step."""
    layout = frazil.Layout(LAYOUT)
    deeds = tuple(workers.DEEDS)
    """The deeds that each worker must have done in the end."""
    faults_usual, ids_usual, pace_usual = 25, 1_000_000, 1.7

    def __init__(self, name, folder, seed=None):
        self.name = self.store = name
        self.folder = folder
        self.seed = seed if seed is not None else setting("FAULT_SEED", random.SystemRandom().randrange(1 << 32))
        self.random = random.Random(self.seed)
        self.window_ms = setting("FAULT_WINDOW", 2000)
        self.faults = collections.Counter()
        self.events = collections.Counter()
        self.ends = []
        self.crew = []
        self.server = self.proxy = self.disk = None
        # Pairs of a server and the proxy in front of it. The faults break them.
        self.places = []

    def __enter__(self):
        try:
            self.start_store()
            programs = workers.build()
            for number, place in enumerate(workers.CREW):
                # A freeze does not stop the time, so the limit is longer than a freeze.
                limit_s = 30 + 3 * self.window_ms // 1000
                worker = workers.Worker(place, programs[place[1]], self.kind, self.pace, limit_s, self.spec(number), self.folder)
                self.crew.append(worker)
            for worker in self.crew:
                worker.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start_store(self):
        if self.store == "file":
            self.disk = tempfile.TemporaryDirectory(prefix="frazil-faults-")
        elif self.store in servers.ALL:
            self.server = servers.start(self.store)
            self.proxy = servers.Proxy(self.server.port)
            self.places = [(self.server, self.proxy)]
        if self.store == "frazil":
            # Two replicas. Faults break one at a time, and sometimes both.
            other = self.server.beside()
            self.places.append((other, servers.Proxy(other.port)))
            self.places[1][1].counts = self.proxy.counts

    def __exit__(self, *_):
        for stop in (self.destroy_crew, *(part.stop for server, proxy in self.places for part in (proxy, server))):
            stop()
        if self.disk:
            self.disk.cleanup()

    def destroy_crew(self):
        for worker in self.crew:
            worker.destroy()
        workers.destroy_children(self.folder)

    def spec(self, number):
        """Returns a worker's spec line. Sequences begin at 0 and every tick is used, so two owners of a number would repeat IDs."""
        common = f"layout='{self.layout}' start=zero rollback=wait:100ms"
        if self.store == "fixed":
            return f"{common} node={number}"
        return f"{common} store={self.url()} namespace=faults window={self.window_ms}ms renew={setting('FAULT_RENEW', 600)}ms"

    def url(self):
        """Returns the URL by which the workers reach the store."""
        if self.disk:
            return f"file:{self.disk.name}"
        first, *others = (server.url_at(proxy.port) for server, proxy in self.places)
        return ",".join([first, *(url.partition("://")[2] for url in others)])

    # The faults. Each returns its duration in seconds and a function that ends it, or None if it is over.

    def kill_worker(self):
        worker = self.random.choice(self.crew)
        worker.kill()
        worker.start()

    def freeze_worker(self):
        """Freezes a worker for longer than its lease lasts, so that it wakes up with a number that others may have."""
        go_on = self.random.choice(self.crew).stop()
        return self.window_ms / 1000 * self.random.uniform(1.1, 2.5), go_on

    def turn_clock(self):
        """Sets a clock an hour back or ahead, and then to the true time again."""
        worker = self.random.choice([worker for worker in self.crew if worker.has_clock])
        worker.turn_clock(self.random.choice([-1, 1]) * workers.HOUR_S)
        return self.random.uniform(0.5, 2.5), lambda: self.turn_clock_back(worker)

    def turn_clock_back(self, worker):
        """Sets a worker's clock to the true time. Restarts a worker that has minted an hour ahead, which could only continue in an hour."""
        worker.turn_clock(0)
        if self.layout is None or self.store not in CLOCKLESS:  # Numbers of a segment carry no time.
            return
        last = worker.last_minted()
        if last is not None and self.layout.decode(last).time.timestamp() > time.time() + workers.HOUR_S / 2:
            self.events["restarts of workers that had minted an hour ahead"] += 1
            worker.kill()
            worker.start()

    def restart_server(self):
        self.server.kill9()
        self.sleep(self.random.choice([0, 0, self.window_ms / 1000]))
        self.server.restart()

    def freeze_server(self):
        self.server.pause()
        return self.random.uniform(0.3, 1.5 * self.window_ms / 1000), self.server.resume

    def cut_connections(self):
        """Cuts all current connections, or the next one if there is none."""
        self.proxy.cut(or_next=True)

    def lose_answers(self):
        """Loses answers: the server executes the request, but the client gets no answer."""
        self.proxy.lose_answers(self.random.randrange(1, 7))

    def lose_requests(self):
        """Loses requests: the server does not get the request. To the client, this looks like a lost answer."""
        self.proxy.lose_requests(self.random.randrange(1, 7))

    def hold_answers(self):
        self.proxy.hold()
        return self.random.uniform(0.3, 1.5 * self.window_ms / 1000), self.proxy.release

    def refuse_connections(self):
        self.proxy.refuse()
        self.proxy.cut()
        return self.random.uniform(0.3, 1.5 * self.window_ms / 1000), self.proxy.accept

    def flush_server(self):
        self.end_all()
        self.server.flush()

    def promote_stale_replica(self):
        self.end_all()
        self.server.promote_replica(self.random.uniform(0.2, 1.2), sleep=self.sleep)

    def kinds(self):
        """Returns the faults that are possible with this store."""
        kinds = [self.kill_worker, self.freeze_worker]
        if self.store != "fixed":
            # Left out for a fixed number: after a restart with the clock set back, it may repeat IDs. That is documented.
            kinds.append(self.turn_clock)
        if self.server:
            kinds += [
                self.restart_server, self.freeze_server, self.cut_connections, self.lose_answers, self.lose_requests, self.hold_answers,
                self.refuse_connections,
            ]  # fmt: skip
        if self.store == "redis":
            kinds += [self.flush_server, self.promote_stale_replica]
        return kinds

    # The order and the ends of faults.

    def inject(self, count):
        """Injects `count` faults, equally many of each kind, at a steady pace."""
        pace = setting("FAULT_PACE", self.pace_usual)
        kinds = self.kinds()
        plan = [kinds[number % len(kinds)] for number in range(count)]
        self.random.shuffle(plan)
        due = time.monotonic()
        for fault in plan:
            due = max(due + pace * self.random.uniform(0.7, 1.3), time.monotonic())
            self.sleep(due - time.monotonic())
            if len(self.places) > 1:
                self.server, self.proxy = self.random.choice(self.places)
            end = fault()
            self.faults[fault.__name__] += 1
            if end:
                self.ends.append((time.monotonic() + end[0], end[1]))
        self.end_all()

    def sleep(self, seconds):
        """Sleeps, ends faults that are due, and fails if a worker has died by itself."""
        until = time.monotonic() + seconds
        while True:
            now = time.monotonic()
            for due in [end for end in self.ends if end[0] <= now]:
                self.ends.remove(due)
                due[1]()
            self.check_crew()
            if now >= until:
                return
            time.sleep(min(0.05, until - now))

    def end_all(self):
        """Ends all faults in progress at once."""
        for _, end in self.ends:
            end()
        self.ends = []

    def check_crew(self):
        dead = [why for worker in self.crew if (why := worker.died())]
        if dead:
            raise AssertionError("; ".join(dead))

    # From start to report.

    def begin(self):
        """Prepares the store before the first ID; a subclass may have this step."""

    def expected(self):
        """Returns the errors that are not defects in this run."""
        return check.EXPECTED | (FIXED if self.store == "fixed" else AHEAD)

    def expect_all_to_mint(self, otherwise):
        """Waits until each worker has minted again from now on."""
        before = {worker: worker.minted() for worker in self.crew}
        deadline = time.monotonic() + RECOVERY_S
        while idle := [worker.name for worker in self.crew if worker.minted() < before[worker] + 100]:
            if time.monotonic() > deadline:
                raise AssertionError("; ".join(f"{name} {otherwise}" for name in idle))
            self.sleep(0.1)

    def missing(self):
        """Returns the required events that have not happened yet. A fault only counts if it had an effect."""
        happened = {"forked children that minted": self.forked()} if self.store != "fixed" else {}
        happened |= {f"{deed} by {worker.name}": worker.done(deed) for deed in self.deeds for worker in self.crew}
        if self.proxy:
            happened |= {event: self.proxy.counts[event] for event in ("answers lost", "requests lost", "connections cut")}
        return [event for event, count in happened.items() if not count]

    def forked(self):
        return sum(worker.forked() for worker in self.crew)

    def written(self):
        return sum(path.stat().st_size // 8 for path in self.folder.glob("*.ids"))

    def go(self, faults=None, at_least=None):
        """Executes the run, and returns the report."""
        started = time.monotonic()
        faults = setting("FAULTS", self.faults_usual) if faults is None else faults
        at_least = setting("FAULT_IDS", self.ids_usual) if at_least is None else at_least
        problems = []
        try:
            self.begin()
            self.expect_all_to_mint("has not begun to mint")
            self.inject(faults)
            self.expect_all_to_mint("has minted nothing since the last fault")
            deadline = time.monotonic() + RECOVERY_S + at_least / 10_000
            while (self.written() < at_least or (faults >= self.faults_usual and self.missing())) and time.monotonic() < deadline:
                self.sleep(0.2)
        except (AssertionError, OSError, servers.Failure) as failure:
            problems.append(str(failure) or repr(failure))
        self.end_all()
        (self.folder / "stop").touch()
        problems += [why for worker in self.crew if (why := worker.leave())]
        self.destroy_crew()
        self.events["starts"] = sum(len(worker.started) for worker in self.crew)
        self.events["forked children that minted"] = self.forked()
        self.events.update({deed: sum(worker.done(deed) for worker in self.crew) for deed in self.deeds})
        self.events.update(self.proxy.counts if self.proxy else {})
        if faults >= self.faults_usual:
            problems += [f"{event}: none" for event in self.missing()]
        found = check.examine(self.folder, self.layout, self.expected())
        problems += [f"twice: {place}" for place in found.places]
        problems += found.unexpected
        if found.total < at_least:
            problems.append(f"only {found.total:,} IDs of {at_least:,}")
        if self.faults.total() < faults:
            problems.append(f"only {self.faults.total()} faults of {faults}")
        return Report(self.name, self.seed, self.faults, self.events, found, time.monotonic() - started, problems)


# A process that leases numbers from 0 on, until it is killed.
HOLDER = """
import sys
import frazil

held = [frazil.Snowflake(sys.argv[1], node=node) for node in range(int(sys.argv[2]))]
print(len(held), flush=True)
sys.stdin.read()
"""


class LargeRun(Run):
    """A run with so many node numbers that a start samples them, and most of the sampled numbers are held."""

    layout = frazil.Layout(LAYOUT.replace("node:4", "node:9"))
    held = 450

    def start_store(self):
        super().start_store()
        line = f"layout='{self.layout}' store={self.url()} namespace=faults window=10m renew=3m"
        with subprocess.Popen(
            [sys.executable, "-c", HOLDER, line, str(self.held)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as holder:
            held = holder.stdout.readline()
            # A killed holder releases nothing, so its numbers stay held for ten minutes.
            holder.kill()
        if int(held or 0) != self.held:
            raise AssertionError("the numbers could not be leased")
        self.events["numbers held by others"] = self.held


def run(name, folder, seed=None, of=Run, **amount):
    """Executes one whole run. The folder keeps what the workers have written."""
    with of(name, pathlib.Path(folder), seed) as the_run:
        return the_run.go(**amount)
