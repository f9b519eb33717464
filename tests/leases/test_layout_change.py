"""A change of the layout under processes that mint: `frazil nodes STORE --change-layout`.

Ten processes of each layout, with clocks that are up to a second wrong, are killed, paused and started again around the moment. No ID may
repeat, and every ID of the new layout must be above every one of the old layout. FRAZIL_LAYOUT_ROUNDS sets the number of changes, there and
back (1), FRAZIL_LAYOUT_BATCH the IDs of one call (100).
"""

import contextlib
import datetime
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import frazil
import numpy
import pytest

ROUNDS = int(os.environ.get("FRAZIL_LAYOUT_ROUNDS", "1"))
BATCH = int(os.environ.get("FRAZIL_LAYOUT_BATCH", "100"))
PROCESSES = 10
FRAZIL = pathlib.Path(sys.executable).with_name("frazil")
OLD = "time:41@1ms node:10 sequence:12 epoch:2025-01-01"
# As large as the old one, so that one tick too many of either would repeat IDs.
NEW = "time:41@1ms node:8 sequence:14 epoch:2025-01-01"
LEASE = "window=4s renew=1s exhausted=wait rollback=wait:5s start=zero"
# Mints until its layout is over. Each line has the true time, the first ID of a call and their number.
WORKER = """
import frazil, numpy, select, sys, time
spec, out, batch, until = sys.argv[1], open(sys.argv[2], "ab", buffering=0), int(sys.argv[3]), float(sys.argv[4])
ids = None
while time.monotonic() < until:
    try:
        ids = ids or frazil.Snowflake(spec, timeout=20)
        minted = ids.array(batch, timeout=2)
        now = time.monotonic()
        numpy.concatenate([[int(now * 1e6)], minted]).astype("int64").tofile(out)
    except frazil.errors.LayoutMismatchError as error:
        print(error, flush=True)
        sys.exit(7)
    except frazil.FrazilError as error:
        # A busy machine may be slow to connect before the first ID. Later, the lease outlasts that.
        is_slow = ids is None and isinstance(error, frazil.errors.StoreUnreachableError)
        if not is_slow and not isinstance(error, (frazil.errors.LeaseExhaustedError, frazil.errors.WouldBlockError, frazil.errors.ClockBackError)):
            raise
        print(error, file=sys.stderr, flush=True)
    select.select([], [], [], 0.002)  # libfaketime breaks time.sleep
"""


def frazil_nodes(url, namespace, *options, status=0):
    command = [FRAZIL, "nodes", url, "--namespace", namespace, *options]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == status, (ran.stdout, ran.stderr)
    return ran.stdout if status == 0 else ran.stderr


def moment(url, namespace):
    """Returns the instant of the planned change, in Unix seconds."""
    change = json.loads(frazil_nodes(url, namespace, "--json"))["meta"]["change"]
    assert change["open"]
    return datetime.datetime.fromisoformat(change["at"]).timestamp()


