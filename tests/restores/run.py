"""One restore. One holder took its number before the backup, another after it. Later, two other processes want the same numbers."""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import frazil
import numpy
from servers import process

from .methods import Sees

HERE = pathlib.Path(__file__).resolve().parent
LAYOUT = frazil.Layout("time:41@1ms node:4 sequence:12 epoch:2025-01-01")
WINDOW_S = 16.0
# Of the table in docs/guarantees.md; on a busy machine a call needs more than 480 ms.
RENEW_S, BUSY_RENEW_S = 0.6, 1.5
# The time that a busy machine may need for immediate steps.
SLACK_S = 60
NODE = 3
# A renewal with its call takes 2.7 s at most. On a busy machine, the store may miss the call's limit for several
# renewals. This limit ends well before the bound.
LATEST_S = 11
# The least time that a holder runs after it has noticed, and the tolerance between the times of its IDs and of its log.
RUNS_ON_S, SKEW_S = 1.7, 0.1


def spec(url, namespace, node, renew_s):
    # Sequences begin at 0 in every tick, so two owners of a number repeat IDs.
    common = f"layout='{LAYOUT}' start=zero rollback=wait:100ms node={node}"
    return f"{common} store={url} namespace={namespace} window={WINDOW_S * 1000:.0f}ms renew={renew_s * 1000:.0f}ms"


class Worker:
    """A process that mints under one number."""

    def __init__(self, name, line, folder):
        self.file = folder / name
        command = [sys.executable, HERE / "worker.py", line, self.file]
        self.running = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, text=True)
        self.expect("ready")

    def log(self):
        path = self.file.with_name(f"{self.file.name}.log")
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def expect(self, what):
        if not process.await_true(lambda: any(noted == what for _, noted, _ in self.log()), SLACK_S):
            raise AssertionError(f"{self.file.name}: no {what} in {SLACK_S} s, but {self.log()}")

    def go(self):
        self.running.stdin.write("go\n")
        self.running.stdin.flush()

    def ids(self):
        path = self.file.with_name(f"{self.file.name}.ids")
        return numpy.frombuffer(path.read_bytes()[: path.stat().st_size // 8 * 8], dtype="<i8")

    def end(self):
        """Kills the process, because it may wait for a number for long. Its IDs are already written down."""
        self.running.kill()
        self.running.wait(SLACK_S)
        self.running.stdin.close()


@dataclasses.dataclass
class Outcome:
    """The outcome for one holder."""

    noticed: str
    """The event by which the holder noticed: `store.changed`, `lease.lost`, or nothing."""
    after_s: float
    """The time from the end of the restore to the event; 0 if the holder noticed earlier."""
    repeated: int
    span_s: float
    """From the first repeated ID to the last one, by their time."""
    late_s: float
    """From the event to the last repeated ID, which should lie before it."""
    taken: bool
    """Another process took the number while the holder used it."""
    holder_mints: bool
    """The holder has IDs in the end, and had some after it noticed."""
    said: list

    def __str__(self):
        when = f"{self.noticed} after {self.after_s:.2f} s" if self.noticed else "nothing"
        end = "continues" if self.holder_mints else "stopped"
        taken = "taken" if self.taken else "not taken"
        return f"{when}, {end}; {taken}; {self.repeated} IDs repeat, within {self.span_s:.2f} s"


NOTICES = ("store.changed", "lease.lost")


def notices(holder, begun):
    return [(at, what) for at, what, _ in holder.log() if at >= begun and what in NOTICES]


def judge(holder, other, begun, since):
    """Judges a number by the logs of its holder and of a process that wants it. The restore lasted from `begun` to `since`."""
    notes = notices(holder, begun)
    at, what = notes[0] if notes else (since, "")
    both = numpy.intersect1d(numpy.unique(holder.ids()), numpy.unique(other.ids()))
    first, last = (LAYOUT.decode(int(both[end])).time.timestamp() if len(both) else at for end in (0, -1))
    state = [what for _, what, _ in holder.log() if what == "mints" or what.isupper()]
    # A call that still waits has not reported an error yet.
    mints = state[-1] == "mints" and LAYOUT.decode(int(holder.ids()[-1])).time.timestamp() > at + SKEW_S
    said = [holder.log(), other.log()]
    return Outcome(what, max(at - since, 0), len(both), last - first, last - at, len(other.ids()) > 0, mints, said)


def begin(url, namespace, renew_s):
    """Begins a namespace, so that the backup has it."""
    if url.startswith("redis"):
        # Without this command, the first start waits.
        command = [pathlib.Path(sys.executable).with_name("frazil"), "nodes", url, "--namespace", namespace, "--begin"]
        subprocess.run([*command, f"layout='{LAYOUT}' window={WINDOW_S * 1000:.0f}ms"], check=True, capture_output=True)
    with frazil.Snowflake(spec(url, namespace, 0, renew_s), detached=True) as ids:
        ids.next()


def run(cell, renew_s=RENEW_S):
    """Returns the outcomes for a number that was taken after the backup, and for one whose bound in the backup has passed."""
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"frazil-restores-{os.getpid()}-")))
        store = stack.enter_context(cell.store(folder))
        crew = []

        def start(name, namespace):
            worker = Worker(name, spec(store.url, namespace, NODE, renew_s), folder)
            stack.callback(worker.end)
            crew.append(worker)
            return worker

        for namespace in ("later", "earlier"):
            begin(store.url, namespace, renew_s)
        later, earlier = start("later", "later"), start("earlier", "earlier")
        others = [start("other-later", "later"), start("other-earlier", "earlier")]
        earlier.go()
        earlier.expect("mints")
        saved = cell.save(store)
        later.go()
        later.expect("mints")
        # Waits until the bound in the backup has passed.
        time.sleep(WINDOW_S + 0.3)
        begun = time.time()
        cell.restore(store, saved)
        since = time.time()
        for other in others:
            other.go()
        # The other processes, and holders that notice nothing, have time for several calls.
        time.sleep(4 * renew_s + 0.4)
        for holder, sees in ((later, cell.later), (earlier, cell.earlier)):
            if sees is Sees.HOLDER or (sees is Sees.EVERYBODY and cell.clock):
                process.await_true(lambda holder=holder: notices(holder, begun), max(since + LATEST_S - time.time(), 0))
            for at, _ in notices(holder, begun)[:1]:
                time.sleep(max(at + RUNS_ON_S - time.time(), 0))
        for worker in crew:
            worker.end()
        return judge(later, others[0], begun, since), judge(earlier, others[1], begun, since)
