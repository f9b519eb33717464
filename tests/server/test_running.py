"""The life of a server: settings, tokens, counters, shutdown; and two servers on one store."""

import collections
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import uuid

import clock
import frazil
import pytest
import redis
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from replica import PROGRAM, ROOT, TIMEOUT_S, Replica, process, run

POSTGRESQL = os.environ.get("FRAZIL_TEST_POSTGRESQL")
SHOP, OPERATOR, OTHER = (f"{label}-{uuid.uuid4()}" for label in ("shop", "operator", "other"))


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_a_flag_goes_before_the_environment_and_that_before_the_file(tmp_path):
    file = tmp_path / "server.toml"
    file.write_text('http = ":1001"\nresp = ":1002"\nadmin = ":1003"\n[names]\na = "standard node=1"\nb = "standard node=2"\n')
    env = {"FRAZIL_SERVER_HTTP": ":2001", "FRAZIL_SERVER_RESP": ":2002", "FRAZIL_SERVER_NAMES": "b=standard node=3\nc=standard node=4"}
    result = run("check", "--config", file, "--http=:3001", "c=segment store=memory", env=env)
    assert result.returncode == 0, result.stderr
    addresses = ["http   127.0.0.1:3001", "resp   127.0.0.1:2002", "admin  127.0.0.1:1003"]
    names = ["name   a snowflake: standard node=1", "name   b snowflake: standard node=3", "name   c segment: c store=memory"]
    assert [line for line in result.stdout.splitlines() if not line.startswith("tokens")] == addresses + names


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ([], "nothing to serve"),
        (["a=standard node=1", "--http=0.0.0.0:0"], "--tokens"),
        (["a=standard node=1", "--admin=[::]:0"], "--insecure"),
        (["a=standard node=5000"], "node=5000"),
        (["a=standard nod=5"], "did you mean node"),
        (["a=segment step=5"], "store"),
        (["a=buffered standard node=1 size=0"], "size=0"),
        (["a=standard node=1", "--max-count=0"], "max-count=0"),
        (["a=standard node=1", "--tokens=/no/such/file"], "/no/such/file"),
        (["a=standard node=1", "--http=:8080", "--resp=:8080"], "http=127.0.0.1:8080 and resp=127.0.0.1:8080 are one address: give each"),
        (["a=standard node=1", "--http=:8080", "--admin=[::]:8080", "--insecure"], "admin=[::]:8080 are one address"),
        (["a=standard node=1", "--http=unix:/a", "--admin=unix:/a"], "http=unix:/a and admin=unix:/a are one address"),
        (["a=standard store=redis://:hunter2@db", "orders standard"], "give each served name as NAME=SPEC, for example"),
    ],
)
def test_wrong_settings_are_refused_at_the_start(arguments, expected):
    for command in (["check", *arguments], arguments):
        ended = run(*command)
        assert ended.returncode != 0 and expected in ended.stderr and "hunter2" not in ended.stderr, ended.stderr


@pytest.mark.parametrize("slip, command", [("chek", "check"), ("Check", "check"), ("helth", "health"), ("begn", "begin")])
def test_a_command_that_is_misspelt(slip, command):
    result = run(slip, "a=standard node=1")
    assert result.returncode == 1 and f"is not a command (did you mean {command}?); give each served name as NAME=SPEC" in result.stderr, (
        result
    )


def test_different_addresses_are_accepted():
    result = run("check", "a=standard node=1", "--http=0.0.0.0:8080", "--resp=[::1]:8080", "--admin=:0", "--insecure")
    assert result.returncode == 0, result


def test_a_variable_that_is_wrong_is_named_with_what_is_allowed():
    for name, value, wanted in (
        ("ACCESS_LOG", "1", "[possible values: true, false]"),
        ("MAX_COUNT", "many", "'many' for '--max-count <N>'"),
    ):
        result = run("check", "a=standard node=1", env={f"FRAZIL_SERVER_{name}": value})
        assert result.returncode == 1 and f"FRAZIL_SERVER_{name}: invalid value" in result.stderr and wanted in result.stderr, result


