"""Hostile and careless clients. Each of these requests once showed a defect."""

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
    """The empty body comes in chunks, or in a separate HTTP/2 frame. Node and others send this for a POST."""
    url = f"http://127.0.0.1:{server.ports['http']}/v1/orders/next"
    with httpx.Client(http1=not http2, http2=http2, timeout=TIMEOUT_S) as client:
        answer = client.post(url, content=iter(()))
        assert answer.status_code == 200, answer.text
        answer = client.post(url, content=iter((b'{"n":', b"2}")))
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "SPEC")


def test_a_page_in_a_browser_mints_nothing_over_resp(server):
    """A page can make the browser send HTTP to this machine, with RESP commands as the body."""
    with server.redis() as client:
        before = client.incr("invoice")
        hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32)
        for head in (b"POST / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n", hello, b"OPTIONS / HTTP/1.1\r\nhost: [::]\r\n"):
            assert b":" + str(before + 1).encode() not in server.raw(head + b"\r\nINCR invoice\r\n")
        assert client.incr("invoice") == before + 1


def test_a_body_is_not_taken_for_a_second_request(server):
    """If a proxy and the server disagree about the end of a request, the server could take its body for a second request."""
    hidden = b"POST /v1/orders/next HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for head in (b"Content-Length: 0\r\nTransfer-Encoding: chunked", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"):
        answer = server.raw(b"POST /v1/orders/next HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n" + hidden, port="http")
        assert b" 200 " not in answer


def resident_kib(server):
    return int(re.search(r"^VmRSS:\s+(\d+) kB$", pathlib.Path(f"/proc/{server.running.pid}/status").read_text(), re.MULTILINE)[1])


def requests(server, code="OK"):
    """Returns the number of requests over HTTP that have this answer."""
    text = server.ask("GET", "/metrics", port="admin")[2].decode()
    found = re.search(rf'^frazil_server_requests_total{{protocol="http",code="{code}"}} (\d+)$', text, re.MULTILINE)
    # The metrics have no line for a refusal before the first one.
    return 0 if found is None and code != "OK" else int(found[1])


def settled(count):
    """Waits until a growing value has been stable for 2 s."""
    seen = []
    while len(seen) < 20 or seen[-1] != seen[-20]:
        seen.append(count())
        time.sleep(0.1)


def answered(server, data):
    """Sends bytes; returns the statuses of the answers, until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", server.ports["http"]), timeout=TIMEOUT_S) as connection:
        connection.sendall(data)
        return re.findall(rb"HTTP/1.[01] (\d+) ", b"".join(iter(lambda: connection.recv(65536), b"")))


def test_the_last_answer_of_a_connection_comes(server):
    """The answer comes even if more bytes follow the last request, or if they are not a request."""
    post = b"POST /v1/orders/next HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = post.replace(b"Host", b"Connection: close\r\nHost")
    assert answered(server, last + b"\r\n") == [b"200"]
    assert answered(server, post + last.replace(b"/1.1", b"/1.0") + post) == [b"200"] * 2
    assert answered(server, 5 * post + b"nonsense\r\n\r\n") == [b"200"] * 5 + [b"400"]
    assert answered(server, post + b"POST /v1/orders/next HTTP/1.1\r\nX: " + b"a" * 17_000) == [b"200", b"431"]


def test_a_refused_upgrade_loses_no_answer(server):
    """hyper drops such a connection silently, but the buffered answers of a pipeline must still be sent."""
    post = b"POST /v1/orders/next HTTP/1.1\r\nHost: localhost\r\n\r\n"
    upgrade = post.replace(b"Host", b"Connection: close, upgrade\r\nUpgrade: websocket\r\nHost")
    assert answered(server, 5 * post + upgrade) == [b"200"] * 6


@pytest.mark.parametrize("count", [20, 10_000])
def test_a_half_closed_connection_is_answered(server, count):
    """`nc -N` and some proxies half-close. They are answered even if the answer takes time, or is larger than a socket's buffer."""
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


