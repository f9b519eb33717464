"""Proxies that name the client of a connection by the PROXY protocol: headers made by the tests, and HAProxy."""

import contextlib
import ipaddress
import os
import pathlib
import shutil
import socket
import ssl
import struct
import time

import certificates
import pytest
from replica import TIMEOUT_S, Replica
from servers import process

ORDERS = "orders=standard node=1"
HAPROXY = shutil.which("haproxy", path="/usr/sbin:/usr/bin") or shutil.which("haproxy") or "haproxy"


def version_2(source, command=1, tail=b""):
    address = ipaddress.ip_address(source)
    family, other = (0x11, "10.0.0.1") if address.version == 4 else (0x21, "2001:db8::1")
    body = address.packed + ipaddress.ip_address(other).packed + struct.pack(">HH", 4711, 80) + tail
    return b"\r\n\r\n\x00\r\nQUIT\n" + bytes([0x20 | command, family]) + struct.pack(">H", len(body)) + body


def version_1(source):
    return f"PROXY TCP{ipaddress.ip_address(source).version} {source} {source} 4711 80\r\n".encode()


@pytest.fixture(scope="module")
def proxied(tmp_path_factory):
    """Runs a server whose only proxy is 127.0.0.1, with two connections for each client."""
    settings = ("--proxies=10.9.0.0/16,127.0.0.1", "--max-connections-per-address=2", "--access-log")
    with Replica(tmp_path_factory.mktemp("proxies"), ORDERS, *settings) as server:
        yield server


@contextlib.contextmanager
def connected(server, data, port="resp", source="127.0.0.1"):
    address = ("127.0.0.1", server.ports[port])
    with socket.create_connection(address, timeout=TIMEOUT_S, source_address=(source, 0)) as connection:
        for part in data if isinstance(data, list) else [data]:
            connection.sendall(part)
        yield connection


def answer(connection):
    with contextlib.suppress(ConnectionResetError):
        return connection.recv(4096)
    return b""


def seconds_used(server):
    """Returns a server's processor time."""
    text = pathlib.Path(f"/proc/{server.running.pid}/stat").read_text()
    return sum(int(ticks) for ticks in text.rpartition(")")[2].split()[11:13]) / os.sysconf("SC_CLK_TCK")


def peers(server):
    return {event["peer"].rpartition(":")[0].strip("[]") for event in server.events() if event["event"] == "request"}


@pytest.mark.parametrize("header", [version_1, version_2], ids=["version 1", "version 2"])
@pytest.mark.parametrize("source", ["192.0.2.7", "2001:db8::7"])
def test_the_client_is_the_one_that_the_header_names(proxied, header, source):
    with connected(proxied, header(source) + b"PING\r\n") as connection:
        assert answer(connection) == b"+PONG\r\n"
    request = b"POST /v1/orders/next HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with connected(proxied, header(source) + request, port="http") as connection:
        assert answer(connection).startswith(b"HTTP/1.1 200")
    assert process.await_true(lambda: source in peers(proxied), TIMEOUT_S), peers(proxied)


def test_a_header_in_pieces_and_with_more_in_it(proxied):
    whole = version_2("192.0.2.8", tail=b"\x04\x03\xe8" + bytes(1000))
    for header in (whole, version_1("192.0.2.8")):
        pieces = [header[at : at + 3] for at in range(0, len(header), 3)]
        with connected(proxied, [*pieces, b"PI", b"NG\r\n"]) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            assert answer(connection) == b"+PONG\r\n"


def test_part_of_a_header_occupies_no_slot_and_no_processor(tmp_path):
    with Replica(tmp_path, ORDERS, "--proxies=127.0.0.1") as server, contextlib.ExitStack() as stack:
        ended, *_ = (stack.enter_context(connected(server, b"PROXY TCP4")) for _ in range(500))
        ended.shutdown(socket.SHUT_WR)
        # The connection ends at once, not when the header's time is over.
        ended.settimeout(5)
        assert answer(ended) == b""
        before = seconds_used(server)
        time.sleep(2)
        assert seconds_used(server) - before < 0.2


def test_the_limit_is_the_clients_and_not_the_proxys(proxied):
    with contextlib.ExitStack() as stack:

        def is_served(source):
            connection = stack.enter_context(connected(proxied, version_1(source) + b"PING\r\n"))
            return answer(connection) == b"+PONG\r\n"

        assert [is_served("192.0.2.20") for _ in range(3)] == [True, True, False]
        assert all(is_served(f"192.0.2.{last}") for last in range(21, 31))


def test_a_proxy_asks_for_itself(proxied):
    # In a header without a client, the address family has no meaning.
    others = [version_2("192.0.2.9", command=0)[:13] + bytes([family, 0, 0]) for family in (0x00, 0x11, 0x31, 0xFF)]
    for header in (version_2("192.0.2.9", command=0), *others, b"PROXY UNKNOWN\r\n"):

        def is_served(header=header):
            with connected(proxied, header + b"PING\r\n") as connection:
                return answer(connection) == b"+PONG\r\n"

        # The slots of earlier connections may not be free yet.
        assert process.await_true(is_served, TIMEOUT_S), header