def test_everyone_is_served_if_a_setting_allows_it():
    for insecure in ({"FRAZIL_SERVER_INSECURE": "true"}, None):
        arguments = [] if insecure else ["--insecure"]
        result = run("check", "a=standard node=1", "--http=0.0.0.0:8080", *arguments, env=insecure)
        assert result.returncode == 0 and "0.0.0.0:8080" in result.stdout, result.stderr


def test_variables_that_are_empty_or_misspelt():
    # Kubernetes sets such variables in pods if a service has the server's name.
    others = {"FRAZIL_SERVER_PORT": "tcp://10.0.0.1:80", "FRAZIL_SERVER_SERVICE_HOST": "10.0.0.1", "FRAZIL_SERVER_PORT_80_TCP": "x"}
    result = run("check", "a=standard node=1", env=others | {"FRAZIL_SERVER_HTTP": "", "FRAZIL_SERVER_MAX_COUNT": ""})
    assert result.returncode == 0 and "127.0.0.1:8080" in result.stdout, result.stderr
    for slip, meant in (
        ("TOKEN", "TOKENS"),
        ("HTPP", "HTTP"),
        ("MAXCOUNT", "MAX_COUNT"),
        ("TLS_CLIENTS_CA", "TLS_CLIENT_CA"),
        ("NAME", "NAMES"),
    ):
        result = run("check", "a=standard node=1", env={f"FRAZIL_SERVER_{slip}": "1"})
        assert result.returncode == 1 and f"FRAZIL_SERVER_{slip} is not a setting (did you mean {meant}?)" in result.stderr, result.stderr


def test_a_variable_that_says_no_goes_before_the_file(tmp_path):
    file = tmp_path / "server.toml"
    file.write_text('insecure = true\nhttp = "0.0.0.0:8080"\n[names]\na = "standard node=1"\n')
    assert run("check", "--config", file).returncode == 0
    for arguments, env in ([], {"FRAZIL_SERVER_INSECURE": "false"}), (["--insecure=false"], {"FRAZIL_SERVER_INSECURE": "true"}):
        result = run("check", "--config", file, *arguments, env=env)
        assert result.returncode == 1 and "--tokens" in result.stderr, result.stderr


@pytest.mark.parametrize("line", ['names = "SPEC"', 'max-count = "SPEC"', 'insecure = "SPEC"', '[names]\na = ["SPEC"]', 'a = "SPEC"'])
def test_a_wrong_setting_shows_no_password(tmp_path, line):
    file = tmp_path / "server.toml"
    file.write_text(line.replace("SPEC", "standard store=postgresql://us:s3cret@db/a, expected b") + "\n")
    result = run("check", "--config", file)
    assert result.returncode == 1 and f"{file}:" in result.stderr and "s3cret" not in result.stderr, result.stderr


def test_a_check_whose_output_is_closed():
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [PROGRAM, "check", "a=standard node=1"], stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=TIMEOUT_S
        )
    assert result.returncode == 1 and json.loads(result.stderr)["code"] == "INTERNAL", result.stderr


def test_an_address_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = run("a=standard node=1", f"--http={address}")
    assert result.returncode == 1 and f"cannot listen on {address}: " in result.stderr, result.stderr


def write_tokens(file, mint):
    shop = f'[shop]\nsecret = "env:SHOP"\nmint = {json.dumps(mint)}\n'
    file.write_text(f'{shop}[operator]\nsecret = "{OPERATOR}"\nlease = ["*"]\nadmin = true\n')