def test_answers_before_a_broken_request_reach_a_client_that_keeps_sending(server):
    """Closing a connection with unread input resets it, and the client loses the answers that it has not read by then."""
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


def test_shutdown_in_the_middle_of_a_command(tmp_path):
    """A client that has unread answers when the server ends can read them while it sends the rest."""
    ask = b"*4\r\n$11\r\nFRAZIL.NEXT\r\n$6\r\norders\r\n$5\r\nCOUNT\r\n$5\r\n10000\r\n"
    with Replica(tmp_path, "orders=standard node=1") as server, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(TIMEOUT_S)
        connection.connect(("127.0.0.1", server.ports["resp"]))
        connection.sendall(2 * ask + ask[:20])
        # The first answer was made and is being sent.
        issued = re.compile(rb"^frazil_issued_total.* 10000\b", re.MULTILINE)
        assert process.await_true(lambda: issued.search(server.ask("GET", "/metrics", port="admin")[2]), TIMEOUT_S)
        server.signal(signal.SIGTERM)
        assert process.await_true(lambda: "draining" in server.log.read_text(), TIMEOUT_S)
        # The server may have closed the connection by now.
        with contextlib.suppress(OSError):
            connection.sendall(ask[20:])
            connection.shutdown(socket.SHUT_WR)
        came = b"".join(iter(lambda: connection.recv(65536), b""))
        # If the rest arrived before the connection saw the shutdown, it is answered.
        assert came.count(b"\r\n") in (2 * 20_001, 3 * 20_001)
        assert server.running.wait(TIMEOUT_S) == 0


def test_a_client_of_http_2_that_reads_nothing(server):
    """The client requests many answers at once; the server makes them only as the client reads them."""
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
    """A form of 64 KB with 32,000 keys takes no more memory than its bytes."""
    count, form = 50, 32_000 * b"a&" + b"bizType=orders&batchSize=10000"
    client = h2.connection.H2Connection()
    client.initiate_connection()
    # The client does not read the first answer, so the others wait.
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


def test_a_batch_that_has_to_wait_does_not_delay_other_names(server):
    """Each name has its own buffer limit in a connection, because clients of one proxy may share the connection."""
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
    """Unread answers do not pile up, however many requests have come, and none is lost."""
    count, size = 4000, 1000
    asked = f"POST /v1/orders/next?n={size} HTTP/1.1\r\nHost: localhost\r\nAccept: application/octet-stream\r\n\r\n".encode()

    before, first = resident_kib(server), requests(server)
    with socket.create_connection(("127.0.0.1", server.ports["http"]), timeout=TIMEOUT_S) as connection:
        # Half a request is always in the buffer.
        sending = threading.Thread(target=connection.sendall, args=(count * asked,))
        sending.start()
        # The count stops when the kernel's buffers of some MB are full, or when all requests are answered.
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


def test_shutdown_does_not_wait_for_idle_connections(tmp_path):
    """The drain's 20 s are only for requests in progress, not for a half-sent head or an HTTP/2 client that does not answer."""
    with Replica(tmp_path, "orders=standard node=1") as server, contextlib.ExitStack() as stack:
        for data in (b"POST /v1/ord", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.ports["http"]), timeout=TIMEOUT_S)).sendall(data)
        # Both connections are accepted.
        assert process.await_true(lambda: b'_connections{protocol="http"} 2' in server.ask("GET", "/metrics", port="admin")[2], TIMEOUT_S)
        assert server.end() == 0
        assert [event["event"] for event in server.events()][-2:] == ["draining", "ended"]


def test_the_description_is_read_and_not_written(server):
    status, headers, _ = server.ask("POST", "/openapi.json")
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_connections_leave_files_for_the_rest(tmp_path):
    """Connections are open files. At their limit, files remain for the stores' connections and the operator's port."""
    limited = ("prlimit", "--nofile=200:200", "--")
    with Replica(tmp_path, f"orders=standard store=file:{tmp_path}", under=limited) as server, contextlib.ExitStack() as stack:
        for port in ("http", "resp"):
            for _ in range(150):
                stack.enter_context(socket.create_connection(("127.0.0.1", server.ports[port]), timeout=TIMEOUT_S))
        assert server.is_ready()
        [fewer] = [event for event in server.events() if event["event"] == "connections.fewer"]
        assert fewer["level"] == "warning" and "200 files" in fewer["text"]
        assert not any(event["event"] == "accept.failed" for event in server.events())


