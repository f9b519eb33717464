"""Segments and tickets on every store: first use, sharing, refusals, wiped stores, outages."""

import asyncio
import contextlib
import itertools
import pathlib
import re
import shlex
import subprocess
import sys
import time

import frazil
import pytest
import servers
from helper import elsewhere

TIMEOUT_S = 60
FRAZIL = [sys.executable, "-m", "frazil"]
# A start far above the numbers that these tests take.
N = 10**15
TAKE = """
segment = frazil.Segment(spec)
print(json.dumps(segment.batch(3000)))
"""


@pytest.fixture
def spec(store, request):
    """Returns a tag on the store, in a namespace that only this test uses."""
    return f"orders store={store[1]} namespace={request.node.originalname} wait=2s"


def refusal(call):
    with pytest.raises(frazil.FrazilError) as error:
        call()
    return error.value


def refused(call, name):
    """Repeats a call until it fails with this error. Ignores results and other errors until then."""
    until = time.monotonic() + TIMEOUT_S
    while time.monotonic() < until:
        try:
            call()
        except frazil.FrazilError as error:
            if error.name == name:
                return error
    raise AssertionError(f"{name} does not come")


def obey(error, url, start):
    """Runs the command that an error prints for the operator, with the password and the start filled in."""
    printed = re.search(r"frazil (segment .*?)(, with the user and the password for \*\*\*)?$", str(error))
    words = [url if "://" in word else word.replace("=N", f"={start}") for word in shlex.split(printed[1])]
    assert f"--start={start}" in words, error
    subprocess.run([*FRAZIL, *words], check=True, timeout=60, capture_output=True)


def opened(spec, url):
    """Opens a segment. If only an operator may begin its tag, runs the operator's command first."""
    try:
        return frazil.Segment(spec)
    except frazil.errors.TagMissingError as error:
        obey(error, url, 1)
        return frazil.Segment(spec)


def test_the_first_process_begins_a_tag_except_on_redis(store, spec):
    kind, url, _ = store
    if kind == "redis":
        error = refusal(lambda: frazil.Segment(spec))
        assert error.name == "TAG_MISSING" and url.partition("/0")[0] in str(error) and "tag=orders" in str(error), error
    with opened(spec, url) as segment:
        assert segment.batch(3000) == list(range(1, 3001))
        assert segment.last_error is None


@pytest.mark.stores(*servers.ALL)
def test_polls_get_a_number_from_a_slow_store(store, spec):
    _kind, url, server = store
    opened(spec, url).close()

    async def polls():
        """Polls once while the proxy holds the store's answers, and then until there is a number."""
        proxy.hold()
        with frazil.Segment(spec.replace(url, server.url_at(proxy.port))) as segment:
            error = refusal(segment.next)
            assert error.name == "WOULD_BLOCK" and "await" in str(error), error
            proxy.release()
            until = time.monotonic() + TIMEOUT_S
            while time.monotonic() < until:
                with contextlib.suppress(frazil.errors.WouldBlockError):
                    return segment.next()
                await asyncio.sleep(0.02)

    with servers.Proxy(server.port) as proxy:
        assert asyncio.run(polls())


def test_processes_share_a_tag(store, spec):
    with opened(spec, store[1]) as segment:
        mine = segment.batch(500)
        [theirs] = elsewhere(spec, TAKE)
        mine += segment.batch(20_000)
    for numbers in (mine, theirs):
        assert all(a < b for a, b in itertools.pairwise(numbers))
    assert not set(mine) & set(theirs)
    assert theirs[0] > mine[499]


def test_a_tag_keeps_its_numbers(store, spec):
    opened(spec, store[1]).close()
    error = refusal(lambda: frazil.Segment(f"{spec} increment=3 offset=1"))
    assert error.name == "SEGMENT_MISMATCH" and "increment=3" in str(error) and "increment=1" in str(error), error


