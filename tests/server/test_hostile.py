"""Requests of enemies and careless clients; each was a defect once."""

import collections
import concurrent.futures
import contextlib
import http.client
import itertools
import os
import pathlib
import re
import signal
import socket
import struct
import threading
import time

import h2.connection
import h2.events
import h2.settings
import httpx
import pytest
import redis
from replica import TIMEOUT_S, Replica, process, run


@pytest.mark.parametrize("http2", [False, True])
def test_an_empty_body_that_ends_later(server, http2):
    """In chunks, or with HTTP/2 in a frame of its own: Node and others send that for a POST."""
    url = f"http://127.0.0.1:{server.ports['http']}/v1/orders/next"
    with httpx.Client(http1=not http2, http2=http2, timeout=TIMEOUT_S) as client:
        answer = client.post(url, content=iter(()))
        assert answer.status_code == 200, answer.text
        answer = client.post(url, content=iter((b'{"n":', b"2}")))
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "SPEC")


def test_a_page_in_a_browser_mints_nothing_over_resp(server):
    """It can have the browser send HTTP to this machine, with commands as the body."""
    with server.redis() as client:
        before = client.incr("invoice")
        hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32)
        for head in (b"POST / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n", hello, b"OPTIONS / HTTP/1.1\r\nhost: [::]\r\n"):
            assert b":" + str(before + 1).encode() not in server.raw(head + b"\r\nINCR invoice\r\n")
        assert client.incr("invoice") == before + 1


def test_two_requests_in_one_are_one(server):
    """If a proxy and the server disagree about a request's end, its body is a request to the second."""
    hidden = b"POST /v1/orders/next HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for head in (b"Content-Length: 0\r\nTransfer-Encoding: chunked", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"):
        answer = server.raw(b"POST /v1/orders/next HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n" + hidden, port="http")
        assert b" 200 " not in answer


def resident_kib(server):
    return int(re.search(r"^VmRSS:\s+(\d+) kB$", pathlib.Path(f"/proc/{server.running.pid}/status").read_text(), re.MULTILINE)[1])


def requests(server, code="OK"):
    """The number of requests over HTTP that have this answer."""
    text = server.ask("GET", "/metrics", port="admin")[2].decode()
    found = re.search(rf'^frazil_server_requests_total{{protocol="http",code="{code}"}} (\d+)$', text, re.MULTILINE)
    # A refusal is not there before the first one.
    return 0 if found is None and code != "OK" else int(found[1])


def settled(count):
    """Waits until something that grows has stopped for 2 s."""
    seen = []
    while len(seen) < 20 or seen[-1] != seen[-20]:
        seen.append(count())
        time.sleep(0.1)


def answered(server, data):
    """The statuses that come back for bytes, until the server closes the connection or says no more."""
    with socket.create_connection(("127.0.0.1", server.ports["http"]), timeout=TIMEOUT_S) as connection:
        connection.sendall(data)
        return re.findall(rb"HTTP/1.[01] (\d+) ", b"".join(iter(lambda: connection.recv(65536), b"")))


def test_the_last_answer_of_a_connection_comes(server):
    """Also where more has come behind the last request, or what came is no request."""
    post = b"POST /v1/orders/next HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = post.replace(b"Host", b"Connection: close\r\nHost")
    assert answered(server, last + b"\r\n") == [b"200"]
    assert answered(server, post + last.replace(b"/1.1", b"/1.0") + post) == [b"200"] * 2
    assert answered(server, 5 * post + b"nonsense\r\n\r\n") == [b"200"] * 5 + [b"400"]
    assert answered(server, post + b"POST /v1/orders/next HTTP/1.1\r\nX: " + b"a" * 17_000) == [b"200", b"431"]


def test_an_upgrade_that_is_not_made_loses_no_answer(server):
    """hyper leaves such a connection without a word: what is kept back of a pipeline is sent all the same."""
    post = b"POST /v1/orders/next HTTP/1.1\r\nHost: localhost\r\n\r\n"
    upgrade = post.replace(b"Host", b"Connection: close, upgrade\r\nUpgrade: websocket\r\nHost")
    assert answered(server, 5 * post + upgrade) == [b"200"] * 6


