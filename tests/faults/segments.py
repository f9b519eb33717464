"""Runs of segments: plain numbers of one tag, which all workers take from one store.

A name contains the store, and another system's table if there is one: segments:redis, segments:postgresql:leaf. The environment
variables are those of run.py; the defaults are 12 faults at a pace of 0.8 s, and 3,000,000 numbers.
"""

import subprocess
import sys
import time

import numpy
import servers

from . import check
from .run import RECOVERY_S, STORES, Run

TAG = "orders"
SEGMENTS = tuple(f"segments:{store}" for store in STORES)
TABLES = ("segments:postgresql:leaf", "segments:mariadb:tinyid", "segments:mariadb:leaf", "segments:postgresql:tinyid")
# More numbers than all processes together can have taken from the store without writing them down.
DISTANCE = 1_000_000_000
# The systems' own statements, in the SQL that both servers know, and the row that begins a tag.
LEAF = """
    CREATE TABLE leaf_alloc (
        biz_tag varchar(128) NOT NULL DEFAULT '' PRIMARY KEY, max_id bigint NOT NULL DEFAULT 1, step int NOT NULL,
        description varchar(256) DEFAULT NULL, update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP
    )
"""
LEAF_ROW = f"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('{TAG}', 1, 1000)"
TINYID = """
    CREATE TABLE tiny_id_info (
        id bigint NOT NULL PRIMARY KEY, biz_type varchar(63) NOT NULL DEFAULT '' UNIQUE, begin_id bigint NOT NULL DEFAULT 0,
        max_id bigint NOT NULL DEFAULT 0, step int DEFAULT 0, delta int NOT NULL DEFAULT 1, remainder int NOT NULL DEFAULT 0,
        create_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', update_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00',
        version bigint NOT NULL DEFAULT 0
    )
"""
TINYID_ROW = f"INSERT INTO tiny_id_info (id, biz_type, begin_id, max_id, step, delta, remainder) VALUES (1, '{TAG}', 1, 1, 1000, 2, 1)"
STATEMENTS = {"leaf": (LEAF, LEAF_ROW), "tinyid": (TINYID, TINYID_ROW)}


class SegmentRun(Run):
    """Workers that take numbers of one tag."""

    kind = "Segment"
    # Workers fetch a range from the store only now and then, but at every open and after every fork.
    pace = 400, 256
    layout = None
    deeds = ("late openers that waited", "late openers that polled")
    faults_usual, ids_usual, pace_usual = 12, 3_000_000, 0.8

    def __init__(self, name, folder, seed=None):
        super().__init__(name, folder, seed)
        self.store, self.table = [*name.split(":")[1:], None][:2]
        self.start = 0

    def spec(self, number):
        place = f"table={self.table}" if self.table else "namespace=faults"
        return f"{TAG} store={self.url()} {place} wait=1s"

    def expected(self):
        changed = {"STORE_CHANGED"} if self.store == "redis" else set()
        return {"STORE_UNREACHABLE", "SEGMENT_EXHAUSTED", "WOULD_BLOCK"} | changed | ({"TAG_MISSING"} if self.needs_begin else set())

    @property
    def needs_begin(self):
        """True if a segment must be begun before any worker gets a number."""
        return self.table or self.store == "redis"

    def start_store(self):
        super().start_store()
        if self.table:
            self.server.sql(STATEMENTS[self.table][0])

    def begin(self):
        """Waits until every language has reported the missing tag, and then begins it."""
        if not self.needs_begin:
            return
        deadline = time.monotonic() + RECOVERY_S
        while silent := [worker.name for worker in self.crew if "TAG_MISSING " not in worker.log_text()]:
            if time.monotonic() > deadline:
                raise AssertionError("; ".join(f"{name} does not say TAG_MISSING" for name in silent))
            self.sleep(0.1)
        if self.table:
            self.server.sql(STATEMENTS[self.table][1])
        else:
            self.begin_tag()

    def missing(self):
        """Requires that a worker has reported STORE_CHANGED if the store is Redis."""
        reported = self.store != "redis" or any("STORE_CHANGED " in log.read_text(errors="replace") for log in self.folder.glob("*.log"))
        return super().missing() + ([] if reported else ["STORE_CHANGED"])

    # After each of these faults, Redis is another server or has lost the tag. No worker continues until the operator begins the tag again.

    def restart_server(self):
        super().restart_server()
        return self.call_operator()

    def flush_server(self):
        super().flush_server()
        return self.call_operator()

    def promote_stale_replica(self):
        super().promote_stale_replica()
        # A worker that starts now has seen no numbers yet, and can only trust the record.
        for _ in range(2):
            self.kill_worker()
        return self.call_operator()

    def call_operator(self):
        """Returns the operator's delay and action. For some workers, the delay is longer than their prefetched numbers last."""
        return (self.random.uniform(0.3, 1.2), self.begin_tag) if self.store == "redis" else None

    def begin_tag(self):
        """Begins the tag, as the operator would, far above every number that was written down."""
        if not self.server.runs():
            # The server is being restarted. The restart calls this again.
            return
        self.server.resume()
        written = [check.read(path) for path in self.folder.glob("*.ids")]
        highest = max((int(numpy.max(numbers)) for numbers in written if len(numbers)), default=0)
        self.start = max(highest, self.start) + DISTANCE
        command = [sys.executable, "-m", "frazil", "segment", self.server.url, TAG, "--namespace=faults", f"--start={self.start}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        if done.returncode:
            raise servers.Failure(f"the operator was refused: {done.stderr}")
        self.events["operator's words"] += 1