def test_tokens(tmp_path):
    file = tmp_path / "tokens.toml"
    write_tokens(file, ["orders"])
    names = ["orders=standard node=1 compat=tinyid", "invoice=segment store=memory"]
    with Replica(tmp_path, *names, f"--tokens={file}", env={"SHOP": SHOP}) as server:

        def status(path, token=None, method="POST", port="http"):
            return server.ask(method, path, bearer(token) if token else {}, port=port)[0]

        def last_reload():
            metrics = server.ask("GET", "/metrics", bearer(OPERATOR), port="admin")[2].decode()
            assert re.search(r'^frazil_server_build_info{version="\d+\.\d+\.\d+"} 1$', metrics, re.MULTILINE)
            return re.search(r"^frazil_server_last_reload_successful (\d)$", metrics, re.MULTILINE)[1]

        assert [status("/v1/orders/next", token) for token in (None, OTHER, SHOP, OPERATOR)] == [401, 401, 200, 403]
        # Without the right, a client does not learn which names exist.
        assert [status(f"/v1/{name}/next", SHOP) for name in ("invoice", "none")] == [403, 403]
        assert [status("/v1/invoice/ranges", token) for token in (SHOP, OPERATOR)] == [403, 200]
        assert [status("/metrics", token, "GET", "admin") for token in (None, SHOP, OPERATOR)] == [401, 403, 200]
        assert [status(path, None, "GET", "admin") for path in ("/healthz", "/readyz")] == [200, 200]
        assert server.ask("POST", "/v1/orders/next", {"Authorization": "Basic eDp5"})[1]["WWW-Authenticate"] == "Bearer"
        tinyid = f"/tinyid/id/nextId?bizType=orders&token={OTHER}"
        assert server.json("GET", tinyid) == (200, {"data": None, "code": 5, "message": "token is error"})
        assert server.json("GET", tinyid.replace(OTHER, SHOP))[1]["code"] == 200

        with server.redis() as client, pytest.raises(redis.AuthenticationError):
            client.incr("orders")
        with server.redis(password=OTHER) as client, pytest.raises(redis.AuthenticationError):
            client.ping()
        with server.redis(password=SHOP, protocol=3) as client:
            assert client.incr("orders") > 0
            with pytest.raises(redis.ResponseError, match="shop"):
                client.incr("invoice")
            # Rights also change on open connections. A wrong file changes nothing.
            file.write_text("[shop]\nsecret = 5")
            server.reload("tokens.kept")
            assert client.incr("orders") > 0
            assert last_reload() == "0"
            write_tokens(file, ["invoice"])
            server.reload("tokens.read")
            assert last_reload() == "1"
            assert client.incr("invoice") == 2
            with pytest.raises(redis.ResponseError, match="shop"):
                client.incr("orders")
            # `write_text` makes a file that every account may read, until chmod.
            file.chmod(0o640)
            server.reload("tokens.read")
        exposed = [event["text"] for event in server.events() if event["event"] == "tokens.exposed"]
        assert len(exposed) == 2 and all(text.endswith(f"chmod o-r {file}") for text in exposed)
        metrics = server.ask("GET", "/metrics", bearer(OPERATOR), port="admin")[2].decode()
        for code in ("NOAUTH", "WRONGPASS", "NOPERM|FORBIDDEN"):
            assert re.search(rf'^frazil_server_requests_total{{protocol="resp",code="({code})"}} [1-9]', metrics, re.MULTILINE)
        assert server.end() == 0
        refused = [event for event in server.events() if event["event"] == "access.refused"]
        assert {(event["protocol"], event["code"]) for event in refused} == {
            *(("http", code) for code in ("UNAUTHORIZED", "FORBIDDEN")),
            *(("admin", code) for code in ("UNAUTHORIZED", "FORBIDDEN")),
            *(("resp", code) for code in ("NOAUTH", "WRONGPASS", "FORBIDDEN")),
        }
        assert all(event["peer"].startswith("127.0.0.1:") for event in refused)
        assert all('the token "' in event["text"] for event in refused if event["code"] == "FORBIDDEN"), "whose it is"
        for secret in (SHOP, OPERATOR, OTHER):
            assert secret not in server.log.read_text() + metrics