@pytest.mark.parametrize("count", [20, 10_000])
def test_who_has_ended_its_side_is_answered(server, count):
    """A client that half-closes, as `nc -N` and some proxies do: also where the answer has to be waited for, and where it is more than a socket holds."""
    name = "slow" if count == 20 else "orders"
    data = f"POST /v1/{name}/next?n={count} HTTP/1.1\r\nHost: localhost\r\nAccept: application/octet-stream\r\n\r\n".encode()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(TIMEOUT_S)
        connection.connect(("127.0.0.1", server.ports["http"]))
        connection.sendall(50 * data if name == "orders" else data)
        connection.shutdown(socket.SHUT_WR)
        came = b"".join(iter(lambda: connection.recv(65536), b""))
    answers = 50 if name == "orders" else 1
    assert came.count(b"HTTP/1.1 200 OK") == answers and len(came) > answers * 8 * count


def test_answers_before_a_broken_request_reach_who_goes_on_sending(server):
    """A connection that is closed while there is more to read is reset, and what the client has not read by then is lost."""
    post = b"POST /v1/orders/next?n=10000 HTTP/1.1\r\nHost: localhost\r\nAccept: application/octet-stream\r\n\r\n"
    ask = b"*4\r\n$11\r\nFRAZIL.NEXT\r\n$6\r\norders\r\n$5\r\nCOUNT\r\n$5\r\n10000\r\n"
    for port, data, end in (("http", 9 * post + b"nonsense\r\n\r\n", b"HTTP/1.1 400"), ("resp", 9 * ask + b"*x\r\n", b"-ERR Protocol")):
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(TIMEOUT_S)
            connection.connect(("127.0.0.1", server.ports[port]))
            connection.sendall(data + 50_000 * b"x")
            came = b"".join(iter(lambda: connection.recv(4096), b""))
        assert end in came and len(came) > 9 * 80_000


def test_the_end_amid_a_command(tmp_path):
    """A client that has not read everything when the server ends reads it while it sends the rest."""
    ask = b"*4\r\n$11\r\nFRAZIL.NEXT\r\n$6\r\norders\r\n$5\r\nCOUNT\r\n$5\r\n10000\r\n"
    with Replica(tmp_path, "orders=standard node=1") as server, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(TIMEOUT_S)
        connection.connect(("127.0.0.1", server.ports["resp"]))
        connection.sendall(2 * ask + ask[:20])
        # The first answer is made, and under way.
        issued = re.compile(rb"^frazil_issued_total.* 10000\b", re.MULTILINE)
        assert process.await_true(lambda: issued.search(server.ask("GET", "/metrics", port="admin")[2]), TIMEOUT_S)
        server.signal(signal.SIGTERM)
        assert process.await_true(lambda: "draining" in server.log.read_text(), TIMEOUT_S)
        # It may be closed by now.
        with contextlib.suppress(OSError):
            connection.sendall(ask[20:])
            connection.shutdown(socket.SHUT_WR)
        came = b"".join(iter(lambda: connection.recv(65536), b""))
        # The rest may have come before the connection was told of the end, and is answered then.
        assert came.count(b"\r\n") in (2 * 20_001, 3 * 20_001)
        assert server.running.wait(TIMEOUT_S) == 0