@pytest.mark.parametrize(
    "begin",
    [b"PING\r\n", b"PROXY TCP4 a b 1 2\r\n", b"PROXY TCP4 " + b"1" * 200, b"\r\n\r\n\x00\r\nQUIT\n\x31\x11\x00\x00", b"\x16\x03\x01"],
)
def test_a_proxy_without_a_header_is_refused(proxied, begin):
    def refusals():
        return [event for event in proxied.events() if event["event"] == "access.refused" and event["code"] == "PROXY"]

    before = len(refusals())
    with connected(proxied, begin + bytes(4096)) as connection:
        assert answer(connection) == b""
    assert process.await_true(lambda: len(refusals()) > before, TIMEOUT_S)


def test_proxy_headers_of_other_addresses_are_ignored(proxied):
    """From an address that is not a proxy's, a header is an unknown command."""
    with connected(proxied, version_1("192.0.2.40") + b"PING\r\n", source="127.0.0.2") as connection:
        assert answer(connection).startswith(b"-ERR unknown command 'PROXY'")
    with connected(proxied, b"PING\r\n", source="127.0.0.2") as connection:
        assert answer(connection) == b"+PONG\r\n"
    assert "192.0.2.40" not in peers(proxied)


def test_a_proxy_may_be_named_as_a_socket_for_both_versions_shows_it(tmp_path):
    with (
        Replica(tmp_path, ORDERS, "--proxies=::ffff:127.0.0.0/104") as server,
        connected(server, version_1("192.0.2.7") + b"PING\r\n") as connection,
    ):
        assert answer(connection) == b"+PONG\r\n"


def test_the_header_comes_before_tls(tmp_path):
    for name, authority in (("ca", None), ("server", "ca")):
        certificates.make(tmp_path, name, authority)
    context = ssl.create_default_context(cafile=tmp_path / "ca.crt")
    files = [f"--tls-cert={tmp_path}/server.crt", f"--tls-key={tmp_path}/server.key"]
    with Replica(tmp_path, ORDERS, *files, "--proxies=127.0.0.1", "--access-log", tls=context) as server:
        with connected(server, version_2("192.0.2.60")) as connection, context.wrap_socket(connection, server_hostname="localhost") as tls:
            tls.sendall(b"PING\r\n")
            assert answer(tls) == b"+PONG\r\n"
        assert process.await_true(lambda: "192.0.2.60" in peers(server), TIMEOUT_S)
        # Within TLS, a header comes from the client, so it is ignored.
        with connected(server, version_2("192.0.2.61")) as connection, context.wrap_socket(connection, server_hostname="localhost") as tls:
            tls.sendall(version_1("192.0.2.62") + b"PING\r\n")
            assert answer(tls).startswith(b"-ERR unknown command 'PROXY'")
        assert "192.0.2.62" not in peers(server)


def test_probes_need_no_header(proxied):
    assert proxied.ask("GET", "/readyz", port="admin")[0] == 200


def test_a_silent_host_does_not_take_every_slot(tmp_path):
    """The connections of a host in the proxies' network that sends no header wait 10 s each, but others have room."""
    settings = ("--proxies=127.0.0.0/8", "--max-connections=400")
    with Replica(tmp_path, ORDERS, *settings) as server, contextlib.ExitStack() as stack:
        since = time.monotonic()
        silent = [stack.enter_context(connected(server, b"", source="127.0.0.2")) for _ in range(400)]
        # The server refuses each connection above its limit.
        assert process.await_true(lambda: count_of(b"turned_away_total", server) >= 300, TIMEOUT_S)
        with connected(server, version_1("192.0.2.7") + b"PING\r\n", source="127.0.0.3") as connection:
            assert answer(connection) == b"+PONG\r\n"
        assert sum(answer(connection) == b"" for connection in silent) == 64
        assert time.monotonic() - since > 9
        late = lambda: any("in time" in event.get("text", "") for event in server.events() if event["event"] == "access.refused")
        assert process.await_true(late, TIMEOUT_S)
        with connected(server, version_1("192.0.2.7") + b"PING\r\n", source="127.0.0.2") as connection:
            assert answer(connection) == b"+PONG\r\n"


def count_of(metric, server):
    text = server.ask("GET", "/metrics", port="admin")[2]
    return sum(int(line.split()[-1]) for line in text.splitlines() if metric in line and b'"resp"' in line)


@pytest.mark.parametrize("option", ["send-proxy", "send-proxy-v2"])
def test_through_haproxy(proxied, tmp_path, option):
    with contextlib.closing(process.reserve_port()) as reserved:
        port = process.port_of(reserved)
        settings = tmp_path / "haproxy.cfg"
        settings.write_text(f"""
defaults
    mode tcp
    timeout connect 10s
    timeout client 60s
    timeout server 60s
listen resp
    bind 127.0.0.1:{port}
    source 127.0.0.1
    server one 127.0.0.1:{proxied.ports["resp"]} {option} check
""")
        running = process.spawn([HAPROXY, "-db", "-f", settings], tmp_path / "haproxy.log")
        try:

            def reply():
                try:
                    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S, source_address=("127.0.0.5", 0)) as connection:
                        connection.sendall(b"INCR orders\r\n")
                        return answer(connection)
                except OSError:
                    return b""

            assert process.await_true(lambda: reply().startswith(b":"), TIMEOUT_S), (tmp_path / "haproxy.log").read_text()
            assert process.await_true(lambda: "127.0.0.5" in peers(proxied), TIMEOUT_S)
        finally:
            running.kill()
            running.wait()