def test_metrics_count_requests(tmp_path):
    with Replica(tmp_path, "orders=standard store=memory", "invoice=segment store=memory") as server:
        server.ids("orders", 1000)
        assert server.ask("POST", "/v1/orders/next?n=0")[0] == 400
        with server.redis() as client:
            client.incr("invoice")
        families = {
            family.name: family for family in text_string_to_metric_families(server.ask("GET", "/metrics", port="admin")[2].decode())
        }
        assert {metric.prometheus.removesuffix("_total") for metric in frazil.METRICS} <= set(families)

        def value(family, **labels):
            samples = families[family].samples
            [found] = [s.value for s in samples if labels.items() <= s.labels.items() and not s.name.endswith(("_bucket", "_sum"))]
            return found

        assert 1e6 < value("process_resident_memory_bytes") < 1e9 and value("process_open_fds") > 5
        assert 0 <= value("process_cpu_seconds") < TIMEOUT_S and 0 <= time.time() - value("process_start_time_seconds") < TIMEOUT_S
        assert value("frazil_issued", name="orders") == 1000 and value("frazil_issued", name="invoice") == 1
        assert value("frazil_lease_left_seconds", name="orders") > 0 and value("frazil_range_left", name="invoice") > 0
        assert value("frazil_server_requests", protocol="http", code="OK") == 1
        assert value("frazil_server_requests", protocol="http", code="OUT_OF_RANGE") == 1
        assert value("frazil_server_request_seconds", protocol="http") == 2


def test_the_access_log(tmp_path):
    """Off by default. If it is on, each request and each pipeline is logged, without tokens."""
    file = tmp_path / "tokens.toml"
    write_tokens(file, ["orders"])
    with Replica(tmp_path, "orders=standard node=1 compat=tinyid", f"--tokens={file}", "--access-log", env={"SHOP": SHOP}) as server:
        for path, headers in ((f"/id/nextId?bizType=orders&token={SHOP}", {}), (f"/v1/x{'y' * 500}/next?{OTHER}", bearer(SHOP))):
            server.ask("POST", path, headers)
        # A pipe accepts only a short line as a whole.
        server.ask(10_000 * "X", "/")
        with server.redis(password=SHOP) as client:
            client.execute_command("FRAZIL.NEXT", "orders")
        assert server.end() == 0
        log = server.log.read_text()
        assert SHOP not in log and OTHER not in log
        requests = [event for event in server.events() if event["event"] == "request"]
    tinyid, unknown, no_method = (event for event in requests if event["protocol"] == "http")
    assert (tinyid["method"], tinyid["path"], tinyid["status"], tinyid["code"]) == ("POST", "/id/nextId", 200, "OK")
    assert (unknown["status"], unknown["code"], len(unknown["path"])) == (403, "FORBIDDEN", 256)
    assert (no_method["status"], len(no_method["method"])) == (404, 256) and max(map(len, log.splitlines())) < 1000
    assert tinyid["peer"].startswith("127.0.0.1:") and tinyid["seconds"] >= 0
    asked = [event for event in requests if event["protocol"] == "resp"]
    assert (asked[-1]["commands"], asked[-1]["refused"]) == (1, 0)


def test_a_pipeline_whose_client_goes_is_logged(tmp_path):
    with Replica(tmp_path, "orders=standard node=1", "--access-log") as server:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            # The client closes the connection by a reset.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.connect(("127.0.0.1", server.ports["resp"]))
            # 25 MB of answers.
            client.sendall(100 * b"FRAZIL.NEXT orders COUNT 10000\r\n")
            sample = b'frazil_server_requests_total{protocol="resp",code="OK"} 0\n'
            assert process.await_true(lambda: sample not in server.ask("GET", "/metrics", port="admin")[2], TIMEOUT_S)
        assert server.end() == 0
        [pipeline] = [event for event in server.events() if event.get("protocol") == "resp" and event["event"] == "request"]
        assert 0 < pipeline["commands"] < 100


