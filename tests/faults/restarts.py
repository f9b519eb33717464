"""Redis may forget writes under processes that only mint: restarts without persistence, and a fail-over with a way back.

docs/stores.md, "What each store promises", says what each of them costs, and whom.
"""

import time
from datetime import UTC, datetime, timedelta

import frazil
import numpy
import servers

from . import check
from .run import LAYOUT, Run

# On a busy machine, for whatever comes by itself.
TIMEOUT_S = 90


class SteadyRun(Run):
    """Six processes that neither close, fork nor give their numbers back, each with errors of no kind."""

    # Nothing that a worker does rarely comes about.
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
        """The time until which IDs may come from what the store had confirmed before now."""
        bound = datetime.now(UTC) + timedelta(seconds=self.window_s + 1)
        self.expect(lambda: all(self.newest(worker) > bound for worker in self.crew), f"not all workers have IDs beyond {bound}")

    def newest(self, worker):
        """The time of the last ID."""
        minted = worker.minted()
        last = numpy.fromfile(self.file(worker), dtype="<i8", count=1, offset=8 * (minted - 1)) if minted else [0]
        return self.layout.decode(int(last[0])).time

    def longest_pause_ms(self, worker):
        """Between two stamps: each worker mints every few ms."""
        below_time = (self.layout.nodes - 1).bit_length() + self.layout.sequence_bits
        return int(numpy.max(numpy.diff(check.read(self.file(worker)) >> below_time)))

    def file(self, worker):
        return self.folder / f"{worker.name}.{worker.running.pid}.ids"


class RestartRun(SteadyRun):
    """A Redis without persistence is killed and started again, three times."""

    fault = "restart without the records"

    def break_store(self):
        # The second comes as soon as two are back, whatever the others have written by then.
        for back in (2, len(self.crew), len(self.crew)):
            self.forget(back)
        self.expect_ids_beyond_a_window()

    def forget(self, back):
        """Waits until that many workers have come back."""
        before = self.proxy.counts["connections"]
        self.server.wipe()
        self.expect(lambda: self.proxy.counts["connections"] >= before + back, f"{back} workers do not come back")


class FailoverRun(SteadyRun):
    """Its replica is promoted and written to; then the clients are sent back to the old primary, which nobody has demoted."""

    fault = "fail-over, and back"
    # Few numbers: whoever starts would soon take one that is held.
    layout = frazil.Layout(LAYOUT.replace("node:4", "node:3"))
    window_s, renew_s = 10, 2
    replica = None

    def start_store(self):
        super().start_store()
        # Before there is a lease: a primary's identity changes with its first replica.
        self.replica = servers.start("redis")
        self.replica.call("REPLICAOF", "127.0.0.1", self.server.port)
        self.expect(lambda: self.server.in_step(self.replica.port), "the replica does not follow")

    def break_store(self):
        self.replica.call("REPLICAOF", "NO", "ONE")
        self.send_clients_to(self.replica)
        # What the old primary knows lies in the past then.
        self.expect_ids_beyond_a_window()
        known = self.meta()
        self.send_clients_to(self.server)
        # Who starts before cannot know.
        self.expect(lambda: self.meta() != known, "no holder notices that the old primary is back")
        for worker in self.crew[::2]:
            worker.kill()
            worker.start()
        self.expect_ids_beyond_a_window()

    def send_clients_to(self, server):
        self.proxy.target = server.port
        self.proxy.cut()

    def meta(self):
        """The record of the store's incarnation on the old primary."""
        return self.server.call("GET", "frazil:{faults}:meta")

    def __exit__(self, *exception):
        super().__exit__(*exception)
        if self.replica:
            self.replica.stop()
