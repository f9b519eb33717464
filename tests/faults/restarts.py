"""A Redis that loses writes while processes mint: restarts without persistence, and a fail-over with a way back.

docs/stores.md, "What each store promises", describes the consequences.
"""

import time
from datetime import UTC, datetime, timedelta

import frazil
import numpy
import servers

from . import check
from .run import LAYOUT, Run

# The time limit for events without a call, on a busy machine.
TIMEOUT_S = 90


class SteadyRun(Run):
    """Six processes that never close, fork or release their numbers, and get no errors."""

    # The workers do not do any of the rare things.
    pace = 1 << 30, 32
    deeds = ()
    window_s, renew_s = 20, 3

    def __init__(self, name, folder, seed=None):
        super().__init__(name, folder, seed)
        self.window_ms = self.window_s * 1000

    def spec(self, number):
        lease = f"window={self.window_s}s renew={self.renew_s}s"
        return f"layout='{self.layout}' start=zero rollback=wait:100ms store={self.url()} namespace=faults {lease}"

    def expected(self):
        return frozenset()

    def missing(self):
        return []

    def inject(self, count):
        self.break_store()
        self.faults[self.fault] += count
        self.events["longest pause of a worker, ms"] = max(map(self.longest_pause_ms, self.crew))

    def expect(self, holds, otherwise):
        deadline = time.monotonic() + TIMEOUT_S
        while not holds():
            if time.monotonic() > deadline:
                raise AssertionError(otherwise)
            self.sleep(0.02)

    def expect_ids_beyond_a_window(self):
        """Waits until all workers have IDs beyond the bounds that the store had confirmed before now."""
        bound = datetime.now(UTC) + timedelta(seconds=self.window_s + 1)
        self.expect(lambda: all(self.newest(worker) > bound for worker in self.crew), f"not all workers have IDs beyond {bound}")

    def newest(self, worker):
        """Returns the time of the last ID."""
        minted = worker.minted()
        last = numpy.fromfile(self.file(worker), dtype="<i8", count=1, offset=8 * (minted - 1)) if minted else [0]
        return self.layout.decode(int(last[0])).time

    def longest_pause_ms(self, worker):
        """Returns the longest time between two stamps. Each worker mints every few ms."""
        below_time = (self.layout.nodes - 1).bit_length() + self.layout.sequence_bits
        return int(numpy.max(numpy.diff(check.read(self.file(worker)) >> below_time)))

    def file(self, worker):
        return self.folder / f"{worker.name}.{worker.running.pid}.ids"


class RestartRun(SteadyRun):
    """A Redis without persistence is killed and started again, three times."""

    fault = "restart without the records"

    def break_store(self):
        # The second restart comes as soon as two workers are back, whatever the others have written by then.
        for back in (2, len(self.crew), len(self.crew)):
            self.forget(back)
        self.expect_ids_beyond_a_window()

    def forget(self, back):
        """Wipes the store, and waits until `back` workers have connected again."""
        before = self.proxy.counts["connections"]
        self.server.wipe()
        self.expect(lambda: self.proxy.counts["connections"] >= before + back, f"{back} workers do not come back")


class FailoverRun(SteadyRun):
    """A replica is promoted and written to. Then the clients return to the old primary, which was not demoted."""

    fault = "fail-over, and back"
    # With few numbers, a starting process would soon take a number that is held.
    layout = frazil.Layout(LAYOUT.replace("node:4", "node:3"))
    window_s, renew_s = 10, 2
    replica = None

    def start_store(self):
        super().start_store()
        # Before the first lease, because a primary's identity changes with its first replica.
        self.replica = servers.start("redis")
        self.replica.call("REPLICAOF", "127.0.0.1", self.server.port)
        self.expect(lambda: self.server.in_step(self.replica.port), "the replica does not follow")

    def break_store(self):
        self.replica.call("REPLICAOF", "NO", "ONE")
        self.send_clients_to(self.replica)
        # Afterwards, the old primary's data is older than a window.
        self.expect_ids_beyond_a_window()
        known = self.meta()
        self.send_clients_to(self.server)
        # A process that starts before this cannot notice.
        self.expect(lambda: self.meta() != known, "no holder notices that the old primary is back")
        for worker in self.crew[::2]:
            worker.kill()
            worker.start()
        self.expect_ids_beyond_a_window()

    def send_clients_to(self, server):
        self.proxy.target = server.port
        self.proxy.cut()

    def meta(self):
        """Returns the record of the store's incarnation on the old primary."""
        return self.server.call("GET", "frazil:{faults}:meta")

    def __exit__(self, *exception):
        super().__exit__(*exception)
        if self.replica:
            self.replica.stop()
