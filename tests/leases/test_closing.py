"""Numbers are released even if the connection to the store was cut, or the server restarted, after its last use."""

import json
import signal
import subprocess
import sys
import time
import uuid

import frazil
import pytest
import servers

LAYOUT = "layout='time:41@1ms node:3 sequence:12 epoch:2025-01-01'"
# So long that no renewal reconnects during a test.
LEASE = "window=10m renew=3m"
TIMEOUT_S = 60


def nodes(url, namespace, *options):
    """Returns the output of `frazil nodes`."""
    command = [sys.executable, "-m", "frazil", "nodes", url, "--namespace", namespace, *options]
    listing = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert listing.returncode == 0, listing.stderr
    return listing.stdout


def states(url, namespace):
    return {slot["node"]: slot["state"] for slot in json.loads(nodes(url, namespace, "--json"))["slots"]}


@pytest.fixture
def namespace(store):
    """Makes a namespace for one test, in which the first start does not wait."""
    name = f"closing-{uuid.uuid4()}"
    nodes(store[1], name, "--begin", f"{LAYOUT} {LEASE}")
    return name


def opened(url, namespace):
    return frazil.Snowflake(f"{LAYOUT} {LEASE} store={url} namespace={namespace}")


@pytest.mark.stores(*servers.ALL)
@pytest.mark.parametrize("give_back", ["close", "release_node"])
def test_a_cut_connection_is_made_again(store, namespace, give_back):
    _kind, url, server = store
    with servers.Proxy(server.port) as proxy, opened(server.url_at(proxy.port), namespace) as ids:
        node = ids.node
        proxy.cut()
        getattr(ids, give_back)()
        assert states(url, namespace)[node] == "free"


@pytest.mark.stores(*servers.ALL)
def test_a_dropped_handle_releases_its_number(store, namespace):
    _kind, url, server = store
    with servers.Proxy(server.port) as proxy:
        ids = opened(server.url_at(proxy.port), namespace)
        node = ids.node
        proxy.cut()
        del ids
        until = time.monotonic() + TIMEOUT_S
        while states(url, namespace)[node] != "free":
            assert time.monotonic() < until, "the store's thread has not released the number"


@pytest.mark.stores(*servers.ALL)
def test_a_lost_answer_is_asked_for_again(store, namespace):
    _kind, url, server = store
    with servers.Proxy(server.port) as proxy, opened(server.url_at(proxy.port), namespace) as ids:
        node = ids.node
        proxy.lose_answers(1)
        ids.close()
        assert proxy.losses_left == 0 and states(url, namespace)[node] == "free"


# frazil writes no earlier record to a restarted Redis, because that may have lost writes.
@pytest.mark.stores(*(kind for kind in servers.ALL if kind != "redis"))
def test_a_release_reaches_a_restarted_server(store, namespace):
    _kind, url, server = store
    ids = opened(url, namespace)
    server.restart()
    ids.close()
    assert states(url, namespace)[ids.node] == "free"


ENDS = {
    "exit": "",
    "sigterm": "frazil.close_on_sigterm(); os.kill(os.getpid(), signal.SIGTERM)",
}


# At its end, a program gives a store half a second. PostgreSQL's login takes most of that if frazil was built without optimization.
@pytest.mark.stores(*(kind for kind in servers.ALL if kind != "postgresql"))
@pytest.mark.parametrize("end", ENDS)
def test_a_program_ends_after_its_connection_was_cut(store, namespace, end):
    _kind, url, server = store
    script = "import frazil, os, signal, sys\nids = frazil.Snowflake(sys.argv[1])\nprint(ids.node, flush=True)\ninput()\n" + ENDS[end]

    def freed(proxy):
        spec = f"{LAYOUT} {LEASE} store={server.url_at(proxy.port)} namespace={namespace}"
        with subprocess.Popen([sys.executable, "-c", script, spec], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            node = int(child.stdout.readline())
            proxy.cut()
            child.communicate("\n", timeout=TIMEOUT_S)
        assert child.returncode == (-signal.SIGTERM if end == "sigterm" else 0)
        return states(url, namespace)[node] == "free"

    # On a busy machine, half a second may not suffice, so the test tries again.
    with servers.Proxy(server.port) as proxy:
        assert any(freed(proxy) for _ in range(5))


@pytest.mark.stores(*servers.ALL)
@pytest.mark.parametrize("gone", ["refuses", "is silent"])
def test_close_waits_for_a_lost_store_at_most_its_timeout(store, namespace, gone):
    _kind, url, server = store
    with servers.Proxy(server.port) as proxy:
        ids = opened(server.url_at(proxy.port), namespace)
        if gone == "refuses":
            proxy.refuse()
            proxy.cut()
        else:
            proxy.hold()
        begin = time.monotonic()
        ids.close()
        assert time.monotonic() - begin < TIMEOUT_S
        with pytest.raises(frazil.errors.ClosedError):
            ids.next()
        assert gone == "is silent" or states(url, namespace)[ids.node] == "held"
