"""Outages of stores, as an operator sees them: in the log, at /readyz, and at the next start."""

import contextlib
import json

import pytest
import servers
from replica import TIMEOUT_S, Replica, process, run


@pytest.fixture(scope="module")
def redis():
    with contextlib.ExitStack() as stack:
        [server] = (stack.enter_context(server) for server in servers.start_all(["redis"]))
        yield server


def logged(server, event, name=None):
    return [line for line in server.events() if line["event"] == event and name in (None, line.get("name"))]


def await_logged(server, event, name=None, count=1):
    assert process.await_true(lambda: len(logged(server, event, name)) == count, TIMEOUT_S), server.log.read_text()
    return logged(server, event, name)[-1]


def ready(server):
    status, body = server.json("GET", "/readyz", port="admin")
    return status == 200, body.get("why")


def taken(server, name):
    """Takes numbers until there are none, and returns the error."""
    while (answer := server.json("POST", f"/v1/{name}/next?n=10"))[0] == 200:
        pass
    return answer[1]["error"]


def test_an_outage_and_its_end_are_logged(redis, tmp_path):
    """A lease, and a segment, which contacts its store only when it needs numbers."""
    with servers.proxy.Proxy(redis.port) as proxy:
        url = redis.url_at(proxy.port)
        names = [f"orders=standard store={url} namespace=outage window=3s renew=500ms", f"invoice=segment store={url} step=10 wait=1s"]
        settings = ["--max-wait-ms=100", "other=standard node=1"]
        assert run("begin", "invoice", "--start=1000", *names).returncode == 0
        with Replica(tmp_path, *names, *settings) as server:
            assert ready(server) == (True, None) and not logged(server, "ids.ended")
            proxy.refuse()
            proxy.cut()
            assert taken(server, "invoice")["code"] in ("SEGMENT_EXHAUSTED", "WOULD_BLOCK")
            for name in ("orders", "invoice"):
                line = await_logged(server, "ids.ended", name)
                assert line["level"] == "warning" and f"127.0.0.1:{proxy.port}" in line["text"], line
            assert process.await_true(lambda: ready(server) == (False, "no IDs of: invoice, orders"), TIMEOUT_S)
            assert await_logged(server, "not.ready")["text"].startswith("no IDs of: ")
            assert len(server.ids("other", 5)) == 5
            proxy.accept()
            for name in ("orders", "invoice"):
                # A segment contacts its store only when a request needs numbers.
                assert process.await_true(lambda name=name: server.json("POST", f"/v1/{name}/next")[0] == 200, TIMEOUT_S)
                assert await_logged(server, "ids.back", name)["level"] == "info"
            assert process.await_true(lambda: ready(server) == (True, None), TIMEOUT_S)
            await_logged(server, "ready.again", count=len(logged(server, "not.ready")))
            assert not logged(server, "ids.ended", "other")
            assert server.end() == 0


def test_a_segment_that_is_used_up_faster_than_it_is_filled_is_not_an_outage(tmp_path):
    with Replica(tmp_path, "invoice=segment store=memory step=1") as server:
        for _ in range(300):
            server.ids("invoice", 7)
        assert not logged(server, "ids.ended")


def test_a_store_that_fails_at_the_start_does_not_end_other_names(redis, tmp_path):
    with servers.proxy.Proxy(redis.port) as proxy:
        url = redis.url_at(proxy.port)
        names = [f"orders=segment store={url} namespace=late", f"late=lend store={url}", "other=standard node=1"]
        assert run("begin", "orders", "--start=7", *names, "--resp=:0").returncode == 0
        proxy.refuse()
        server = Replica(tmp_path, *names)
        server.spawn()
        with contextlib.ExitStack() as stack:
            stack.callback(server.__exit__)
            assert process.await_true(lambda: logged(server, "ready"), TIMEOUT_S), server.log.read_text()
            assert ready(server) == (False, "no IDs of: late, orders")
            assert f"127.0.0.1:{proxy.port}" in await_logged(server, "ids.ended", "orders")["text"]
            assert len(server.ids("other", 5)) == 5
            for path in ("next", "ranges?n=5"):
                status, body = server.json("POST", f"/v1/orders/{path}")
                assert status == 503 and body["error"]["message"].startswith("orders: ") and str(proxy.port) in body["error"]["message"]
            assert server.raw(b"FRAZIL.STORE 1 late\r\nQUIT\r\n").startswith(b"-")
            proxy.accept()
            await_logged(server, "ids.back", "orders")
            await_logged(server, "ids.back", "late")
            assert len(server.ids("orders", 5)) == 5
            assert ready(server) == (True, None)
            assert server.end() == 0


def test_the_start_fails_if_no_name_can_be_served(tmp_path):
    unused = process.reserve_port()
    with contextlib.closing(unused):
        failed = run(f"orders=standard store=redis://127.0.0.1:{process.port_of(unused)}/0", "--http=:0")
    assert failed.returncode == 1 and json.loads(failed.stderr.splitlines()[-1])["code"] == "STORE_UNREACHABLE"


@pytest.mark.parametrize(
    "line",
    ["segment store={redis} start=1000", "segment store=file:{folder} start=1000", "tickets store='{redis} file:{folder}' start=1000"],
)
def test_tag_missing_after_a_store_lost_its_data(redis, tmp_path, line):
    """The name's line still has its `start=`. The test runs the command that the error's text names."""
    store = tmp_path / "store"
    store.mkdir()
    name = "lost=" + line.format(redis=redis.url, folder=store)

    def failure():
        failed = run(name, "--http=:0")
        assert failed.returncode == 1, failed
        error = json.loads(failed.stderr.splitlines()[-1])
        assert error["text"].startswith("lost: ") and "frazil-server begin lost --start=N" in error["text"]
        return error["code"]

    def first():
        with Replica(tmp_path, name, "--max-wait-ms=10000") as server:
            [number] = server.ids("lost", 1)
            assert server.end() == 0
            return number

    def begin(start):
        return run("begin", "lost", f"--start={start}", name)

    redis.flush()
    assert failure() == "TAG_MISSING"
    begun = begin(5000)
    assert (begun.returncode, begun.stdout) == (0, "lost begins at 5000\n"), begun.stderr
    highest = first()
    assert 5000 <= highest <= 5010
    # `begin` does not go back, and the numbers continue after the highest one.
    again = begin(5)
    assert again.returncode == 1 and '"code":"OUT_OF_RANGE"' in again.stderr, again
    following = first()
    # With two stores, only the numbers of each store ascend.
    assert following > highest or (line.startswith("tickets") and 5000 <= following != highest)
    redis.flush()
    for path in store.rglob("*"):
        if path.is_file() and "lost" in str(path.relative_to(store)):
            path.unlink()
    assert failure() == "TAG_MISSING"
    assert begin(9000).returncode == 0 and first() >= 9000


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["ordres", "--start=1", "orders=segment store=memory"], '\\"ordres\\" is not served: use one of orders'),
        (["orders", "--start=1", "orders=standard node=1"], "orders: it is neither a segment nor tickets"),
        (["orders", "--start=1", "orders=buffered standard node=1"], "orders: a ring has no tag"),
        (["orders", "--start=1", "orders=segment store=mysql://h/d table=leaf"], "insert it there"),
        (["orders", "--start=x", "orders=segment store=memory"], "start"),
    ],
)
def test_a_begin_that_is_refused(arguments, expected):
    failed = run("begin", *arguments)
    assert failed.returncode == 1 and expected in failed.stderr, failed.stderr