def test_a_log_that_is_not_read(tmp_path):
    """A log that is not read delays no request. Lost lines are counted, and the log marks the gaps."""
    with Replica(tmp_path, "orders=standard node=1", "--access-log") as server, contextlib.ExitStack() as stack:
        server.signal(signal.SIGKILL)
        server.running.wait()
        server.log.unlink()
        os.mkfifo(server.log)
        both = os.open(server.log, os.O_RDWR)
        log = stack.enter_context(open(server.log, "rb"))
        server.start()
        # Now only the server has the pipe open for writing, so the log ends with it.
        os.close(both)
        lost = r"^frazil_server_log_lines_lost_total (\d+)$"
        connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.ports["http"]), timeout=TIMEOUT_S))
        answers = stack.enter_context(connection.makefile("rb"))
        counted = "0"
        while counted == "0":
            connection.sendall(1000 * f"HEAD /v1/{'x' * 300}/next HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert all(any(line == b"\r\n" for line in iter(answers.readline, b"")) for _ in range(1000))
            counted = re.search(lost, server.ask("GET", "/metrics", port="admin")[2].decode(), re.MULTILINE)[1]
        lines = []
        while not lines or lines[-1]["event"] != "lines.dropped":
            lines.append(json.loads(log.readline()))
        server.signal(signal.SIGTERM)
        lines += [json.loads(line) for line in log]
        assert lines[-1]["event"] == "ended"
        [drop_event] = [line for line in lines if line["event"] == "lines.dropped"]
        assert drop_event["lines"] >= int(counted) and sum(line["event"] == "request" for line in lines) > 1000
        assert server.running.wait(TIMEOUT_S) == 0


def test_a_ready_server_accepts_connections(tmp_path):
    for _ in range(100):
        server = Replica(tmp_path, "orders=standard node=1")
        server.spawn()
        with contextlib.closing(server.connection("admin")) as admin, contextlib.ExitStack() as stack:
            stack.callback(server.__exit__)

            def status(admin=admin):
                try:
                    admin.request("GET", "/readyz")
                    answer = admin.getresponse()
                    answer.read()
                    return answer.status
                except ConnectionRefusedError:
                    admin.close()
                    return None

            assert process.await_true(lambda status=status: status() == 200, TIMEOUT_S, pause=0)
            for port in ("resp", "http"):
                socket.create_connection(("127.0.0.1", server.ports[port]), timeout=TIMEOUT_S).close()


def test_one_connection_too_many(tmp_path):
    with Replica(tmp_path, "orders=standard node=1", "--max-connections=2") as server:
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(server.redis()) for _ in range(2)]
            assert all(client.ping() for client in clients)
            assert server.raw(b"PING\r\n") in (b"-ERR max number of clients reached\r\n", b"")
            assert all(client.ping() for client in clients)
        assert process.await_true(lambda: server.raw(b"PING\r\n") == b"+PONG\r\n", TIMEOUT_S)


def test_one_connection_too_many_of_an_address(tmp_path):
    """Other clients and probes are still served."""

    def opened(address):
        connection = socket.create_connection(("127.0.0.1", server.ports["resp"]), timeout=TIMEOUT_S, source_address=(address, 0))
        connection.sendall(b"PING\r\n")
        try:
            return connection, connection.recv(64) == b"+PONG\r\n"
        except ConnectionResetError:
            return connection, False

    with Replica(tmp_path, "orders=standard node=1", "--max-connections-per-address=3") as server, contextlib.ExitStack() as stack:
        ours = [opened("127.0.0.1") for _ in range(4)]
        for connection, _ in ours:
            stack.enter_context(connection)
        assert [is_served for _, is_served in ours] == [True, True, True, False]
        other, is_served = opened("127.0.0.2")
        stack.enter_context(other)
        assert is_served
        probes = [stack.enter_context(contextlib.closing(server.connection("admin"))) for _ in range(5)]
        for probe in probes:
            probe.request("GET", "/readyz")
            assert probe.getresponse().status == 200
        metrics = server.ask("GET", "/metrics", port="admin")[2]
        assert b'frazil_server_connections_turned_away_total{protocol="resp"} 1' in metrics
        ours[0][0].close()

        def has_place_again():
            connection, is_served = opened("127.0.0.1")
            stack.enter_context(connection)
            return is_served

        assert process.await_true(has_place_again, TIMEOUT_S)


