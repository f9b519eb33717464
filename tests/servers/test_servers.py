"""The servers and the proxy behave as the fault test assumes."""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys

import pytest

import servers
from servers import process
from servers import server as server_module


@pytest.fixture(scope="module", params=servers.KINDS)
def server(request):
    with servers.start(request.param) as running:
        yield running


@pytest.fixture(scope="module")
def redis():
    with servers.start("redis") as running:
        yield running


@pytest.fixture
def proxy(redis):
    with servers.Proxy(redis.port) as between:
        yield between


def ask(connection, text):
    connection.sendall(text)
    return connection.recv(1000)


def test_it_comes_back_at_the_same_url(server):
    url = server.url
    server.kill9()
    with pytest.raises(ConnectionRefusedError):
        process.connect(server.port)
    server.restart()
    assert server.url == url
    assert server.serves()


def test_it_answers_nothing_while_it_is_paused(server):
    server.pause()
    try:
        with process.connect(server.port) as connection:
            connection.settimeout(0.3)
            with pytest.raises(TimeoutError):
                server.answers(connection)
    finally:
        server.resume()
    assert process.await_true(server.serves, server_module.TIMEOUT)


def test_it_is_paused_only_when_none_of_its_threads_runs(server):
    assert not process.is_stopped(server.running.pid)
    server.pause()
    try:
        assert all(map(process.is_stopped, process.family(server.running.pid)))
    finally:
        server.resume()
    assert not process.is_stopped(server.running.pid)


def test_two_of_a_kind_live_side_by_side(redis):
    with servers.start("redis") as other:
        redis.call("SET", "who", "first")
        other.call("SET", "who", "second")
        assert redis.call("GET", "who").split() == ["$5", "first"]
        folder = other.folder
    assert not folder.exists()


def test_redis_keeps_what_it_has_acknowledged(redis):
    redis.call("SET", "kept", "yes")
    redis.restart()
    assert redis.call("GET", "kept").split() == ["$3", "yes"]
    redis.flush()
    assert redis.call("GET", "kept").split() == ["$-1"]


def test_a_promoted_replica_has_lost_the_last_writes(redis):
    for _ in range(2):
        redis.call("SET", "early", "yes")
        old, url = redis.running.pid, redis.url
        redis.promote_replica(0.1, sleep=lambda _: redis.call("SET", "late", "yes"))
        assert redis.running.pid != old
        assert redis.url == url
        assert redis.call("GET", "early").split() == ["$3", "yes"]
        assert redis.call("GET", "late").split() == ["$-1"]
        assert "role:master" in redis.call("INFO", "replication")
    redis.call("SET", "kept", "yes")
    redis.restart()
    assert redis.call("GET", "kept").split() == ["$3", "yes"]


COMMAND = [sys.executable, pathlib.Path(servers.__file__).parent]