def test_rows_waste_no_numbers(tmp_path):
    """The ranges of two replicas alternate, and a request for a row gets the rest of a range."""
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
        # INCRBY needs all numbers of a batch from one range: it abandons a range that is too short, and uses the next one.
        with one.redis() as client:
            assert len({client.incrby("invoice", 9) for _ in range(20)}) == 20


def test_generators_of_one_name(tmp_path):
    """Each generator makes 16 IDs a second with its own node number. A batch ascends even if several generators made it."""
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
    """An error at the start, but a warning on a reload, because the file may revoke another right, which must take effect at once."""
    file = tmp_path / "tokens.toml"
    token = '[shop]\nsecret = "0123456789abcdef"\nmint = ["{}"]\n'
    file.write_text(token.format("orders"))
    with Replica(tmp_path, "orders=standard node=1", f"--tokens={file}") as server:
        with server.redis(password="0123456789abcdef") as client:
            assert client.incr("orders") > 0
            file.write_text(token.format("ordesr"))
            result = run("check", "orders=standard node=1", f"--tokens={file}")
            assert result.returncode == 1 and '"UNKNOWN_KEY"' in result.stderr and "did you mean orders" in result.stderr, result
            server.reload("tokens.read")
            [unserved] = [event["text"] for event in server.events() if event["event"] == "tokens.unserved"]
            assert '"ordesr", which is not served here (did you mean orders?)' in unserved
            with pytest.raises(redis.ResponseError, match="shop"):
                client.incr("orders")
        with server.redis() as client, pytest.raises(redis.AuthenticationError):
            client.incr("orders")


