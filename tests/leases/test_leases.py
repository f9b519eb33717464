"""Leases on every store, with real servers: releases, refusals, reported failures."""

import base64
import contextlib
import json
import os
import time
import urllib.request
from datetime import UTC, datetime, timedelta

import frazil
import pytest
import servers
from helper import elsewhere

# The time limit for events without a call, on a busy machine.
TIMEOUT_S = 60
# A call to a store may take 4/5 of renew.
LEASE = "window=4s renew=1s"
TWO = "layout='time:41@1ms node:1 sequence:12 epoch:2025-01-01' rollback=error " + LEASE


@pytest.fixture
def spec(store, request):
    """Returns a spec line on the store, in a namespace that only this test uses."""
    return f"{TWO} store={store[1]} namespace={request.node.originalname}"


def refusal(line):
    with pytest.raises(frazil.FrazilError) as error:
        frazil.Snowflake(line)
    return error.value


OPEN_OR_SAY = """
try:
    ids = frazil.Snowflake(spec)
    print(json.dumps([ids.node, ids.next()]))
except frazil.FrazilError as error:
    print(json.dumps([error.name, str(error)]))
"""


def test_numbers_are_leased_and_released(spec):
    first = frazil.Snowflake(spec)
    assert first.lease.healthy and first.lease.node == first.node
    [[node, theirs]] = elsewhere(spec, OPEN_OR_SAY, "ids.close()")
    assert node != first.node
    [[again, later]] = elsewhere(spec, OPEN_OR_SAY, "ids.close()")
    assert again == node and later > theirs, "above everything that was issued before"
    mine = first.next()
    first.close()
    with frazil.Snowflake(f"{spec} node={first.node}") as second:
        assert second.next() > mine


def test_a_number_that_is_held_is_refused(spec):
    with frazil.Snowflake(f"{spec} node=1", detached=True):
        [[code, why]] = elsewhere(f"{spec} node=1", OPEN_OR_SAY)
        assert code == "NODE_IN_USE" and f":{os.getpid()}" in why, why
        with frazil.Snowflake(spec, detached=True):
            [[code, why]] = elsewhere(spec, OPEN_OR_SAY)
            assert code == "NO_FREE_NODE" and "all 2 node numbers" in why and "may be free at" in why, why


def test_a_crashed_holders_number_comes_free(spec):
    line = f"{spec} node=0"
    crash = "import os; sys.stdout.flush(); os._exit(0)"
    [[_node, theirs]] = elsewhere(line, OPEN_OR_SAY, crash)
    begin = time.monotonic()
    with frazil.Snowflake(line) as ids:
        assert ids.next() > theirs
    assert time.monotonic() - begin < TIMEOUT_S, "the bound was waited for, and no longer"


def test_a_lease_is_extended(spec):
    with frazil.Snowflake(spec) as ids:
        before = ids.lease.bound
        until = time.monotonic() + TIMEOUT_S
        while ids.lease.bound == before and time.monotonic() < until:
            ids.next()
            time.sleep(0.005)
        assert ids.lease.bound > before and ids.lease.healthy


def test_a_namespace_has_one_layout(spec):
    frazil.Snowflake(spec).close()
    error = refusal(spec.replace("node:1 sequence:12", "node:2 sequence:11"))
    assert error.name == "LAYOUT_MISMATCH" and "node:1" in str(error) and "node:2" in str(error), error


@pytest.mark.stores("redis")
def test_a_store_that_forgets_has_no_disposable_numbers(spec):
    error = refusal(spec.replace(LEASE, "lease=disposable detached=true"))
    assert error.name == "STORE_UNSUITABLE" and "disposable" in str(error), error


@pytest.mark.stores("file", *(kind for kind in servers.ALL if kind != "redis"))
def test_disposable_numbers(spec):
    line = spec.replace(LEASE, "lease=disposable detached=true")
    with frazil.Snowflake(line) as first:
        assert (first.node, first.lease.left, first.lease.bound) == (0, 1, None)
    with frazil.Snowflake(line) as second:
        assert (second.node, second.lease.left) == (1, 0)
    assert refusal(line).name == "NO_FREE_NODE"


def test_a_released_number_is_free_at_once(spec):
    with frazil.Snowflake(spec) as ids:
        node, before = ids.node, ids.next()
        ids.release_node()
        [[theirs, _]] = elsewhere(f"{spec} node={node}", OPEN_OR_SAY, "ids.close()")
        assert theirs == node
        assert ids.next() > before