@pytest.mark.stores(*servers.ALL)
def test_a_restarted_server_continues_a_tag_except_on_redis(store, spec):
    kind, url, server = store
    with opened(spec, url) as segment:
        before = segment.batch(100)
        server.restart()
        if kind == "redis":
            error = refused(lambda: segment.batch(5000), "STORE_CHANGED")
            assert "another server answers" in str(error), error
            obey(error, url, N)
        until = time.monotonic() + TIMEOUT_S
        after = []
        while len(after) < 50_000 and time.monotonic() < until:
            with contextlib.suppress(frazil.errors.SegmentExhaustedError):
                after += segment.batch(1000)
        assert len(after) == 50_000 and after[0] > before[-1]
        assert all(a < b for a, b in itertools.pairwise(after))
        assert kind != "redis" or after[-1] > N


@pytest.mark.stores(*servers.ALL)
def test_a_frozen_server_is_waited_for_at_most_the_timeout(store, spec):
    _kind, url, server = store
    with opened(spec, url) as segment:
        segment.next()
        server.pause()
        try:
            segment.discard()
            begin = time.monotonic()
            error = refusal(segment.next)
            assert error.name == "SEGMENT_EXHAUSTED" and "tag=orders" in str(error), error
            assert 1.9 < time.monotonic() - begin < TIMEOUT_S, "a frozen server never answers"
            # After the first failed call the error states its reason, too.
            error = refused(segment.next, "SEGMENT_EXHAUSTED")
            assert f"127.0.0.1:{server.port}" in str(error) and "secret" not in str(error), error
            assert segment.last_error.name == "STORE_UNREACHABLE"
        finally:
            server.resume()
        until = time.monotonic() + TIMEOUT_S
        while time.monotonic() < until and segment.last_error:
            with contextlib.suppress(frazil.errors.SegmentExhaustedError):
                segment.batch(1000)
        assert segment.next() and segment.last_error is None, "the segment recovers by itself"


@pytest.mark.parametrize("scheme, path", [("redis", "/0"), ("postgresql", "/ids"), ("mysql", "/ids"), ("etcd", ""), ("zookeeper", "")])
def test_nobody_listens(scheme, path):
    begin = time.monotonic()
    error = refusal(lambda: frazil.Segment(f"orders store={scheme}://frazil:hushhush@127.0.0.1:9{path} wait=300ms"))
    assert error.name == "SEGMENT_EXHAUSTED" and "127.0.0.1:9" in str(error) and "hushhush" not in str(error), error
    assert time.monotonic() - begin < TIMEOUT_S


class OfTwoStores:
    """The numbers of a tag that a server and a folder serve: the server's numbers are odd."""

    def __init__(self, segment):
        self.segment, self.numbers = segment, []

    def take_until(self, condition):
        until = time.monotonic() + TIMEOUT_S
        while not (self.numbers.extend(self.segment.batch(1000)) or condition()):
            assert time.monotonic() < until, self.segment.last_error
            # Prefetched numbers are from earlier ranges, so they are discarded.
            time.sleep(0.05)
            self.segment.discard()

    def server_serves(self):
        return any(number % 2 for number in self.numbers[-1000:])

    def has_error(self, name):
        return self.segment.last_error and self.segment.last_error.name == name


@pytest.mark.stores("redis")
def test_a_store_without_the_tag_is_skipped(store, tmp_path, request):
    _kind, url, _server = store
    with frazil.Segment(f"orders store='{url} file:{tmp_path}/one' namespace={request.node.originalname} step=10") as segment:
        taken = OfTwoStores(segment)
        taken.take_until(lambda: taken.has_error("TAG_MISSING"))
        assert not any(number % 2 for number in taken.numbers)
        obey(segment.last_error, url, 1)
        taken.take_until(taken.server_serves)
        assert len(set(taken.numbers)) == len(taken.numbers)


@pytest.mark.stores("postgresql")
def test_several_stores_serve_one_tag_while_one_is_alive(store, tmp_path, request):
    _kind, url, server = store
    with frazil.Segment(f"orders store='{url} file:{tmp_path}/one' namespace={request.node.originalname} step=10") as segment:
        taken = OfTwoStores(segment)
        taken.take_until(taken.server_serves)
        server.kill9()
        segment.discard()
        before = len(taken.numbers)
        taken.take_until(lambda: taken.has_error("STORE_UNREACHABLE"))
        assert f"127.0.0.1:{server.port}" in str(segment.last_error)
        assert not any(number % 2 for number in taken.numbers[before:])
        server.restart()
        taken.take_until(taken.server_serves)
        assert len(set(taken.numbers)) == len(taken.numbers)


