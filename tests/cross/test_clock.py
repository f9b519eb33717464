"""The rollback policies under a system clock that really goes back while IDs are minted.

Each test runs in a new process, `python test_clock.py NAME`, in which `turn` sets the clock.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

import clock
import frazil
import pytest
from clock import turn

ROOT = pathlib.Path(__file__).parent.parent.parent
HOUR = 3600
YEAR = 366 * 24 * HOUR
# The time that may pass between two steps of a test on a busy machine.
SLACK = 60


def run_under_a_clock_to_turn(command, tmp_path):
    """Runs a command whose system clock `turn` sets. Its monotonic clock stays true."""
    env = os.environ | clock.under(tmp_path / "clock") | {"PYTHONPATH": str(ROOT / "tests")}
    child = subprocess.run(command, env=env, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    assert child.returncode == 0, child.stdout


def under_a_clock_to_turn(test):
    """Runs a test in a child process whose clock `turn` sets."""

    def run(tmp_path):
        run_under_a_clock_to_turn([sys.executable, __file__, test.__name__], tmp_path)

    return test if __name__ == "__main__" else run


def check_refusal(error, back, rollback):
    """Compares a refusal's text and `retry_after` with the seconds by which the clock went back.

    The true time has advanced since then, so both may be less, but never more.
    """
    found = re.fullmatch(r"the clock went back by (\d+) ms; rollback=(\S+) allows the next ID in (\d+) ms", str(error))
    assert found, str(error)
    back_ms, policy, wait_ms = int(found[1]), found[2], int(found[3])
    assert policy == rollback
    assert (back - SLACK) * 1000 < back_ms <= back * 1000, str(error)
    assert wait_ms - 1 <= error.retry_after * 1000 <= wait_ms, (str(error), error.retry_after)
    return back_ms / 1000


class Minters:
    """Two threads that mint without pause, one with next() and one with batch()."""

    def __init__(self, ids):
        self.minted, self.refusals, self.rounds = [ids.next()], [], [0, 0]
        self.stopped = threading.Event()
        self.pool = concurrent.futures.ThreadPoolExecutor()
        draws = lambda: [ids.next()], lambda: ids.batch(100)
        self.running = [self.pool.submit(self.mint, number, draw) for number, draw in enumerate(draws)]

    def mint(self, number, draw):
        own = 0
        while not self.stopped.is_set():
            floor = max(own, self.minted[-1])
            try:
                new = draw()
            except frazil.errors.ClockBackError as error:
                self.refusals.append(error)
            else:
                assert [floor, *new] == sorted({floor, *new}), "a call's IDs lie above all that were there before it"
                own = new[-1]
                self.minted += new
            self.rounds[number] += 1
            # Fewer IDs than a tick holds, so that only the clock makes a generator run ahead.
            time.sleep(0.001)

    def go_on(self, rounds):
        """Waits until both threads have made `rounds` complete calls."""
        goal = [done + rounds + 1 for done in self.rounds]
        while any(done < least for done, least in zip(self.rounds, goal, strict=True)):
            assert not any(thread.done() for thread in self.running), [thread.exception() for thread in self.running if thread.done()]
            time.sleep(0.001)

    def after(self, turned_to):
        """Sets the clock, and returns the number of IDs and the refusals afterwards."""
        turn(turned_to)
        self.go_on(1)  # Completes the calls that were running when the clock was set.
        minted, refusals = len(self.minted), len(self.refusals)
        self.go_on(100)
        return len(self.minted) - minted, self.refusals[refusals:]

    def stop(self):
        self.stopped.set()
        for thread in self.running:
            thread.result()


@under_a_clock_to_turn
def test_ahead_mints_through_jumps_and_never_repeats():
    minters = Minters(frazil.Snowflake("standard", node=1, rollback="ahead:1s"))
    try:
        # Each offset of the clock, and how far it is below the highest offset so far.
        for offset, back in [(0, 0), (-0.5, 0.5), (0, 0), (-HOUR, HOUR), (-0.5, 0.5), (HOUR, 0), (HOUR - 0.5, 0.5), (0, HOUR), (HOUR, 0)]:
            minted, refusals = minters.after(turned_to=offset)
            if back < 1:
                assert not refusals, (offset, str(refusals[0]))
                assert minted >= 100 + 100 * 100, offset
            else:
                assert minted == 0, offset
                assert len(refusals) >= 200
                for error in refusals:
                    check_refusal(error, back, "ahead:1s")
                    assert back - 1 - SLACK < error.retry_after <= back
    finally:
        minters.stop()
    assert len(set(minters.minted)) == len(minters.minted)


@under_a_clock_to_turn
def test_ahead_continues_once_the_clock_has_caught_up():
    ids = frazil.Snowflake("standard", node=2, rollback="ahead:1s")
    newest = ids.next()
    turn(-HOUR)
    with pytest.raises(frazil.errors.ClockBackError) as refused:
        ids.batch(10)
    check_refusal(refused.value, HOUR, "ahead:1s")
    assert refused.value.retry_after <= HOUR - 0.999, "the clock has to come up to 1 s"
    turn(refused.value.retry_after - HOUR - SLACK)
    with pytest.raises(frazil.errors.ClockBackError):
        ids.next()
    turn(refused.value.retry_after - HOUR)
    assert ids.next() > newest


@under_a_clock_to_turn
def test_error_refuses_until_the_clock_returns():
    ids = frazil.Snowflake("twitter", datacenter=1, worker=3)
    newest = ids.batch(10)[-1]
    for back in (90, HOUR):
        turn(-back)
        for draw in (ids.next, lambda: ids.batch(10), lambda: ids.text("base62")):
            with pytest.raises(frazil.errors.ClockBackError) as refused:
                draw()
            back_by = check_refusal(refused.value, back, "error")
            assert back_by - 5 < refused.value.retry_after <= back_by
        turn(0)
        again = ids.batch(10)
        assert [newest, *again] == sorted({newest, *again})
        newest = again[-1]


@under_a_clock_to_turn
def test_wait_waits_a_short_rollback_out():
    ids = frazil.Snowflake("standard", node=4, rollback="wait:2s")
    for draw in (ids.next, lambda: ids.batch(10)[0]):
        turn(0)
        since = time.monotonic()
        newest = ids.next()
        turn(-0.3)
        new = draw()
        assert time.monotonic() - since > 0.29, "the clock was back for 0.3 s"
        stamp = ids.layout.decode(new).time.timestamp()
        assert ids.layout.decode(newest).time.timestamp() <= stamp <= time.time()
        assert new > newest


@under_a_clock_to_turn
def test_wait_refuses_a_long_rollback_at_once():
    ids = frazil.Snowflake("standard", node=5, rollback="wait:50s")
    newest = ids.next()
    turn(-HOUR)
    since = time.monotonic()
    with pytest.raises(frazil.errors.ClockBackError) as refused:
        ids.next()
    assert time.monotonic() - since < 40
    back_by = check_refusal(refused.value, HOUR, "wait:50s")
    assert back_by - 5 < refused.value.retry_after <= back_by
    turn(0)
    assert ids.next() > newest


@under_a_clock_to_turn
def test_new_leases_are_used_at_once_after_a_rollback():
    """Also the leases of a forked child, and after release_node(): `rollback=ahead` allows the same as with the lease before."""
    with tempfile.TemporaryDirectory() as folder:
        ids = frazil.Snowflake("standard", rollback="ahead:10m", store=f"file:{folder}/store")
        newest = ids.next()
        turn(-300)
        before = ids.next()
        assert before > newest
        child = os.fork()
        if child == 0:
            since = time.monotonic()
            os._exit(0 if ids.next() > before and time.monotonic() - since < SLACK else 1)
        assert os.waitpid(child, 0)[1] == 0, "the child's first lease"
        ids.release_node()
        assert ids.next() > before
        ids.close()


@under_a_clock_to_turn
def test_wait_counts_what_it_has_waited():
    """If the clock goes back further while a call waits, all waits of the call together stay within the limit."""
    for node, further in [(6, 51), (7, HOUR)]:
        turn(0)
        ids = frazil.Snowflake("standard", node=node, rollback="wait:50s")
        newest = ids.next()
        turn(-45)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            since = time.monotonic()
            call = pool.submit(ids.next)
            time.sleep(2)
            assert not call.done(), "it waits"
            turn(-further)
            error = call.exception()
            waited = time.monotonic() - since
        assert isinstance(error, frazil.errors.ClockBackError), error
        check_refusal(error, further, "wait:50s")
        assert 2 <= waited < 40, "it gave up when the clock went back, not later"
        if further == 51:
            assert error.retry_after < 50, "a wait so long is allowed, but not after the first one"
        turn(0)
        assert ids.next() > newest


@under_a_clock_to_turn
def test_uuid7_increases_whatever_the_clock_does():
    made = []
    for offset in (0, -HOUR, -YEAR, HOUR, 0, HOUR - 1):
        turn(offset)
        made += [frazil.uuid.uuid7() for _ in range(1000)]
    assert made == sorted(set(made))
    times = [frazil.uuid.uuid_time(made[at]).timestamp() for at in (0, 2999, 3000, -1)]
    assert times[1] - times[0] < SLACK, "stamps stay where the clock had been"
    assert abs(times[2] - times[0] - HOUR) < SLACK, "until it is beyond"
    assert times[3] - times[2] < SLACK


@under_a_clock_to_turn
def test_object_ids_follow_the_clock_and_never_repeat():
    made = []
    for offset in (0, -HOUR, 0, HOUR, -HOUR):
        turn(offset)
        before = int(time.time())
        new = [frazil.objectid.ObjectId() for _ in range(1000)]
        assert all(before <= each.time.timestamp() <= time.time() for each in new)
        made += new
    assert len(set(made)) == len(made)


@under_a_clock_to_turn
def test_other_ids_refuse_a_clock_outside_their_time():
    turn(81 * YEAR)
    with pytest.raises(frazil.errors.LayoutExpiredError, match="2106-02-07T06:28:15Z"):
        frazil.objectid.ObjectId()
    turn(-int(time.time() - 81 * YEAR) - HOUR)
    assert time.time() < 0
    for make in (frazil.objectid.ObjectId, frazil.uuid.uuid7):
        with pytest.raises(frazil.errors.BeforeEpochError, match="1970-01-01T00:00:00Z"):
            make()
    turn(0)
    assert frazil.uuid.uuid_time(frazil.uuid.uuid7()).timestamp() <= time.time()


def test_node_waits_off_the_loop(tmp_path):
    script = """
        const assert = require('node:assert')
        const fs = require('node:fs')
        const { Snowflake } = require(process.argv[1])
        const file = fs.openSync(process.env.FRAZIL_TEST_CLOCK, 'r+')
        const turn = (seconds) => {
          fs.writeSync(file, BigInt64Array.of(BigInt(seconds) * 1_000_000_000n), 0, 8, 0)
          // A generator may trust the processor's counter for 1 ms before it reads the clock again.
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2)
        }
        async function main() {
          const ids = await Snowflake.open('standard', { node: 8, rollback: 'wait:50s' })
          const newest = ids.nextBigInt()
          turn(-8)
          assert.throws(() => ids.next(), { code: 'WOULD_BLOCK' })
          const waited = BigInt(await ids.nextAsync())
          assert(waited > newest)
          turn(-3600)
          const refused = { code: 'CLOCK_BACK', message: /went back by 35[0-9]{5} ms; rollback=wait:50s/ }
          assert.throws(() => ids.next(), refused)
          await assert.rejects(ids.nextAsync(), refused)
          turn(0)
          assert(ids.nextBigInt() > waited)
        }
        main()
    """
    run_under_a_clock_to_turn(["node", "-e", script, ROOT / "node"], tmp_path)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