def processor_s(server):
    """Returns the processor time of the server."""
    fields = pathlib.Path(f"/proc/{server.running.pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_request_in_single_bytes_is_read_once(server):
    """The server does not parse a request from its start after each byte: 65 KB took 3.2 s of a processor, without a token."""

    def used(before):
        words = before.count(b"$") + 1
        ask = b"*%d\r\n" % words + before + b"$5000\r\n"
        with socket.create_connection(("127.0.0.1", server.ports["resp"]), timeout=TIMEOUT_S) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(ask)
            since = processor_s(server)
            for byte in 2_500 * b"xy":
                connection.sendall(bytes([byte]))
                # Long enough for the server to read each byte alone.
                time.sleep(0.0002)
            connection.sendall(b"\r\n")
            assert connection.recv(100).startswith(b"-ERR unknown command")
            return processor_s(server) - since

    short, long = used(b"$1\r\nx\r\n"), used(1000 * (b"$30\r\n" + 30 * b"x" + b"\r\n"))
    assert long < 2 * short + 0.1


def test_a_crowd_before_one_name_refuses_no_other(tmp_path):
    """Each name has a share of the slots for waiting requests."""
    rounds, streams = 5, 100
    slow = "layout='time:31@1s node:20 sequence:4 epoch:2025-01-01' node=3 exhausted=wait:60s"
    # At 4 IDs a millisecond, most requests have to wait.
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
    """At 5 KB a second, the kernel dropped the connection within 34 s, because it never had room for a whole segment."""

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
            # The rest without pauses.
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
    """300 clients that request 100,000 IDs each and read nothing used 692 MB over HTTP, and 901 MB over RESP."""
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
                # A client that reads its answers is still served: other names in full, and this name in smaller batches.
                assert len(set(server.ids("items", 100_000))) == 100_000
                assert len(set(server.ids("orders", 1000))) == 1000
                with server.redis() as client:
                    assert len(client.execute_command("FRAZIL.NEXT", "items", "COUNT", 100_000)) == 100_000
            assert process.await_true(lambda: resident_kib(server) < start + 32 * 1024, TIMEOUT_S), (port, start, resident_kib(server))


def connections(server, port):
    text = server.ask("GET", "/metrics", port="admin")[2].decode()
    return int(re.search(rf'^frazil_server_connections{{protocol="{port}"}} (\d+)$', text, re.MULTILINE)[1])


def http2_requests(count, streams, window):
    """Returns the first bytes of an HTTP/2 client, and the client."""
    client = h2.connection.H2Connection()
    client.initiate_connection()
    client.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
    head = [(":method", "POST"), (":scheme", "http"), (":authority", "localhost"), (":path", f"/v1/orders/next?n={count}")]
    for stream in range(1, 2 * streams, 2):
        client.send_headers(stream, head, end_stream=True)
    return client, client.data_to_send()


def read_slowly(server, count):
    """Reads one answer over HTTP/2 at 2 KB a second, and returns its IDs."""
    client, data = http2_requests(count, 1, 2048)
    body, is_over = bytearray(), False
    with socket.create_connection(("127.0.0.1", server.ports["http"]), timeout=TIMEOUT_S) as connection:
        connection.sendall(data)
        while not is_over:
            came = connection.recv(65536)
            assert came, f"closed after {len(body)} bytes"
            read = 0
            for event in client.receive_data(came):
                if isinstance(event, h2.events.DataReceived):
                    body += event.data
                    read += event.flow_controlled_length
                is_over = is_over or isinstance(event, h2.events.StreamEnded)
            if read and not is_over:
                time.sleep(read / 2048)
                client.increment_flow_control_window(read)
                client.increment_flow_control_window(read, 1)
            connection.sendall(client.data_to_send())
    return re.findall(rb'"(\d{10,})"', bytes(body))


def test_small_answers_that_nobody_reads_are_bounded(tmp_path):
    """Batches of up to 50 IDs over HTTP, and of up to 500 over RESP, had no limit: 400 clients of HTTP/2 held 150 MB."""
    crowds = {
        "http": (400, http2_requests(50, 128, 0)[1]),
        "resp": (600, 100 * b"*4\r\n$11\r\nFRAZIL.NEXT\r\n$6\r\norders\r\n$5\r\nCOUNT\r\n$3\r\n500\r\n"),
    }
    with (
        Replica(tmp_path, "orders=standard node=1", "--max-connections=1000") as server,
        concurrent.futures.ThreadPoolExecutor() as threads,
    ):
        slow = threads.submit(read_slowly, server, 5000)
        for port, (count, data) in crowds.items():
            before = resident_kib(server)
            with contextlib.ExitStack() as stack:
                for _ in range(count):
                    connection = stack.enter_context(socket.socket())
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    connection.connect(("127.0.0.1", server.ports[port]))
                    connection.setblocking(False)
                    connection.send(data)
                settled(lambda: resident_kib(server) // 1024)
                assert (resident_kib(server) - before) / 1024 < 64, port
                # Clients that read are served beside the crowd.
                with httpx.Client(http1=False, http2=True, timeout=TIMEOUT_S) as client:
                    for _ in range(10):
                        answer = client.post(f"http://127.0.0.1:{server.ports['http']}/v1/orders/next?n=50")
                        assert (answer.status_code, len(answer.json()["ids"])) == (200, 50)
                with server.redis() as client:
                    assert len(client.execute_command("FRAZIL.NEXT", "orders", "COUNT", 500)) == 500
                if port == "http":
                    # The crowd has read nothing for 37 s, and the server needs the memory.
                    assert process.await_true(lambda count=count: connections(server, "http") < count, TIMEOUT_S)
        assert len(set(slow.result())) == 5000


def unread(server, stack, count, data):
    """Opens connections that send bytes, as far as the server takes them, and read nothing."""
    connections = []
    for _ in range(count):
        connection = stack.enter_context(socket.socket())
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", server.ports["http"]))
        connection.setblocking(False)
        connections.append(connection)
    send_some(server, connections, data)
    return connections


def send_some(server, connections, data):
    for connection in connections:
        sent = 0
        with contextlib.suppress(BlockingIOError):
            while sent < len(data):
                sent += connection.send(data[sent:])
    settled(lambda: resident_kib(server) // 1024)


def http2_over_budget(server, stack):
    unread(server, stack, 120, http2_requests(50, 128, 0)[1])


def test_a_form_is_read_beside_a_crowd(tmp_path):
    """64 bytes of it were read every 2 s, and after 10 s it was refused as one that does not end."""
    form = b"bizType=orders&batchSize=10&x=" + 900 * b"x"
    with Replica(tmp_path, "orders=standard node=1 compat=tinyid") as server, contextlib.ExitStack() as stack:
        http2_over_budget(server, stack)
        with httpx.Client(http1=False, http2=True, timeout=TIMEOUT_S) as client:
            kind = {"content-type": "application/x-www-form-urlencoded"}
            answer = client.post(f"http://127.0.0.1:{server.ports['http']}/id/nextId", content=form, headers=kind)
            assert len(answer.json()["data"]) == 10, answer.text


def test_reading_resumes_after_a_blocked_write(tmp_path):
    """Over the budget, a connection of HTTP/2 is not read while its socket accepts nothing. It is woken when the socket does."""
    with Replica(tmp_path, "orders=standard node=1") as server, contextlib.ExitStack() as stack:
        http2_over_budget(server, stack)
        client, data = http2_requests(10_000, 1, 1 << 20)
        client.increment_flow_control_window(1 << 20)
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            # The server's own ping would wake the connection after 30 s.
            connection.settimeout(15)
            connection.connect(("127.0.0.1", server.ports["http"]))
            connection.sendall(data + client.data_to_send())
            time.sleep(3)
            client.ping(b"are you?")
            connection.sendall(client.data_to_send())
            seen = set()
            while not {h2.events.StreamEnded, h2.events.PingAckReceived} <= seen:
                came = connection.recv(65536)
                assert came
                seen.update(map(type, client.receive_data(came)))


def test_answers_without_a_body_are_counted(tmp_path):
    """1000 clients of HTTP/2 that took no answers to HEAD held 126 MB of them."""
    client, data = http2_requests(5000, 1, 1 << 20)
    head = [(":method", "HEAD"), (":scheme", "http"), (":authority", "localhost"), (":path", "/v1/orders/decode/7")]
    client.increment_flow_control_window(1 << 20)
    data += client.data_to_send()
    for stream in range(3, 257, 2):
        client.send_headers(stream, head, end_stream=True)
    with Replica(tmp_path, "orders=standard node=1") as server, contextlib.ExitStack() as stack:
        connections, before = unread(server, stack, 1000, data), resident_kib(server)
        # Now no socket accepts more.
        send_some(server, connections, client.data_to_send())
        assert (resident_kib(server) - before) / 1024 < 100


def test_requests_that_wait_for_room_are_bounded(tmp_path):
    """Neither their number nor their heads had a limit: 100 clients of HTTP/2 held 500 MB."""
    client, data = http2_requests(11_000, 1, 0)
    head = [(":method", "POST"), (":scheme", "http"), (":authority", "localhost"), (":path", "/v1/orders/next?n=51"), ("x", 15_000 * "a")]
    for stream in range(3, 257, 2):
        client.send_headers(stream, head, end_stream=True)
    data += client.data_to_send()
    arguments = "orders=standard node=1", "--max-count=100000", "--max-wait-ms=60000"
    with Replica(tmp_path, *arguments) as server, contextlib.ExitStack() as stack:
        before = resident_kib(server)
        unread(server, stack, 100, data)
        assert (resident_kib(server) - before) / 1024 < 128


def test_a_large_batch_is_sent_before_the_next_one_is_made(tmp_path):
    """A finished batch occupies buffer space that other connections wait for, and with enough of them this connection, too."""
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