def resident_kib(server):
    status = pathlib.Path(f"/proc/{server.running.pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)[1])


def open_connections(server, port):
    metrics = server.ask("GET", "/metrics", port="admin")[2].decode()
    return int(re.search(rf'^frazil_server_connections{{protocol="{port}"}} (\d+)$', metrics, re.MULTILINE)[1])


def test_idle_connections_are_small(tmp_path):
    """Each connection has had one answer. Most of its memory is hyper's two buffers of 8 KiB, which exist from the first request on."""
    with Replica(tmp_path, "orders=standard node=1", "--max-connections=1000") as server, contextlib.ExitStack() as stack:
        count = 500
        for port, most_kib, ask in (
            ("http", 16, b"POST /v1/orders/next HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            ("resp", 6, b"INCR orders\r\n"),
        ):
            # The first answer reads the pages of the program's code, which belong to no connection.
            with socket.create_connection(("127.0.0.1", server.ports[port])) as first:
                first.sendall(ask)
                assert first.recv(1000)
            before = resident_kib(server)
            clients = [stack.enter_context(socket.create_connection(("127.0.0.1", server.ports[port]))) for _ in range(count)]
            assert process.await_true(lambda port=port: open_connections(server, port) == count, TIMEOUT_S)
            assert (resident_kib(server) - before) / count < 6
            for client in clients:
                client.sendall(ask)
                assert client.recv(1000)
            assert (resident_kib(server) - before) / count < most_kib


def test_memory_is_returned_when_a_crowd_has_left(tmp_path):
    """Without an explicit purge, the allocator kept all memory of 5,000 connections."""
    with Replica(tmp_path, "orders=standard node=1", "--max-connections=1000") as server:
        count = 900
        for port, ask in (("http", b"POST /v1/orders/next HTTP/1.1\r\nHost: localhost\r\n\r\n"), ("resp", b"INCR orders\r\n")):
            before = resident_kib(server)
            with contextlib.ExitStack() as stack:
                for _ in range(count):
                    client = stack.enter_context(socket.create_connection(("127.0.0.1", server.ports[port])))
                    client.sendall(ask)
                    assert client.recv(1000)
                most = resident_kib(server)
                assert most - before > 2 * count
            few = before + (most - before) // 3
            assert process.await_true(lambda few=few: resident_kib(server) < few, 20), (port, before, most, resident_kib(server))


def test_the_memory_of_a_large_answer_is_released(tmp_path):
    """After a large answer an idle connection is nearly as small as any other."""
    with Replica(tmp_path, "orders=standard node=1", "--max-connections=1000") as server, contextlib.ExitStack() as stack:
        count = 200
        http1 = b"POST /v1/orders/next?n=10000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for port, ask, end, times in (("http", http1, b"]}", 1), ("resp", b"FRAZIL.NEXT orders COUNT 10000\r\n", b"\r\n", 20_001)):
            before = resident_kib(server)
            for _ in range(count):
                client = stack.enter_context(socket.create_connection(("127.0.0.1", server.ports[port]), timeout=TIMEOUT_S))
                client.sendall(ask)
                came = bytearray()
                while came.count(end) < times:
                    came += client.recv(1 << 20)
            assert (resident_kib(server) - before) / count < 100, port