def test_a_client_of_http_2_that_takes_nothing(server):
    """It asks for many answers at once, and they are made as it takes them."""
    count, size = 100, 10_000
    client = h2.connection.H2Connection()
    client.initiate_connection()
    client.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0})
    head = [(":method", "POST"), (":scheme", "http"), (":authority", "localhost"), (":path", f"/v1/orders/next?n={size}")]
    for stream in range(1, 2 * count, 2):
        client.send_headers(stream, [*head, ("accept", "application/octet-stream")], end_stream=True)
    before, first = resident_kib(server), requests(server)
    with socket.create_connection(("127.0.0.1", server.ports["http"]), timeout=TIMEOUT_S) as connection:
        connection.sendall(client.data_to_send())
        settled(lambda: requests(server))
        assert requests(server) - first < 10 and resident_kib(server) - before < 4000
        client.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 100_000})
        connection.sendall(client.data_to_send())
        bodies = collections.defaultdict(bytes)
        ended = 0
        while ended < count:
            came = connection.recv(65536)
            assert came
            for event in client.receive_data(came):
                if isinstance(event, h2.events.DataReceived):
                    bodies[event.stream_id] += event.data
                    client.increment_flow_control_window(event.flow_controlled_length)
                ended += isinstance(event, h2.events.StreamEnded)
            connection.sendall(client.data_to_send())
    ids = {number for body in bodies.values() for (number,) in struct.iter_unpack("<q", body)}
    assert len(ids) == count * size


def test_forms_of_requests_that_wait_are_small(server):
    """A form of 64 KB with 32,000 keys takes no more memory than it has bytes."""
    count, form = 50, 32_000 * b"a&" + b"bizType=orders&batchSize=10000"
    client = h2.connection.H2Connection()
    client.initiate_connection()
    # The first answer is not taken, and so the others wait.
    client.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0})
    head = [(":method", "POST"), (":scheme", "http"), (":authority", "localhost"), (":path", "/id/nextId")]
    before = resident_kib(server)
    with socket.create_connection(("127.0.0.1", server.ports["http"]), timeout=TIMEOUT_S) as connection:
        for stream in range(1, 2 * count, 2):
            client.send_headers(stream, [*head, ("content-type", "application/x-www-form-urlencoded")])
            left = form
            while left:
                room = min(client.local_flow_control_window(stream), client.max_outbound_frame_size)
                if room:
                    client.send_data(stream, left[:room], end_stream=len(left) <= room)
                    left = left[room:]
                connection.sendall(client.data_to_send())
                if not room:
                    client.receive_data(connection.recv(65536))
        settled(lambda: resident_kib(server))
        assert resident_kib(server) - before < count * 200


def test_a_batch_that_has_to_wait_holds_up_no_other_name(server):
    """The room of a connection is each name's own: clients of one proxy may share it."""
    client = h2.connection.H2Connection()
    client.initiate_connection()
    for stream, name in ((1, "slow"), (3, "orders")):
        head = [(":method", "POST"), (":scheme", "http"), (":authority", "localhost"), (":path", f"/v1/{name}/next?n=10000")]
        client.send_headers(stream, [*head, ("accept", "application/octet-stream")], end_stream=True)
    with socket.create_connection(("127.0.0.1", server.ports["http"]), timeout=TIMEOUT_S) as connection:
        connection.sendall(client.data_to_send())
        answered = []
        while not answered:
            came = connection.recv(65536)
            assert came
            answered += [event for event in client.receive_data(came) if isinstance(event, h2.events.ResponseReceived)]
    assert (answered[0].stream_id, dict(answered[0].headers)[b":status"]) == (3, b"200")


def test_a_pipeline_waits_for_its_client(server):
    """Answers that nobody takes do not pile up, however many requests have come; and none is lost."""
    count, size = 4000, 1000
    asked = f"POST /v1/orders/next?n={size} HTTP/1.1\r\nHost: localhost\r\nAccept: application/octet-stream\r\n\r\n".encode()

    before, first = resident_kib(server), requests(server)
    with socket.create_connection(("127.0.0.1", server.ports["http"]), timeout=TIMEOUT_S) as connection:
        # Half a request is always there.
        sending = threading.Thread(target=connection.sendall, args=(count * asked,))
        sending.start()
        # Until it stops: the kernel's buffers, some MB, are full, or all are answered.
        settled(lambda: requests(server))
        assert requests(server) - first < count and resident_kib(server) - before < 10_000
        ids = []
        with connection.makefile("rb") as answers:
            for _ in range(count):
                assert answers.readline() == b"HTTP/1.1 200 OK\r\n"
                length = int(http.client.parse_headers(answers)["Content-Length"])
                ids.append(struct.unpack(f"<{size}q", answers.read(length)))
        sending.join()
    assert [number for batch in ids for number in batch] == sorted({number for batch in ids for number in batch})