class Fleet:
    """Processes of one layout, and the files with their IDs."""

    def __init__(self, layout, url, namespace, folder, until):
        self.spec = f'layout="{layout}" {LEASE} store={url} namespace={namespace}'
        self.folder, self.until, self.processes, self.files = folder, until, [], []
        folder.mkdir(exist_ok=True)

    def start(self, count, clocks=0.0):
        library = next(pathlib.Path("/usr/lib").rglob("libfaketimeMT.so.1"), None)
        assert library, "libfaketime is missing: run scripts/setup.sh"
        for _ in range(count):
            wrong = {"LD_PRELOAD": str(library), "FAKETIME": f"{random.uniform(-clocks, clocks):+}", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
            file = self.folder / f"ids-{len(self.files)}"
            self.files.append(file)
            command = [sys.executable, "-c", WORKER, self.spec, file, str(BATCH), str(self.until)]
            env = os.environ | (wrong if clocks else {})
            self.processes.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))

    def running(self):
        return [process for process in self.processes if process.poll() is None]

    def wait_for_ids(self):
        """Waits until every process has minted for a while."""
        until = time.monotonic() + 60
        while not all(file.exists() and file.stat().st_size for file in self.files):
            over = [process.stderr.read() for process in self.processes if process.poll() is not None]
            assert time.monotonic() < until and not over, f"a process did not start: {over}"
            time.sleep(0.1)
        time.sleep(1)

    def kill(self, count):
        for process in random.sample(self.running(), count):
            process.kill()

    def end(self):
        """Waits for all processes, and returns their statuses, texts, times and IDs."""
        statuses = []
        for process in self.processes:
            out, err = process.communicate(timeout=120)
            assert process.returncode in (0, 7, -signal.SIGKILL), err
            statuses.append((process.returncode, out))
        times, ids = [], []
        for file in self.files:
            rows = numpy.fromfile(file, numpy.int64) if file.exists() else numpy.zeros(0, numpy.int64)
            # A killed process may have written a part of its last batch.
            rows = rows[: len(rows) // (BATCH + 1) * (BATCH + 1)].reshape(-1, BATCH + 1)
            times.append(rows[:, 0])
            ids.append(rows[:, 1:].ravel())
        return statuses, numpy.concatenate(times), numpy.concatenate(ids)


@contextlib.contextmanager
def ended(*fleets):
    try:
        yield
    finally:
        for fleet in fleets:
            for process in fleet.running():
                process.kill()


def test_processes_of_two_layouts_change_over_without_a_repeat(store, tmp_path):
    kind, url, _server = store
    if kind == "redis":
        frazil_nodes(url, "change", "--begin", f'layout="{OLD}" {LEASE}')
    layouts, ids, highest = [OLD, NEW], [], 0
    for number in range(ROUNDS):
        old_layout, new_layout = layouts[number % 2], layouts[(number + 1) % 2]
        old = Fleet(old_layout, url, "change", tmp_path / f"old{number}", time.monotonic() + 120)
        with ended(old):
            old.start(PROCESSES, clocks=1.0)
            old.wait_for_ids()
            begun = time.monotonic()
            said = frazil_nodes(url, "change", "--change-layout", new_layout)
            closed_s = time.monotonic() - begun
            assert "planned: IDs of the old layout end at" in said, said
            again = frazil_nodes(url, "change", "--change-layout", new_layout)
            assert again.splitlines()[0] == said.splitlines()[0], "the same command continues it"
            at = moment(url, "change")
            new = Fleet(new_layout, url, "change", tmp_path / f"new{number}", time.monotonic() + at - time.time() + 6)
            with ended(new):
                new.start(PROCESSES // 2, clocks=1.0)
                old.kill(2)
                old.start(2, clocks=1.0)
                # Some are suspended through the moment.
                paused = [*random.sample(old.running(), 2), *random.sample(new.running(), 1)]
                time.sleep(max(0, at - time.time() - 2))
                for process in paused:
                    process.send_signal(signal.SIGSTOP)
                new.start(PROCESSES // 2, clocks=1.0)
                time.sleep(max(0, at - time.time() + 2))
                new.kill(2)
                for process in paused:
                    process.send_signal(signal.SIGCONT)
                before, old_times, old_ids = old.end()
                _, new_times, new_ids = new.end()
        ends = [out for status, out in before if status == 7]
        assert len(ends) == PROCESSES and all(f'holds node numbers for "{frazil.Layout(new_layout)}"' in out for out in ends), before
        times = numpy.sort(numpy.concatenate([old_times, new_times]))
        gap = numpy.diff(times).max() / 1e6
        print(
            f"{kind}: {len(old_ids):,} and {len(new_ids):,} IDs; the command took {closed_s:.2f} s; longest time without an ID {gap:.3f} s"
        )
        assert len(old_ids) > 20_000 and len(new_ids) > 20_000
        assert old_ids.min() > highest and new_ids.min() > old_ids.max()
        # The processes with the old layout issue up to the moment, and those with the new one from then on.
        assert gap < 2
        highest = int(new_ids.max())
        ids += [old_ids, new_ids]
    every = numpy.concatenate(ids)
    assert len(numpy.unique(every)) == len(every)


@pytest.mark.stores("file", "etcd")
def test_change_is_cancelled_and_refused_by_name(store):
    _kind, url, _server = store
    spec = f"{LEASE} store={url} namespace=cancel"
    with frazil.Snowflake(f'layout="{OLD}" {spec}') as ids:
        assert "same epoch" in frazil_nodes(url, "cancel", "--change-layout", "standard epoch=2026-01-01", status=1)
        assert "too early" in frazil_nodes(url, "cancel", "--change-layout", NEW, "--at", str(int(time.time() * 1000)), status=1)
        far = str(int(time.time() * 1000) + 3_600_000)
        assert "planned" in frazil_nodes(url, "cancel", "--change-layout", NEW, "--at", far)
        assert "another change" in frazil_nodes(url, "cancel", "--change-layout", "twitter", status=1)
        assert "cancel it first" in frazil_nodes(url, "cancel", "--change-layout", NEW, "--at", str(int(far) + 60_000), status=1)
        with pytest.raises(frazil.errors.WouldBlockError, match="the layout of the namespace changes to this one at"):
            frazil.Snowflake(f'layout="{NEW}" {spec}', timeout=0.5)
        time.sleep(2)
        assert ids.next() and ids.lease.healthy, "nothing has changed yet"
        assert "keeps its layout" in frazil_nodes(url, "cancel", "--change-layout", NEW, "--cancel")
        bound = ids.lease.bound
        time.sleep(2)
        assert ids.lease.healthy and ids.lease.bound > bound
        with pytest.raises(frazil.errors.LayoutMismatchError, match="--change-layout"):
            frazil.Snowflake(f'layout="{NEW}" {spec}')


def test_two_layouts_side_by_side_repeat(tmp_path):
    """The control: two layouts in two namespaces repeat IDs, which the change prevents."""
    specs = [f'layout="{layout}" store=file:{tmp_path} namespace={name}' for layout, name in [(OLD, "shop"), (NEW, "shop2")]]
    with frazil.Snowflake(specs[0]) as old, frazil.Snowflake(specs[1]) as new:
        ids = [one.batch(16) for _ in range(500) for one in (old, new)]
    assert len({value for batch in ids for value in batch}) < 16_000


@pytest.mark.stores("redis")
def test_restart_while_a_plan_is_cancelled_leaves_the_old_layout(store):
    _kind, url, server = store
    spec = f"{LEASE} store={url} namespace=restart"
    frazil_nodes(url, "restart", "--begin", f'layout="{OLD}" {LEASE}')
    with frazil.Snowflake(f'layout="{OLD}" {spec}') as ids:
        at = str(int(time.time() * 1000) + 20_000)
        assert "planned" in frazil_nodes(url, "restart", "--change-layout", NEW, "--at", at)
        time.sleep(2)
        assert "keeps its layout" in frazil_nodes(url, "restart", "--change-layout", NEW, "--cancel")
        server.restart()
        minted = []
        until = time.monotonic() + 26
        while time.monotonic() < until:
            minted += ids.batch(100, timeout=20)
            time.sleep(0.1)
        assert time.time() * 1000 > int(at) and minted == sorted(set(minted)), "it mints beyond the moment of the cancelled plan"
        assert json.loads(frazil_nodes(url, "restart", "--json"))["meta"]["change"] is None


@pytest.mark.stores("redis")
def test_failover_that_loses_the_plan_repeats_nothing(store, tmp_path):
    """Processes of both layouts run through a failover to a replica that has neither the plan nor a lease of the new layout."""
    _kind, url, server = store
    frazil_nodes(url, "lost", "--begin", f'layout="{OLD}" {LEASE}')
    old = Fleet(OLD, url, "lost", tmp_path / "old", time.monotonic() + 60)
    with ended(old):
        old.start(PROCESSES, clocks=1.0)
        old.wait_for_ids()

        def change(_seconds):
            # A primary takes another identity with its first replica.
            time.sleep(3)
            frazil_nodes(url, "lost", "--change-layout", NEW)
            at = moment(url, "lost")
            new = Fleet(NEW, url, "lost", tmp_path / "new", time.monotonic() + 60)
            new.start(PROCESSES, clocks=1.0)
            # Those whose clocks are ahead would have leases by now.
            time.sleep(max(0, at - time.time() - 0.2))
            fleets.append(new)

        fleets = []
        server.promote_replica(sleep=change)
        [new] = fleets
        with ended(new):
            _, _, old_ids = old.end()
            statuses, _, new_ids = new.end()
    every = numpy.concatenate([old_ids, new_ids])
    print(f"{len(old_ids):,} and {len(new_ids):,} IDs; {len(every) - len(numpy.unique(every))} repeated")
    assert len(old_ids) > 10_000 and len(numpy.unique(every)) == len(every)
    assert all(status == 7 for status, _ in statuses), "the store does not know the new layout"


@pytest.mark.stores("redis")
def test_account_without_the_right_to_list_namespaces_changes_the_layout(store):
    """The plan is made before the other namespaces are listed. docs/stores.md has the account's rights."""
    _kind, url, server = store
    frazil_nodes(url, "rights", "--begin", f'layout="{OLD}" {LEASE}')
    rights = ["~frazil:*", *(f"+{word}" for word in ("eval", "info", "time", "get", "set", "hget", "hset", "hscan", "select"))]
    server.call("ACL", "SETUSER", "frazil", "on", ">word", *rights)
    said = frazil_nodes(url.replace("://", "://frazil:word@"), "rights", "--change-layout", NEW)
    assert "planned: " in said and "cannot be listed" in said, said
    assert moment(url, "rights") > time.time()


@pytest.mark.stores("file", "redis", "postgresql")
def test_commands_at_once_and_killed_leave_a_plan_that_is_continued_or_cancelled(store, tmp_path):
    """Operators plan and cancel two changes at once, and some are killed. Then the usual commands cancel what is left, and change the layout."""
    kind, url, _server = store
    third = "time:41@1ms node:9 sequence:13 epoch:2025-01-01"
    if kind == "redis":
        frazil_nodes(url, "operators", "--begin", f'layout="{OLD}" {LEASE}')
    old = Fleet(OLD, url, "operators", tmp_path / "old", time.monotonic() + 90)
    with ended(old):
        old.start(4, clocks=1.0)
        old.wait_for_ids()
        outcomes = []
        for _ in range(15):
            options = [[random.choice([NEW, third]), *random.choice([[], ["--cancel"]])] for _ in range(3)]
            command = [FRAZIL, "nodes", url, "--namespace", "operators", "--change-layout"]
            running = [
                subprocess.Popen([*command, *option], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for option in options
            ]
            time.sleep(random.uniform(0, 0.1))
            running[0].kill()
            for process in running:
                _, err = process.communicate(timeout=60)
                assert process.returncode in (0, -signal.SIGKILL) or "CONFLICT" in err, err
                outcomes.append(process.returncode)
        plan = json.loads(frazil_nodes(url, "operators", "--json"))["meta"]["change"]
        if plan:
            assert "keeps its layout" in frazil_nodes(url, "operators", "--change-layout", plan["layout"], "--cancel")
        assert "planned: " in frazil_nodes(url, "operators", "--change-layout", NEW)
        at = moment(url, "operators")
        new = Fleet(NEW, url, "operators", tmp_path / "new", time.monotonic() + at - time.time() + 4)
        with ended(new):
            new.start(4, clocks=1.0)
            statuses, _, old_ids = old.end()
            _, _, new_ids = new.end()
    every = numpy.concatenate([old_ids, new_ids])
    print(f"{kind}: {len(every):,} IDs; the commands ended with { ({outcome: outcomes.count(outcome) for outcome in set(outcomes)}) }")
    assert len(new_ids) > 1_000 and new_ids.min() > old_ids.max() and len(numpy.unique(every)) == len(every)
    assert all(status == 7 for status, _ in statuses), "the layout has changed"