def test_an_observed_id_raises_the_bound(store, spec):
    # An unbounded drift would make the first start on Redis wait for more than a minute.
    ahead, seconds, allowed = {"redis": ("ahead:2s", 2, "2s"), "file": ("ahead", 3600, "1h")}.get(store[0], ("ahead", 60, "1m"))
    with frazil.Snowflake(spec.replace(LEASE, "window=8s renew=1500ms") + f" exhausted={ahead}") as ids:
        now = datetime.now(UTC)
        with pytest.raises(frazil.errors.OutOfRangeError, match=f"allow {allowed}; if another layout made it"):
            ids.observe(ids.layout.min_id(now + timedelta(seconds=seconds + 1)))
        theirs = ids.layout.max_id(now + timedelta(seconds=seconds - 1))
        ids.observe(theirs)
        for _ in range(1000):
            mine = ids.next()
            assert mine > theirs and ids.layout.decode(mine).time <= ids.lease.bound
        assert ids.lease.healthy, ids.lease.last_error


def test_a_clock_that_is_far_ahead_is_refused(store, spec):
    # If the store has no clock, the record of a live process shows the time.
    with frazil.Snowflake(spec, detached=True):
        [[code, why]] = elsewhere(spec, OPEN_OR_SAY, ahead=3600)
        assert code == "CLOCK_SKEW", why
        assert "shows" in why and "store=" in why, why
    # A late clock disturbs no other process. If the store's clock decides when leases begin, this process would wait for an hour.
    [[node, why]] = elsewhere(spec, OPEN_OR_SAY, "ids.close() if ids else None", ahead=-3600)
    assert (node == "CLOCK_SKEW" and "leases begin at" in why) if store[0] == "redis" else node in (0, 1), why


@pytest.mark.stores(*servers.ALL)
def test_a_frozen_server_is_waited_for_at_most_the_timeout(store, spec):
    server = store[2]
    with frazil.Snowflake(spec, detached=True) as ids:
        server.pause()
        try:
            begin = time.monotonic()
            error = refusal(f"{spec} detached=true")
            assert error.name == "STORE_UNREACHABLE" and f"127.0.0.1:{server.port}" in str(error), error
            assert time.monotonic() - begin < TIMEOUT_S, "a call takes 4/5 of renew at most, and a frozen server never answers"
            begin = time.monotonic()
            with pytest.raises(frazil.errors.LeaseExhaustedError, match="could not be extended since"):
                while time.monotonic() - begin < TIMEOUT_S:
                    ids.next()
                    time.sleep(0.005)
            begin = time.monotonic()
            with pytest.raises(frazil.errors.LeaseExhaustedError):
                ids.next()
            assert time.monotonic() - begin < TIMEOUT_S
            assert not ids.lease.healthy and isinstance(ids.lease.last_error, frazil.errors.StoreUnreachableError)
        finally:
            server.resume()
        until = time.monotonic() + TIMEOUT_S
        minted = None
        while not (minted and ids.lease.healthy) and time.monotonic() < until:
            with contextlib.suppress(frazil.errors.LeaseExhaustedError):
                minted = ids.next()
            time.sleep(0.02)
        assert minted and ids.lease.healthy, "the lease recovers without a call"


@pytest.mark.parametrize("scheme, path", [("redis", "/0"), ("postgresql", "/ids"), ("mysql", "/ids"), ("etcd", ""), ("zookeeper", "")])
def test_nobody_listens(scheme, path):
    begin = time.monotonic()
    error = refusal(f"{TWO} store={scheme}://frazil:hushhush@127.0.0.1:9{path}")
    assert error.name == "STORE_UNREACHABLE" and "127.0.0.1:9" in str(error) and "hushhush" not in str(error), error
    assert time.monotonic() - begin < TIMEOUT_S


@pytest.mark.stores("redis", "postgresql", "mariadb")
def test_wrong_credentials(store, spec):
    kind, url, _ = store
    wrong = url.replace("frazil:secret@", "frazil:hushhush@") if kind != "redis" else url.replace("://", "://frazil:hushhush@")
    error = refusal(spec.replace(url, wrong))
    assert error.name == "STORE_AUTH" and "hushhush" not in str(error), error


@pytest.mark.stores("etcd")
def test_a_wiped_store_without_a_clock_is_noticed(store, spec):
    server = store[2]
    with frazil.Snowflake(spec, detached=True) as ids:
        ids.next()
        prefix = f"/frazil/{spec.rsplit('=', 1)[1]}/".encode()
        end = prefix[:-1] + bytes([prefix[-1] + 1])
        body = json.dumps({"key": base64.b64encode(prefix).decode(), "range_end": base64.b64encode(end).decode()}).encode()
        urllib.request.urlopen(f"http://127.0.0.1:{server.port}/v3/kv/deleterange", body, timeout=10).read()
        begin = time.monotonic()
        with pytest.raises(frazil.errors.LeaseExhaustedError, match="the store is not the one that held the leases"):
            while time.monotonic() - begin < TIMEOUT_S:
                ids.next()
                time.sleep(0.005)
        assert ids.lease.last_error.name == "STORE_CHANGED"