def test_a_browser_that_asks_whether_it_may_mints_nothing(server):
    before = server.ids("invoice", 1)[0]
    for path in ("/api/segment/get/invoice", "/id/nextIdSimple?bizType=invoice"):
        assert server.ask("OPTIONS", path)[0] == 405
    assert server.ids("invoice", 1) == [before + 1]


def test_the_end_does_not_wait_for_who_asks_nothing(tmp_path):
    """Half a head, and a client of HTTP/2 that does not answer: the drain's 20 s are for requests that are under way."""
    with Replica(tmp_path, "orders=standard node=1") as server, contextlib.ExitStack() as stack:
        for data in (b"POST /v1/ord", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.ports["http"]), timeout=TIMEOUT_S)).sendall(data)
        # Both are there.
        assert process.await_true(lambda: b'_connections{protocol="http"} 2' in server.ask("GET", "/metrics", port="admin")[2], TIMEOUT_S)
        assert server.end() == 0
        assert [event["event"] for event in server.events()][-2:] == ["draining", "ended"]


def test_the_description_is_read_and_not_written(server):
    status, headers, _ = server.ask("POST", "/openapi.json")
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_connections_leave_files_for_the_rest(tmp_path):
    """Each is an open file: with as many as there may be, the stores' connections and the operator's port still have theirs."""
    limited = ("prlimit", "--nofile=200:200", "--")
    with Replica(tmp_path, f"orders=standard store=file:{tmp_path}", under=limited) as server, contextlib.ExitStack() as stack:
        for port in ("http", "resp"):
            for _ in range(150):
                stack.enter_context(socket.create_connection(("127.0.0.1", server.ports[port]), timeout=TIMEOUT_S))
        assert server.is_ready()
        [told] = [event for event in server.events() if event["event"] == "connections.fewer"]
        assert told["level"] == "warning" and "200 files" in told["text"]
        assert not any(event["event"] == "accept.failed" for event in server.events())


def test_rows_waste_no_numbers(tmp_path):
    """Two replicas whose ranges alternate: what is asked for as a row is what is left of a range."""
    names = [f"invoice=segment store=file:{tmp_path} step=10 compat=tinyid"]
    with Replica(tmp_path, *names) as one, Replica(tmp_path, *names) as other:
        given = set()
        for server in itertools.islice(itertools.cycle((one, other)), 20):
            given.update(server.ids("invoice", 1))
            status, _, body = server.ask("GET", "/id/nextSegmentIdSimple?bizType=invoice")
            assert status == 200, body
            current, _, last, delta, _ = map(int, body.split(b","))
            row = range(current + delta, last + 1, delta)
            assert row and not given.intersection(row)
            given.update(row)
        counted = [server.ask("GET", "/metrics", port="admin")[2].decode() for server in (one, other)]
        issued = sum(int(re.search(r'^frazil_issued_total\{name="invoice".*\} (\d+)', text, re.MULTILINE)[1]) for text in counted)
        assert issued == len(given)
        # Of which INCRBY wants all at once: a range that is too short for it is given up, and the next one has them.
        with one.redis() as client:
            assert len({client.incrby("invoice", 9) for _ in range(20)}) == 20


def test_generators_of_one_name(tmp_path):
    """Each has 16 IDs a second, and a node number of its own; a batch ascends whoever made it."""
    layout = "layout='time:31@1s node:20 sequence:4 epoch:2025-01-01' exhausted=wait:60s"
    spec = f"{layout} store=file:{tmp_path} generators=4"
    with Replica(tmp_path, f"orders={spec}", "--max-wait-ms=60000") as server:
        ids = server.ids("orders", 200)
        assert ids == sorted(set(ids)) and len({number >> 4 & (1 << 20) - 1 for number in ids}) == 4
        text = server.ask("GET", "/metrics", port="admin")[2].decode()
        assert re.findall(r"^frazil_issued_total.* (\d+)", text, re.MULTILINE) == ["200"]
        with server.redis() as client:
            assert int(client.execute_command("FRAZIL.NEXT", "orders")) not in ids
        assert server.end() == 0


