"""One run against one store: starts the workers, breaks things at a steady pace, and reports.

What a run does follows from its seed, but for what the machine does meanwhile. The environment sets FRAZIL_FAULTS (how many; 25),
FRAZIL_FAULT_IDS (at least so many IDs; 1,000,000), FRAZIL_FAULT_SEED, FRAZIL_FAULT_PACE (seconds between faults; 1.7),
FRAZIL_FAULT_WINDOW and FRAZIL_FAULT_RENEW (ms; 2000 and 600), FRAZIL_FAULT_BESIDE (leases more in each Python process; 0). The usual values
are those of node numbers that are leased.
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

# With FRAZIL_FAULT_BESIDE leases more in each Python process there are as many numbers more.
LAYOUT = f"time:41@1ms node:{8 if 'FRAZIL_FAULT_BESIDE' in os.environ else 4} sequence:12 epoch:2025-01-01"
# From the last fault on: the time until every worker must have minted again, also where Redis has lost its records.
RECOVERY_S = 45
STORES = ("file", *servers.ALL)
# The stores without a clock.
CLOCKLESS = ("etcd", "zookeeper")
# What is no defect under a fixed number: a child has no right to it, and there is nothing to release.
FIXED = {"FORKED", "SPEC"}
# What nobody may observe: an ID of a worker whose clock is ahead.
AHEAD = {"OUT_OF_RANGE"}


def setting(name, usual):
    return type(usual)(os.environ.get(f"FRAZIL_{name}", usual))


@dataclasses.dataclass
class Report:
    """The outcome of a run, which is good when `problems` is empty."""

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
    """The store, the workers, and the faults that are in the making."""

    kind = "Snowflake"
    """The line that the workers open."""
    pace = 1000, 32
    """Each of the rare things that a worker does comes about once in so many steps; and how many IDs a step takes."""
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
        # What may be broken: a server and the proxy in front of it.
        self.places = []

    def __enter__(self):
        try:
            self.start_store()
            programs = workers.build()
            for number, place in enumerate(workers.CREW):
                # A freeze does not stop the time.
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
            # Replicas: each is broken in its turn, and sometimes both.
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
        """The line that a worker opens. From sequence 0 in every tick, and in every tick: two owners of a number could not miss each other."""
        common = f"layout='{self.layout}' start=zero rollback=wait:100ms"
        if self.store == "fixed":
            return f"{common} node={number}"
        return f"{common} store={self.url()} namespace=faults window={self.window_ms}ms renew={setting('FAULT_RENEW', 600)}ms"

    def url(self):
        """The store as the workers reach it."""
        if self.disk:
            return f"file:{self.disk.name}"
        first, *others = (server.url_at(proxy.port) for server, proxy in self.places)
        return ",".join([first, *(url.partition("://")[2] for url in others)])

    # The faults. Each returns how to end it, and after how many seconds, or None when it is over.

    def kill_worker(self):
        worker = self.random.choice(self.crew)
        worker.kill()
        worker.start()

    def freeze_worker(self):
        """Freezes a worker for longer than its lease lasts: it wakes up with a number that others may have."""
        go_on = self.random.choice(self.crew).stop()
        return self.window_ms / 1000 * self.random.uniform(1.1, 2.5), go_on

    def turn_clock(self):
        """An hour back or ahead, and then to the true time again."""
        worker = self.random.choice([worker for worker in self.crew if worker.has_clock])
        worker.turn_clock(self.random.choice([-1, 1]) * workers.HOUR_S)
        return self.random.uniform(0.5, 2.5), lambda: self.turn_clock_back(worker)

    def turn_clock_back(self, worker):
        """To the true time. Who minted an hour ahead, where no store's clock and nobody alive could tell, goes on in an hour."""
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
        """Those of this instant; where nobody has one, the next."""
        self.proxy.cut(or_next=True)

    def lose_answers(self):
        """Loses answers: the request is done, and nobody learns it."""
        self.proxy.lose_answers(self.random.randrange(1, 7))

    def lose_requests(self):
        """Loses requests: the request is not done, which looks the same."""
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
        self.server.promote_replica(self.random.uniform(0.2, 1.2), meanwhile=self.sleep)

    def kinds(self):
        """The faults that are possible here."""
        kinds = [self.kill_worker, self.freeze_worker]
        if self.store != "fixed":
            # A fixed number that is opened again while the clock is back may repeat, as is known.
            kinds.append(self.turn_clock)
        if self.server:
            kinds += [
                self.restart_server, self.freeze_server, self.cut_connections, self.lose_answers, self.lose_requests, self.hold_answers,
                self.refuse_connections,
            ]  # fmt: skip
        if self.store == "redis":
            kinds += [self.flush_server, self.promote_stale_replica]
        return kinds

    # Their order and their ends.

    def inject(self, count):
        """So many faults, every kind as often as any other, at a steady pace whatever each of them takes."""
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
        """Sleeps, and ends meanwhile what is to end; no worker may die by itself."""
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
        """Ends at once all that is in the making."""
        for _, end in self.ends:
            end()
        self.ends = []

    def check_crew(self):
        dead = [why for worker in self.crew if (why := worker.died())]
        if dead:
            raise AssertionError("; ".join(dead))

    # From start to report.

    def begin(self):
        """The step before the first ID."""

    def expected(self):
        """The errors that belong."""
        return check.EXPECTED | (FIXED if self.store == "fixed" else AHEAD)

    def expect_all_to_mint(self, otherwise):
        """Waits until each worker has minted from now on."""
        before = {worker: worker.minted() for worker in self.crew}
        deadline = time.monotonic() + RECOVERY_S
        while idle := [worker.name for worker in self.crew if worker.minted() < before[worker] + 100]:
            if time.monotonic() > deadline:
                raise AssertionError("; ".join(f"{name} {otherwise}" for name in idle))
            self.sleep(0.1)

    def missing(self):
        """The events that have not happened yet: a fault that nobody has felt is none."""
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
        """Everything, and then the report."""
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
    """So many numbers that a start draws some of them, most of which are held."""

    layout = frazil.Layout(LAYOUT.replace("node:4", "node:9"))
    held = 450

    def start_store(self):
        super().start_store()
        line = f"layout='{self.layout}' store={self.url()} namespace=faults window=10m renew=3m"
        with subprocess.Popen(
            [sys.executable, "-c", HOLDER, line, str(self.held)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as holder:
            held = holder.stdout.readline()
            # It gives nothing back: its bounds lie ahead for ten minutes.
            holder.kill()
        if int(held or 0) != self.held:
            raise AssertionError("the numbers could not be leased")
        self.events["numbers held by others"] = self.held


def run(name, folder, seed=None, of=Run, **amount):
    """One whole run; the folder keeps what the workers have written."""
    with of(name, pathlib.Path(folder), seed) as the_run:
        return the_run.go(**amount)
