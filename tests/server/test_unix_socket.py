"""Unix sockets: programs of the machine reach the server through a file, whose permissions decide who may."""

import contextlib
import ctypes
import os
import socket
import stat
import struct

import pytest
import redis
from replica import PROGRAM, TIMEOUT_S, Replica, process, run

ORDERS = "orders=standard node=1"


@contextlib.contextmanager
def serving(folder, *settings):
    """Runs a server with Unix sockets for clients and a TCP admin port."""
    paths = {protocol: folder / f"{protocol}.sock" for protocol in ("http", "resp")}
    addresses = [f"--{protocol}=unix:{path}" for protocol, path in paths.items()]
    server = Replica(folder, ORDERS, *settings)
    server.command = [part for part in server.command if not str(part).startswith(("--http=", "--resp="))] + addresses
    with server:
        yield server, paths


def over_http(path, request=b"POST /v1/orders/next HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(TIMEOUT_S)
        connection.connect(str(path))
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_both_protocols(tmp_path):
    # Limits of addresses and proxies have no meaning for Unix sockets.
    settings = ("--access-log", "--max-connections-per-address=1", "--max-ids-per-address=1", "--proxies=0.0.0.0/0")
    with serving(tmp_path, *settings) as (server, paths):
        assert all(over_http(paths["http"]).startswith(b"HTTP/1.1 200") for _ in range(3))
        # A page cannot reach the socket, but a browser's request would also be refused.
        assert over_http(paths["http"], b"POST /v1/orders/next HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n").startswith(
            b"HTTP/1.1 403"
        )
        with redis.Redis(unix_socket_path=str(paths["resp"])) as client, redis.Redis(unix_socket_path=str(paths["resp"])) as other:
            assert client.incr("orders") < client.incr("orders") < other.incr("orders")
        assert [stat.S_IMODE(path.stat().st_mode) for path in paths.values()] == [0o660, 0o660]
        assert server.end() == 0
        events = server.events()
        assert {event["peer"] for event in events if event["event"] == "request" and event["protocol"] != "admin"} == {"unix"}
        assert {f"unix:{path}" for path in paths.values()} < {event["address"] for event in events if event["event"] == "listening"}
        assert not any(path.exists() for path in paths.values())


def test_a_probe_asks_a_socket(tmp_path):
    """A server without TCP ports also has a socket for its operator."""
    admin = tmp_path / "admin.sock"
    settings = ORDERS, f"--http=unix:{tmp_path}/http.sock", f"--admin=unix:{admin}"
    assert "does not answer" in run("health", *settings).stdout
    server = process.spawn([PROGRAM, *settings], tmp_path / "log", env=os.environ | {"FRAZIL_GUARD_SCOPE": str(tmp_path)})
    try:
        assert process.await_true(lambda: run("health", *settings).returncode == 0, TIMEOUT_S)
        assert b"process_start_time_seconds" in over_http(admin, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    finally:
        server.terminate()
        assert server.wait(TIMEOUT_S) == 0
    result = run("health", *settings)
    assert result.returncode == 1 and result.stdout.startswith(f"unix:{admin} does not answer: "), result


def test_the_file_of_a_killed_server_is_replaced(tmp_path):
    with serving(tmp_path) as (server, paths):
        server.running.kill()
        server.running.wait()
        assert paths["http"].exists()
        server.start()
        assert over_http(paths["http"]).startswith(b"HTTP/1.1 200")


def test_the_file_of_a_running_server_stays(tmp_path):
    with serving(tmp_path) as (_, paths):
        result = run("orders=standard node=2", f"--http=unix:{paths['http']}")
        assert result.returncode == 1 and "in use" in result.stderr, result
        assert over_http(paths["http"]).startswith(b"HTTP/1.1 200")


def test_a_server_that_is_too_busy_to_take_a_connection_is_there(tmp_path):
    path = tmp_path / "http.sock"
    with contextlib.ExitStack() as stack:
        busy = stack.enter_context(socket.socket(socket.AF_UNIX))
        busy.bind(str(path))
        busy.listen(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                waiting = stack.enter_context(socket.socket(socket.AF_UNIX))
                waiting.setblocking(False)
                waiting.connect(str(path))
        result = run(ORDERS, f"--http=unix:{path}")
        assert result.returncode == 1 and "in use" in result.stderr, result


def test_the_file_is_made_with_its_rights(tmp_path):
    """The permissions hold under any umask. They are not changed afterwards, because that would follow a link in the file's place."""
    libc = ctypes.CDLL(None)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    in_attrib, in_create = 0x4, 0x100
    assert libc.inotify_add_watch(watch, os.fsencode(tmp_path), in_attrib | in_create) >= 0
    umask = os.umask(0)
    try:
        with serving(tmp_path) as (_, paths):
            assert [stat.S_IMODE(path.stat().st_mode) for path in paths.values()] == [0o660, 0o660]
            events = os.read(watch, 65536)
    finally:
        os.umask(umask)
        os.close(watch)
    seen = set()
    while events:
        _, mask, _, length = struct.unpack_from("iIII", events)
        name, events = events[16 : 16 + length].rstrip(b"\0"), events[16 + length :]
        seen.add((name, mask))
    assert {(name, mask) for name, mask in seen if name.endswith(b".sock")} == {(b"http.sock", in_create), (b"resp.sock", in_create)}


def test_the_file_of_a_successor_stays(tmp_path):
    with serving(tmp_path) as (server, paths):
        paths["http"].unlink()
        with socket.socket(socket.AF_UNIX) as successor:
            successor.bind(str(paths["http"]))
            assert server.end() == 0
            assert paths["http"].exists() and not paths["resp"].exists()


@pytest.mark.parametrize("there", ["a file", "a folder", "a link"])
def test_nothing_else_is_replaced(there, tmp_path):
    path = tmp_path / "http.sock"
    {"a file": lambda: path.write_text("mine"), "a folder": path.mkdir, "a link": lambda: path.symlink_to(tmp_path / "other")}[there]()
    before = path.lstat()
    result = run(ORDERS, f"--http=unix:{path}")
    assert result.returncode == 1 and "in use" in result.stderr, result
    assert path.lstat().st_ino == before.st_ino


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("--http=unix:ids.sock", "is not an absolute path: use unix:/run/frazil/"),
        ("--admin=unix:admin.sock", "is not an absolute path: use unix:/run/frazil/"),
        (f"--resp=unix:/{'x' * 200}", "at most 100 bytes"),
        ("--http=unix:/no/such/folder/ids.sock", "No such file"),
    ],
)
def test_a_wrong_path_is_refused(setting, why):
    result = run(ORDERS, setting)
    assert result.returncode == 1 and '"SPEC"' in result.stderr and why in result.stderr, result