def test_a_right_on_a_name_that_is_not_served(tmp_path):
    """It is an error at the start, and a warning later: a right that the same file takes away must not wait until the name is mended."""
    file = tmp_path / "tokens.toml"
    token = '[shop]\nsecret = "0123456789abcdef"\nmint = ["{}"]\n'
    file.write_text(token.format("orders"))
    with Replica(tmp_path, "orders=standard node=1", f"--tokens={file}") as server:
        with server.redis(password="0123456789abcdef") as client:
            assert client.incr("orders") > 0
            file.write_text(token.format("ordesr"))
            told = run("check", "orders=standard node=1", f"--tokens={file}")
            assert told.returncode == 1 and '"UNKNOWN_KEY"' in told.stderr and "did you mean orders" in told.stderr, told
            server.reload("tokens.read")
            [unserved] = [event["text"] for event in server.events() if event["event"] == "tokens.unserved"]
            assert '"ordesr", which is not served here (did you mean orders?)' in unserved
            with pytest.raises(redis.ResponseError, match="shop"):
                client.incr("orders")
        with server.redis() as client, pytest.raises(redis.AuthenticationError):
            client.incr("orders")


def processor_s(server):
    """The time that the server has used of a processor."""
    fields = pathlib.Path(f"/proc/{server.running.pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_request_in_single_bytes_is_read_once(server):
    """It is not read from its start at each byte: 65 KB took 3.2 s of a processor, without a token."""

    def used(before):
        words = before.count(b"$") + 1
        ask = b"*%d\r\n" % words + before + b"$5000\r\n"
        with socket.create_connection(("127.0.0.1", server.ports["resp"]), timeout=TIMEOUT_S) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(ask)
            since = processor_s(server)
            for byte in 2_500 * b"xy":
                connection.sendall(bytes([byte]))
                # Long enough for the server to read it.
                time.sleep(0.0002)
            connection.sendall(b"\r\n")
            assert connection.recv(100).startswith(b"-ERR unknown command")
            return processor_s(server) - since

    short, long = used(b"$1\r\nx\r\n"), used(1000 * (b"$30\r\n" + 30 * b"x" + b"\r\n"))
    assert long < 2 * short + 0.1


def test_a_crowd_before_one_name_refuses_no_other(tmp_path):
    """Each name has a share of the places for requests that wait."""
    rounds, streams = 5, 100
    slow = "layout='time:31@1s node:20 sequence:4 epoch:2025-01-01' node=3 exhausted=wait:60s"
    # 4 IDs a millisecond: most requests have to wait.
    other = "layout='time:41@1ms node:10 sequence:2 epoch:2025-01-01' node=3 exhausted=wait:60s"

    def ask(stack, name, connections):
        client = h2.connection.H2Connection()
        client.initiate_connection()
        head = [(":method", "POST"), (":scheme", "http"), (":authority", "localhost"), (":path", f"/v1/{name}/next")]
        for stream in range(1, 2 * streams, 2):
            client.send_headers(stream, head, end_stream=True)
        data = client.data_to_send()
        for _ in range(connections):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.ports["http"]), timeout=TIMEOUT_S))
            connection.sendall(data)

    with Replica(tmp_path, f"slow={slow}", f"other={other}", "--max-wait-ms=60000") as server, contextlib.ExitStack() as stack:
        ask(stack, "slow", 400)
        settled(lambda: requests(server, "WOULD_BLOCK"))
        refused = requests(server, "WOULD_BLOCK")
        assert refused > 10_000
        for _ in range(rounds):
            wanted = requests(server) + 20 * streams
            ask(stack, "other", 20)
            assert process.await_true(lambda wanted=wanted: requests(server) >= wanted, TIMEOUT_S)
        assert requests(server, "WOULD_BLOCK") == refused


