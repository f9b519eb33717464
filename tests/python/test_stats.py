"""Statistics, and events in the log."""

import json
import os
import signal
import subprocess
import sys
import threading
from datetime import datetime

import frazil


def run(program, **more):
    """Runs a program in a new process; returns its output."""
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=120, env=os.environ | more)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


def test_issued_ids_are_counted():
    ids = frazil.Snowflake("standard", store="memory", namespace="py-counted")
    ids.next(), ids(), next(ids), ids.batch(97)
    threads = [threading.Thread(target=lambda: [ids.next() for _ in range(2_000)]) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    stats = ids.stats()
    assert (stats.kind, stats.spec, stats.issued, stats.refused) == ("snowflake", ids.spec, 8_100, 0)
    assert (stats.lease_node, stats.leases_lost, stats.range_left) == (ids.node, 0, None)
    assert 0 < stats.lease_seconds_left < 100 and stats.lease_failing_seconds == 0
    assert next(shown for shown in frazil.stats() if shown.spec == ids.spec).issued == 8_100


def test_a_segment_is_counted():
    orders = frazil.Segment("py-orders", store="memory", step=100)
    orders.batch(30)
    stats = orders.stats()
    assert (stats.kind, stats.issued, stats.range_left, stats.lease_node) == ("segment", 30, 70, None)
    assert stats.as_dict()["range_left"] == 70 and "lease_node" not in stats.as_dict()
    assert repr(stats).startswith('Stats(kind="segment", spec=') and "issued=30" in repr(stats)


def test_the_table_names_every_value():
    stats = frazil.Snowflake("standard", store="memory", namespace="py-table").stats()
    for metric in frazil.METRICS:
        assert hasattr(stats, metric.field) and metric.prometheus.startswith("frazil_") and metric.help
    shown = {name for name in dir(stats) if not name.startswith("_")} - {"as_dict", "kind", "spec"}
    assert shown == {metric.field for metric in frazil.METRICS}


EVENTS = """
import logging, sys, time, frazil
records = []
class Handler(logging.Handler):
    def emit(self, record):
        records.append(record)
        # A handler may call frazil.
        frazil.stats()
log = logging.getLogger("frazil")
log.addHandler(Handler())
log.setLevel(logging.INFO)
log.propagate = False
def until(name, count=1):
    end = time.monotonic() + 60
    while True:
        found = [record for record in records if record.event == name]
        if len(found) >= count:
            return found
        assert time.monotonic() < end, [record.event for record in records]
        time.sleep(0.01)
"""


def test_events_are_records_of_the_log():
    program = (
        EVENTS
        + """
ids = frazil.Snowflake("standard", store="memory", namespace="records")
[taken] = until("lease.taken")
print(taken.levelname, taken.name, taken.fields["namespace"], taken.fields["node"] == str(ids.node), "is leased" in taken.getMessage())
manual = frazil.Snowflake("standard", node=1, clock="manual", rollback="error", detached="true")
import datetime
at = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
manual.set_time(at)
manual.next()
manual.set_time(at - datetime.timedelta(seconds=3))
for _ in range(5):
    try:
        manual.next()
    except frazil.errors.ClockBackError:
        pass
[back] = until("clock.rollback")
print(back.levelname, back.fields)
manual.set_time(datetime.datetime(2094, 1, 1, tzinfo=datetime.UTC))
manual.next()
[ending] = until("layout.ending")
print(ending.levelname, ending.fields["ends"])
print(manual.stats().rollbacks, manual.stats().largest_rollback_seconds, manual.stats().refused)
"""
    )
    assert run(program)[0] == [
        "INFO frazil records True True",
        "WARNING {'node': '1', 'back_ms': '3000', 'rollback': 'error'}",
        "WARNING 2094-09-07T15:47:35.552Z",
        "1 3.0 5",
    ]


def test_a_silent_store_is_logged_and_its_return_too(tmp_path):
    program = (
        EVENTS
        + f"""
import fcntl, pathlib
ids = frazil.Snowflake("standard", store="file:{tmp_path / "store"}", window="5s", renew="100ms")
ids.next()
held = [open(lock) for lock in pathlib.Path({str(tmp_path)!r}).rglob("*.lock")]
assert held
for lock in held:
    fcntl.flock(lock, fcntl.LOCK_EX)
[failing] = until("lease.failing")
print(failing.levelname, failing.fields["code"], "error" in failing.fields, "since" in failing.fields)
end = time.monotonic() + 60
while ids.stats().lease_failing_seconds == 0:
    assert time.monotonic() < end
    time.sleep(0.01)
print(ids.stats().lease_failures > 0)
for lock in held:
    lock.close()
[recovered] = until("lease.recovered")
print(recovered.levelname, recovered.fields["since"] == failing.fields["since"], ids.stats().leases_lost)
"""
    )
    assert run(program)[0] == ["WARNING STORE_UNREACHABLE True True", "True", "INFO True 0"]


def test_a_replaced_store_is_logged(tmp_path):
    program = (
        EVENTS
        + f"""
import os
folder = {str(tmp_path / "store")!r}
ids = frazil.Snowflake("standard", store="file:" + folder, window="5s", renew="100ms")
ids.next()
os.rename(folder, folder + ".away")
print(until("store.changed")[0].levelname)
"""
    )
    assert run(program)[0] == ["WARNING"]


def test_a_child_counts_and_logs_its_own_events(tmp_path):
    program = (
        EVENTS
        + f"""
import os
ids = frazil.Snowflake("standard", store="file:{tmp_path / "store"}")
ids.batch(10)
until("lease.taken")
child = os.fork()
if child == 0:
    before = ids.stats().issued, ids.stats().lease_node, frazil.stats()
    records.clear()
    ids.batch(7)
    [taken] = until("lease.taken")
    ok = before == (0, None, []) and ids.stats().issued == 7 and taken.fields["node"] == str(ids.node)
    os._exit(0 if ok else 1)
print(os.waitpid(child, 0)[1], ids.stats().issued)
"""
    )
    assert run(program)[0] == ["0 10"]


def test_the_interpreter_ends_while_events_come():
    program = """
import logging, threading, datetime, frazil
logging.getLogger("frazil").addHandler(logging.NullHandler())
logging.getLogger("frazil").setLevel(logging.INFO)
def work(n):
    try:
        while True:
            frazil.Snowflake("standard", store="memory", namespace=f"ends-{n}").next()
    except frazil.FrazilError:
        pass  # the interpreter's end has closed it
for n in range(3):
    threading.Thread(target=work, args=(n,), daemon=True).start()
threading.Event().wait(0.2)
"""
    for _ in range(3):
        assert run(program)[1] == ""


def test_a_number_taken_by_another_process_is_logged(tmp_path):
    terms = {"store": f"file:{tmp_path / 'store'}", "window": "1s", "renew": "100ms", "rollback": "error"}
    program = (
        EVENTS
        + f"""
ids = frazil.Snowflake("standard", **{terms!r})
first = ids.next()
print(ids.node, flush=True)
[lost] = until("lease.lost")
print(lost.levelname, lost.fields["node"], lost.fields["namespace"], flush=True)
assert ids.next() > first
print(ids.node, ids.stats().leases_lost, len(until("lease.taken", 2)))
"""
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as paused:
        node = int(paused.stdout.readline())
        # The process stops past its bound, as on a machine that sleeps.
        paused.send_signal(signal.SIGSTOP)
        try:
            with frazil.Snowflake("standard", node=node, **terms) as ids:
                theirs = ids.next()
                paused.send_signal(signal.SIGCONT)
                assert paused.stdout.readline().split() == ["WARNING", str(node), "default"]
                another, lost, taken = map(int, paused.stdout.read().split())
                assert another != node and (lost, taken) == (1, 2) and ids.next() > theirs
        finally:
            paused.kill()


def test_a_number_whose_record_was_removed_is_no_longer_used(tmp_path):
    store = tmp_path / "store"
    terms = {"store": f"file:{store}", "window": "20s", "renew": "200ms", "node": 1}
    program = (
        EVENTS
        + f"""
ids = frazil.Snowflake("standard", **{terms!r})
print(ids.next(), flush=True)
last = None
try:
    while True:
        last = ids.next()
except frazil.FrazilError as error:
    print(type(error).__name__)
[lost] = until("lease.lost")
print(lost.levelname, *(lost.fields[name] for name in ("node", "token", "other_token", "other_holder", "from", "to")))
print("IDs of " in lost.getMessage() and "may have been issued twice" in lost.getMessage())
print(last)
"""
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout.readline()
            (store / "default/1").unlink()
            with frazil.Snowflake("standard", **terms) as ids:
                ids.next()
                code, lost, says, last = holder.stdout.read().splitlines()
        finally:
            holder.kill()
    level, node, token, other_token, other_holder, first, to = lost.split()
    assert (code, level, node, says) == ("LeaseExhaustedError", "ERROR", "1", "True")
    assert token != other_token and str(os.getpid()) in other_holder
    issued = frazil.Layout("standard").decode(int(last)).time
    assert datetime.fromisoformat(first) <= issued <= datetime.fromisoformat(to)
    command = [sys.executable, "-m", "frazil", "doctor", "standard", f"store=file:{store}", "--json"]
    findings = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    [found] = [finding for finding in findings if finding["area"] == "twice"]
    assert found["level"] == "warn" and all(part in found["text"] for part in (first, to, str(holder.pid), str(os.getpid()))), found


def test_a_number_whose_record_is_corrupt_is_no_longer_used(tmp_path):
    program = (
        EVENTS
        + f"""
from pathlib import Path
ids = frazil.Snowflake("standard", store="file:{tmp_path}", window="20s", renew="200ms", node=1)
Path("{tmp_path}/default/1").write_bytes(b"\\xff" * 8192)
try:
    while True:
        ids.next()
except frazil.errors.LeaseExhaustedError:
    [lost] = until("lease.lost")
    print(lost.levelname, "may have been issued twice" in lost.getMessage())
"""
    )
    assert (
        subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout == "ERROR True\n"
    )


def test_a_child_may_log_what_its_parent_was_just_writing():
    program = """
import io, logging, os, signal, threading, frazil
writing, forking = threading.Event(), threading.Event()
class Slow(io.RawIOBase):
    def writable(self):
        return True
    def write(self, data):
        if threading.current_thread() is not threading.main_thread():
            writing.set()
            forking.wait()
        return len(data)
logging.basicConfig(level=logging.INFO, stream=io.TextIOWrapper(io.BufferedWriter(Slow())))
ids = frazil.Snowflake("standard", store="memory", namespace="forks")
assert writing.wait(60)
# It runs first, as it is registered last.
os.register_at_fork(before=forking.set)
child = os.fork()
if child == 0:
    signal.alarm(20)
    logging.getLogger("frazil").warning("what the child has to say")
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""
    assert run(program)[0] == ["0"]


def test_ctrl_c_while_a_start_is_logged_ends_it(tmp_path):
    program = f"""
import logging, os, signal, frazil
terms = dict(node=3, store="file:{tmp_path / "store"}", window="60s", renew="1s", rollback="error")
child = os.fork()
if child == 0:
    held = frazil.Snowflake("standard", **terms)
    os._exit(0)
os.waitpid(child, 0)
class Interrupted(logging.Handler):
    def emit(self, record):
        if record.event == "lease.waiting":
            signal.raise_signal(signal.SIGINT)
logging.getLogger("frazil").addHandler(Interrupted())
try:
    frazil.Snowflake("standard", **terms)
except KeyboardInterrupt:
    print("interrupted")
"""
    assert run(program) == (["interrupted"], "")


def test_a_log_handler_may_outlast_the_interpreter():
    program = """
import logging, sys, threading, time, types, frazil
begun, ending = threading.Event(), threading.Event()
class Slow(logging.Filter):
    # The log waits for a handler's own lock.
    def filter(self, record):
        begun.set()
        ending.wait()
        return True
logging.getLogger("frazil").addFilter(Slow())
logging.getLogger("frazil").setLevel(logging.INFO)
ids = frazil.Snowflake("standard", store="memory", namespace="slow")
assert begun.wait(60)
class Late:
    def __del__(self, ending=ending, sleep=time.sleep):
        print("late", flush=True)
        ending.set()
        sleep(0.5)
sys.modules["late"] = types.ModuleType("late")
sys.modules["late"].late = Late()
"""
    assert run(program) == (["late"], "")