def refuses(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return True
    return False


def test_shutdown(tmp_path):
    """The server is not ready, accepts no connection, answers requests in progress, and releases the node number."""
    layout = "layout='time:41@3s node:4 sequence:4 epoch:2025-01-01' exhausted=wait:60s rollback=error"
    spec = f"orders={layout} node=3 store=file:{tmp_path}"
    with Replica(tmp_path, spec, "--max-wait-ms=60000") as server:
        idle = server.redis()
        assert idle.ping()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            # More IDs than this tick and the next one have.
            waiting = pool.submit(server.ids, "orders", 33)
            # Waits until the server has issued some, because a connection may be open before its request arrives.
            issued = re.compile(rb'^frazil_issued_total\{name="orders".*\} [1-9]', re.MULTILINE)
            assert process.await_true(lambda: issued.search(server.ask("GET", "/metrics", port="admin")[2]), TIMEOUT_S)
            server.signal(signal.SIGTERM)
            assert process.await_true(lambda: server.ask("GET", "/readyz", port="admin")[0] == 503, TIMEOUT_S)
            assert server.ask("GET", "/healthz", port="admin")[0] == 200
            assert process.await_true(lambda: all(refuses(server.ports[port]) for port in ("http", "resp")), TIMEOUT_S)
            assert not waiting.done()
            assert len(set(waiting.result())) == 33
        assert server.running.wait(TIMEOUT_S) == 0
        names = [event["event"] for event in server.events()]
        # On a busy machine, a lease may have lapsed and been renewed during that time.
        assert "draining" in names and names[-1] == "ended"
        # The number was released, so the next process does not wait for its bound.
        frazil.Snowflake(spec.removeprefix("orders=")).close()
        with pytest.raises(redis.ConnectionError):
            idle.ping()


def test_shutdown_with_a_delay_for_balancers(tmp_path):
    """During the delay, the server is not ready but serves new connections. A second signal ends the delay."""
    with Replica(tmp_path, "orders=standard node=1", "--drain-delay-ms=3000") as server:
        signalled = time.monotonic()
        server.signal(signal.SIGTERM)
        assert process.await_true(lambda: server.ask("GET", "/readyz", port="admin")[0] == 503, TIMEOUT_S)
        while time.monotonic() < signalled + 2.5:
            server.ids("orders", 1)
            with server.redis() as client:
                assert client.incr("orders") > 0
        assert server.running.wait(TIMEOUT_S) == 0 and time.monotonic() - signalled >= 3
    with Replica(tmp_path, "orders=standard node=1", "--drain-delay-ms=600000") as server:
        server.signal(signal.SIGTERM)
        assert process.await_true(lambda: server.ask("GET", "/readyz", port="admin")[0] == 503, TIMEOUT_S)
        assert server.end() == 0


def test_a_probe_without_a_shell(tmp_path):
    """The command `health` queries the running server. It takes the server's settings."""
    named = "orders=standard node=1"
    with Replica(tmp_path, named, "--drain-delay-ms=600000") as server:
        admin = server.ports["admin"]
        for place in (f"127.0.0.1:{admin}", f":{admin}", f"0.0.0.0:{admin}"):
            result = run("health", named, "--insecure", f"--admin={place}")
            assert (result.returncode, json.loads(result.stdout), result.stderr) == (0, {"ready": True}, "")
        result = run("health", env=os.environ | {"FRAZIL_SERVER_NAMES": named, "FRAZIL_SERVER_ADMIN": f"127.0.0.1:{admin}"})
        assert result.returncode == 0, result
        server.signal(signal.SIGTERM)
        assert process.await_true(lambda: not server.is_ready(), TIMEOUT_S)
        result = run("health", named, f"--admin=127.0.0.1:{admin}")
        assert result.returncode == 1 and json.loads(result.stdout)["ready"] is False
        assert server.end() == 0
    result = run("health", named, f"--admin=127.0.0.1:{admin}")
    assert result.returncode == 1 and result.stdout.startswith(f"127.0.0.1:{admin} does not answer: "), result
    with socket.create_server(("127.0.0.1", 0)) as silent:
        result = run("health", named, f"--admin=127.0.0.1:{silent.getsockname()[1]}")
        assert result.returncode == 1 and "does not answer" in result.stdout, result
    result = run("health", f"--admin=127.0.0.1:{admin}")
    assert result.returncode == 1 and "does not answer" in result.stdout, result
    for settings in ([named], [named, "--admin=:0"], []):
        result = run("health", *settings)
        assert result.returncode == 1 and '"SPEC"' in result.stderr and "--admin" in result.stderr, result


def test_a_clock_that_went_back_is_not_ready(tmp_path):
    """Another replica's clock is right. This replica is ready again once its own clock is."""
    file = tmp_path / "clock"
    spec = f"orders=standard store=file:{tmp_path} generators=2"
    with Replica(tmp_path, spec, env=clock.under(file)) as server:
        before = server.ids("orders", 10)
        clock.turn(-3600, file)
        assert process.await_true(lambda: not server.is_ready(), TIMEOUT_S)
        status, body = server.json("POST", "/v1/orders/next")
        assert (status, body["error"]["code"]) == (503, "CLOCK_BACK")
        clock.turn(0, file)
        assert process.await_true(server.is_ready, TIMEOUT_S)
        assert min(server.ids("orders", 10)) > max(before)


def test_a_server_without_a_lease_is_not_ready(tmp_path):
    """Another process has taken the server's number. Once the server has the number again, it is ready, even without a request."""
    spec = f"standard node=5 store=file:{tmp_path}/store"
    with Replica(tmp_path, f"orders={spec}") as server:
        assert server.ids("orders", 1)
        # The test removes the record, which no operator should do, so that the other process finds the number free.
        (record,) = (file for file in (tmp_path / "store").rglob("5*") if file.is_file())
        record.unlink()
        with frazil.Snowflake(spec):
            assert process.await_true(lambda: "lease.lost" in [event["event"] for event in server.events()], TIMEOUT_S)
            assert process.await_true(lambda: not server.is_ready(), TIMEOUT_S)
            assert server.json("POST", "/v1/orders/next")[0] == 503
        assert process.await_true(server.is_ready, TIMEOUT_S), server.log.read_text()
        assert server.ids("orders", 1)


def test_two_replicas_and_kill_9(tmp_path):
    """Clients of two protocols use two replicas, one of which is killed repeatedly. No ID occurs twice."""
    assert POSTGRESQL, "run by tests/server/run.sh"
    names = [f"orders=standard store={POSTGRESQL} namespace=server", f"invoice=segment store={POSTGRESQL} step=50"]
    seen = collections.defaultdict(list)
    over = threading.Event()

    def over_http(server, name):
        while not over.is_set():
            try:
                seen[name, "http", server].append(server.ids(name, 200))
            except (OSError, AssertionError):
                over.wait(0.01)

    def over_redis(server, name):
        while not over.is_set():
            try:
                with server.redis() as client:
                    while not over.is_set():
                        ids = client.execute_command("FRAZIL.NEXT", name, "COUNT", 200)
                        seen[name, "resp", server].append(list(map(int, ids)))
            except redis.RedisError:
                over.wait(0.01)

    with Replica(tmp_path, *names) as steady, Replica(tmp_path, *names) as killed:
        jobs = [(ask, server, name) for ask in (over_http, over_redis) for server in (steady, killed) for name in ("orders", "invoice")]
        clients = [threading.Thread(target=ask, args=(server, name)) for ask, server, name in jobs]
        for client in clients:
            client.start()
        for wanted in (5, 10, 15):

            def minted(wanted=wanted):
                return all(len(seen[name, protocol, killed]) >= wanted for name in ("orders", "invoice") for protocol in ("http", "resp"))

            assert process.await_true(minted, TIMEOUT_S)
            killed.signal(signal.SIGKILL)
            killed.running.wait()
            killed.start()
        over.set()
        for client in clients:
            client.join()
        assert steady.end() == 0 and killed.end() == 0
    for name in ("orders", "invoice"):
        ids = [number for (its, _, _), batches in seen.items() if its == name for batch in batches for number in batch]
        assert len(ids) == len(set(ids)) > 10_000


def test_the_guide(tmp_path):
    """Runs the guide's commands in order, on ports that the test chooses."""
    guide = (ROOT / "docs/server.md").read_text()
    reserved = [process.reserve_port() for _ in range(4)]
    for port, ours in zip((8080, 6390, 9090, 8443), reserved, strict=True):
        guide = re.sub(rf"(?<=[ :=]){port}\b", str(process.port_of(ours)), guide)

    def blocks(language):
        return re.findall(rf"^```{language}\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)

    (tmp_path / "client.py").write_text(*blocks("py"))
    settings, tokens = blocks("toml")
    (tmp_path / "server.toml").write_text(settings)
    (tmp_path / "tokens.toml").write_text(tokens)
    env = {
        "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}",
        "DATABASE_URL": POSTGRESQL,
        "SHOP_TOKEN": SHOP,
        "OPERATOR_TOKEN": OPERATOR,
        "POD_TOKEN": OTHER,
        "FRAZIL_HOME": str(tmp_path / "local"),
    }
    steps = ["trap 'kill $(jobs -p); wait' EXIT", *blocks("sh"), f"{shlex.quote(sys.executable)} client.py"]
    command = ["bash", "-ec", "\n".join(steps)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path, env=os.environ | env)
    assert result.returncode == 0, result.stderr
    assert '{"ready":true}' in result.stdout and '"sequence":' in result.stdout and '"error"' not in result.stdout
    checked = run("check", "--config", tmp_path / "server.toml", "--tokens", tmp_path / "tokens.toml", env=env)
    assert checked.returncode == 0 and "tokens required" in checked.stdout, checked.stderr