def test_a_slow_reader_gets_its_whole_answer(server):
    """It takes 5 KB a second; the kernel gave it up within 34 s, because it never had room for a whole segment."""

    def read(port, asked):
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
            connection.settimeout(TIMEOUT_S)
            connection.connect(("127.0.0.1", server.ports[port]))
            connection.sendall(asked)
            until, came = time.monotonic() + 40, b""
            while time.monotonic() < until:
                came += connection.recv(1024)
                time.sleep(0.2)
            # The rest at once.
            connection.shutdown(socket.SHUT_WR)
            return came + b"".join(iter(lambda: connection.recv(65536), b""))

    http = 2 * b"POST /v1/orders/next?n=10000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    resp = 2 * b"*4\r\n$11\r\nFRAZIL.NEXT\r\n$6\r\norders\r\n$5\r\nCOUNT\r\n$5\r\n10000\r\n"
    with concurrent.futures.ThreadPoolExecutor() as threads:
        given = threads.map(read, ("http", "resp"), (http, resp))
        for came, number in zip(given, (rb'"(\d{10,})"', rb"\r\n(\d{10,})\r\n"), strict=True):
            ids = re.findall(number, came)
            assert len(ids) == len(set(ids)) == 20_000


def test_answers_that_nobody_takes_are_bounded(tmp_path):
    """300 clients ask for 100,000 IDs each and read nothing: that held 692 MB over HTTP, and 901 MB over RESP."""
    http = b"POST /v1/orders/next?n=100000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    resp = b"*4\r\n$11\r\nFRAZIL.NEXT\r\n$6\r\norders\r\n$5\r\nCOUNT\r\n$6\r\n100000\r\n"
    with Replica(tmp_path, "orders=standard node=1", "items=standard node=2", "--max-count=100000") as server:
        start = resident_kib(server)
        for port, asked in (("http", http), ("resp", resp)):
            with contextlib.ExitStack() as stack:
                for _ in range(300):
                    connection = stack.enter_context(socket.socket())
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    connection.connect(("127.0.0.1", server.ports[port]))
                    # The kernel has room for the first one or two.
                    connection.sendall(4 * asked)
                settled(lambda: resident_kib(server) // 1024)
                assert resident_kib(server) < 128 * 1024
                # Who takes what it asks for is served meanwhile: other names whole, and this one in smaller batches.
                assert len(set(server.ids("items", 100_000))) == 100_000
                assert len(set(server.ids("orders", 1000))) == 1000
                with server.redis() as client:
                    assert len(client.execute_command("FRAZIL.NEXT", "items", "COUNT", 100_000)) == 100_000
            assert process.await_true(lambda: resident_kib(server) < start + 32 * 1024, TIMEOUT_S), (port, start, resident_kib(server))


def test_a_large_batch_is_sent_before_the_next_one_is_made(tmp_path):
    """It has room that others wait for, and with enough of them this connection as well."""
    # 1024 IDs a second: 4 batches of 600 take at least two ticks after the first.
    name = "orders=layout='time:31@1s node:20 sequence:10 epoch:2025-01-01' node=3 start=zero exhausted=wait:60s"
    batches, size, came = 4, 600, []
    asked = b"*4\r\n$11\r\nFRAZIL.NEXT\r\n$6\r\norders\r\n$5\r\nCOUNT\r\n$3\r\n%d\r\n" % size
    with Replica(tmp_path, name, "--max-wait-ms=60000") as server:
        connection = socket.create_connection(("127.0.0.1", server.ports["resp"]), timeout=TIMEOUT_S)
        with connection, connection.makefile("rb") as answers:
            connection.sendall(batches * asked)
            for _ in range(batches):
                assert answers.readline() == b"*%d\r\n" % size
                for _ in range(2 * size):
                    answers.readline()
                came.append(time.monotonic())
    assert came[-1] - came[0] > 0.9