@pytest.mark.parametrize("started", ["in front", "in the background"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_the_command(number, started, tmp_path):
    """The servers end with the program that started them, however it ends. A shell makes a background program ignore SIGINT."""
    marker = tmp_path / "marker"
    inherited = signal.signal(signal.SIGINT, signal.SIG_IGN if started == "in the background" else signal.default_int_handler)
    try:
        program = subprocess.Popen([*COMMAND, "all", "--", "sh", "-c", 'touch "$0" && exec sleep 600', marker])
    finally:
        signal.signal(signal.SIGINT, inherited)
    members = []

    def folders():
        return list(pathlib.Path(server_module.PLACE).glob(f"frazil-{program.pid}-*"))

    try:
        assert process.await_true(lambda: marker.exists() or program.poll() is not None, 3 * server_module.TIMEOUT) and marker.exists()
        members = process.family(program.pid)[1:]
        # The servers, PostgreSQL's helpers and the command.
        assert len(members) > 8
        assert len(folders()) == 5
        os.kill(program.pid, number)
        assert program.wait(server_module.TIMEOUT) != 0
        # A killed program can neither clean up nor end its command.
        staying = ["sleep\n"] if number == signal.SIGKILL else []

        def left():
            return [pathlib.Path(f"/proc/{pid}/comm").read_text() for pid in members if not process.gone(pid)]

        assert process.await_true(lambda: left() == staying, server_module.TIMEOUT), left()
        if number != signal.SIGKILL:
            assert not folders()
    finally:
        process.send([pid for pid in members if not process.gone(pid)], signal.SIGKILL)
        program.kill()
        for folder in folders():
            shutil.rmtree(folder)


def test_the_exit_status_is_the_commands():
    assert subprocess.run([*COMMAND, "redis", "--", "sh", "-c", "exit 7"], check=False, timeout=3 * server_module.TIMEOUT).returncode == 7
    assert subprocess.run([*COMMAND, "oracle", "--", "true"], check=False, timeout=3 * server_module.TIMEOUT).returncode == 1
    assert subprocess.run([*COMMAND, "redis"], check=False, timeout=3 * server_module.TIMEOUT).returncode == 2


def test_the_proxy_forwards_and_cuts(redis, proxy):
    with process.connect(proxy.port) as one, process.connect(proxy.port) as two:
        assert ask(one, b"PING\r\n") == ask(two, b"PING\r\n") == b"+PONG\r\n"
        proxy.cut()
        for connection in (one, two):
            with pytest.raises(ConnectionResetError):
                connection.recv(1)
    with process.connect(proxy.port) as again:
        assert ask(again, b"PING\r\n") == b"+PONG\r\n"


def test_a_cut_without_a_connection_waits_for_the_next(redis, proxy):
    proxy.cut(or_next=True)
    # The reset may come before the connect has returned.
    with pytest.raises(ConnectionResetError), process.connect(proxy.port) as first:
        first.recv(1)
    assert proxy.counts["connections cut"] == 1
    with process.connect(proxy.port) as second:
        assert ask(second, b"PING\r\n") == b"+PONG\r\n"
        proxy.cut(or_next=True)
        with pytest.raises(ConnectionResetError):
            second.recv(1)
    with process.connect(proxy.port) as third:
        assert ask(third, b"PING\r\n") == b"+PONG\r\n"
    assert proxy.counts["connections cut"] == 2


def test_a_reserved_port_is_nobody_elses():
    with process.reserve_port() as reserved:
        port = process.port_of(reserved)
        with pytest.raises(ConnectionRefusedError):
            process.connect(port)
        for _ in range(2):
            with socket.create_server(("127.0.0.1", port)), process.connect(port):
                pass
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_a_lost_answer_belongs_to_a_request_that_was_served(redis, proxy):
    redis.call("SET", "count", 0)
    for number in range(1, 51):
        proxy.lose_answers()
        with process.connect(proxy.port) as connection:
            connection.sendall(b"INCR count\r\n")
            with pytest.raises(ConnectionResetError):
                connection.recv(1)
        assert process.await_true(lambda: redis.call("GET", "count").split()[1] == str(number), 60)  # noqa: B023
    assert proxy.losses_left == 0


def test_a_lost_request_is_not_served(redis, proxy):
    redis.call("SET", "count", 0)
    proxy.lose_requests(3)
    for _ in range(3):
        with process.connect(proxy.port) as connection:
            connection.sendall(b"INCR count\r\n")
            with pytest.raises(ConnectionResetError):
                connection.recv(1)
    with process.connect(proxy.port) as connection:
        assert ask(connection, b"INCR count\r\n") == b":1\r\n"


def test_held_answers_come_late_but_come(redis, proxy):
    with process.connect(proxy.port) as connection:
        assert ask(connection, b"PING\r\n") == b"+PONG\r\n"
        proxy.hold()
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            ask(connection, b"SET held yes\r\n")
        assert redis.call("GET", "held").split() == ["$3", "yes"]
        with process.connect(proxy.port) as late:
            late.settimeout(0.2)
            with pytest.raises(TimeoutError):
                ask(late, b"PING\r\n")
            proxy.release()
            assert connection.recv(100) == b"+OK\r\n"
            assert late.recv(100) == b"+PONG\r\n"


def test_refusal_ends_at_the_same_port(proxy):
    with process.connect(proxy.port) as old:
        proxy.refuse()
        with pytest.raises(ConnectionRefusedError):
            process.connect(proxy.port)
        assert ask(old, b"PING\r\n") == b"+PONG\r\n"
        proxy.accept()
        with process.connect(proxy.port) as new:
            assert ask(new, b"PING\r\n") == b"+PONG\r\n"


def test_a_server_that_goes_away_takes_its_connections_along(redis, proxy):
    def refused(connection):
        try:
            return ask(connection, b"PING\r\n") == b""
        except TimeoutError:
            return False
        except OSError:
            return True

    with process.connect(proxy.port) as connection:
        assert not refused(connection)
        redis.kill9()
        assert refused(connection)
    # The reset may come before the connect has returned.
    with contextlib.suppress(ConnectionResetError), process.connect(proxy.port) as late:
        assert refused(late)
    redis.restart()
    with process.connect(proxy.port) as again:
        assert not refused(again)