def test_tickets_outlive_either_server():
    with contextlib.ExitStack() as stack:
        one, two = (stack.enter_context(server) for server in servers.start_all(["mariadb", "postgresql"]))
        with frazil.Tickets("photos", store=[one.url, two.url]) as tickets:
            numbers = tickets.batch(20)
            assert sorted(numbers) == list(range(1, 21))
            for dead, parity in ((one, 0), (two, 1)):
                dead.kill9()
                alone = tickets.batch(10)
                assert all(number % 2 == parity for number in alone), alone
                assert f"127.0.0.1:{dead.port}" in str(tickets.last_error)
                numbers += alone
                dead.restart()
            until = time.monotonic() + TIMEOUT_S
            while tickets.last_error and time.monotonic() < until:
                numbers.append(tickets.next())
            both = tickets.batch(4)
            assert {number % 2 for number in both} == {0, 1}, both
            numbers += both
            assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("kind", ["file", *servers.ALL])
def test_a_wiped_store_is_noticed_by_a_process_with_higher_numbers(kind, tmp_path):
    # Each kind gets a new server, because a process that has seen ZooKeeper's history go back does not use that server again.
    with contextlib.ExitStack() as stack:
        server = None if kind == "file" else stack.enter_context(servers.start(kind))
        check_wiped(kind, server.url if server else f"file:{tmp_path}/store", server)


@pytest.mark.stores("postgresql")
def test_reading_commands_make_no_table(store):
    """`frazil nodes` on a wrong database leaves no table there."""
    _, url, server = store
    server.sql("DROP SCHEMA IF EXISTS frazil_looking CASCADE; CREATE SCHEMA frazil_looking")
    own = f"{url}?options=-csearch_path%3Dfrazil_looking"

    def is_there():
        return server.sql("SELECT to_regclass('frazil_looking.frazil') IS NOT NULL").strip() == "t"

    def run(*arguments):
        return subprocess.run([*FRAZIL, *arguments], capture_output=True, text=True, timeout=60, check=False)

    for arguments in (("nodes", own), ("segment", own, "orders"), ("nodes", own, "--all"), ("doctor", "standard", f"store={own}")):
        output = run(*arguments)
        assert not is_there(), f"{arguments}: {output}"
    assert " is empty: " in run("nodes", own).stdout
    assert run("segment", own, "orders", "--start=1").returncode == 0
    assert is_there()
    assert run("nodes", own, "--all").stdout.endswith("\nsegment  default    orders\n")


def check_wiped(kind, url, server):
    spec = f"orders store={url} namespace=wiped wait=2s"
    with opened(spec, url) as segment:
        highest = segment.batch(10_000)[-1]
        if server:
            server.wipe()
        else:
            folder = pathlib.Path(url.removeprefix("file:"))
            folder.rename(folder.with_suffix(".away"))
        if kind != "redis":
            # A process that has not seen the old numbers begins a new tag, because only the lost store knew them.
            assert elsewhere(spec, TAKE) == [list(range(1, 3001))]
        error = refused(lambda: segment.batch(1000), "STORE_CHANGED")
        assert url.rpartition("@")[2].partition("/0")[0] in str(error) and "secret" not in str(error), error
        assert refusal(lambda: frazil.Segment(spec)).name == "STORE_CHANGED", "another handle knows it, too"
        # No command is named if writes have brought ZooKeeper's new history as far as the old one, or if another folder is lent.
        if kind in ("zookeeper", "frazil") and ("start them again" in str(error) or "it has moved for good" in str(error)):
            subprocess.run([*FRAZIL, "segment", url, "orders", "--namespace=wiped", f"--start={N}"], check=True, timeout=60)
        else:
            obey(error, url, N)
            segment.discard()
            assert segment.next() >= N > highest
        [theirs] = elsewhere(spec, TAKE)
        assert theirs[0] >= N > highest
