"""systemd: messages to it, sockets from it, and the units."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

import pytest
from replica import PROGRAM, ROOT, TIMEOUT_S, Replica, process, run

NAME = "orders=standard node=1"
DIST = ROOT / "server/dist"
# systemd passes sockets from descriptor 3 on, to the process with this ID.
HAND_OVER = """
import os, sys
names, numbers, *arguments = sys.argv[1:]
for place, number in enumerate(numbers.split(",")):
    os.dup2(int(number), 3 + place)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDNAMES": names, "LISTEN_FDS": str(len(names.split(":")))}
os.execv(arguments[0], arguments)
"""


@contextlib.contextmanager
def manager():
    """Yields the path of the manager's socket, and the list of received messages."""
    # A short path, because a socket's path has a limit.
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        path = pathlib.Path(folder) / "notify"
        listener.bind(str(path))
        messages = []

        def listen():
            while message := listener.recv(4096):
                messages.append(message.decode().split())

        listening = threading.Thread(target=listen)
        listening.start()
        try:
            yield str(path), messages
        finally:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
                end.sendto(b"", str(path))
            listening.join()


def test_messages_to_the_manager(tmp_path):
    with manager() as (path, messages), Replica(tmp_path, NAME, env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000"}) as server:

        def heard():
            return [message for message in messages if message != ["WATCHDOG=1"]]

        assert process.await_true(lambda: heard() == [["READY=1"]], TIMEOUT_S), messages
        server.signal(signal.SIGHUP)
        assert process.await_true(lambda: len(heard()) == 3, TIMEOUT_S), messages
        [reloading, since], ready = heard()[1:]
        assert (reloading, ready) == ("RELOADING=1", ["READY=1"]) and re.fullmatch(r"MONOTONIC_USEC=\d+", since)
        assert process.await_true(lambda: messages.count(["WATCHDOG=1"]) >= 3, TIMEOUT_S)
        assert server.end() == 0
        assert process.await_true(lambda: heard()[3:] == [["STOPPING=1"]], TIMEOUT_S), messages


def test_ready_means_that_ids_are_there(tmp_path):
    """READY=1 comes after the wait for a crashed holder's node number, so a client need not retry."""
    spec = f"orders=standard node=3 store=file:{tmp_path}"
    with manager() as (path, messages), Replica(tmp_path, spec, env={"NOTIFY_SOCKET": path}) as server:
        assert process.await_true(lambda: ["READY=1"] in messages, TIMEOUT_S)
        server.signal(signal.SIGKILL)
        server.running.wait()
        del messages[:]
        server.spawn()
        assert process.await_true(lambda: ["READY=1"] in messages, TIMEOUT_S), server.log.read_text()
        assert len(server.ids("orders", 2)) == 2


def handed_over(folder, sockets, *arguments):
    """Returns a replica that gets sockets with these names."""
    numbers = [str(listener.fileno()) for listener in sockets.values()]
    server = Replica(folder, *arguments, under=[sys.executable, "-c", HAND_OVER, ":".join(sockets), ",".join(numbers)])
    server.command = [part for part in server.command if not str(part).startswith(tuple(f"--{name}=" for name in sockets))]
    server.ports |= {name: process.port_of(listener) for name, listener in sockets.items()}
    server.options["pass_fds"] = [int(number) for number in numbers]
    return server


def test_sockets_that_are_handed_over(tmp_path):
    """The next server serves a client that connects while no server runs."""
    with contextlib.ExitStack() as stack:
        sockets = {name: stack.enter_context(socket.create_server(("127.0.0.1", 0))) for name in ("resp", "http")}
        server = stack.enter_context(handed_over(tmp_path, sockets, NAME))
        assert len(server.ids("orders", 2)) == 2
        with server.redis() as client:
            assert client.incr("orders") > 0
        assert server.end() == 0
        early = stack.enter_context(socket.create_connection(sockets["resp"].getsockname(), timeout=TIMEOUT_S))
        early.sendall(b"PING\r\n")
        server.start()
        assert early.recv(7) == b"+PONG\r\n"


@pytest.mark.parametrize(
    "name, address, arguments, expected",
    [
        ("web", "127.0.0.1", [], "FileDescriptorName"),
        ("http", "127.0.0.1", ["--http=:1"], "http=:1 is given"),
        ("http", "0.0.0.0", [], "--tokens"),
    ],
)
def test_sockets_that_do_not_fit(tmp_path, name, address, arguments, expected):
    with socket.create_server((address, 0)) as listener, contextlib.ExitStack() as stack:
        server = handed_over(tmp_path, {name: listener}, NAME)
        server.command += arguments
        stack.push(server)
        with pytest.raises(AssertionError, match=expected):
            server.start()


@pytest.mark.parametrize("kind", ["datagrams", "nobody listens", "a connection", "a Unix socket"])
def test_sockets_of_another_kind(tmp_path, kind):
    """Sockets of ListenDatagram= and Accept=yes are refused, because no client could connect to them."""
    with contextlib.ExitStack() as stack:
        if kind == "a connection":
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            handed = stack.enter_context(socket.create_connection(listener.getsockname()))
        elif kind == "a Unix socket":
            handed = stack.enter_context(socket.socket(socket.AF_UNIX))
            handed.bind(str(tmp_path / "http.sock"))
            handed.listen()
        else:
            handed = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM if kind == "datagrams" else socket.SOCK_STREAM))
            handed.bind(("127.0.0.1", 0))
        server = handed_over(tmp_path, {"http": handed}, NAME)
        stack.push(server)
        with pytest.raises(AssertionError, match="ListenStream="):
            server.start()


def test_a_reload_is_not_the_end_of_the_start(tmp_path):
    """If SIGHUP comes while a store does not answer, the manager gets no READY=1."""
    with manager() as (path, messages), contextlib.ExitStack() as stack:
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        spec = f"orders=standard store=redis://127.0.0.1:{process.port_of(silent)}"
        server = Replica(tmp_path, spec, env={"NOTIFY_SOCKET": path})
        stack.push(server)
        server.spawn()
        assert process.await_true(lambda: server.log.exists() and "listening" in server.log.read_text(), TIMEOUT_S)
        server.reload("tokens.read")
        assert server.end() == 0
        assert ["READY=1"] not in messages


def test_the_units(tmp_path):
    """systemd accepts the units, and the server accepts their command line."""
    assert shutil.which("systemd-analyze"), "systemd-analyze is missing: the package systemd"
    unit = (DIST / "frazil-server.service").read_text()
    installed = "/usr/bin/frazil-server"
    # A copy, because the checkout's path may contain a space, which the unit would have to quote.
    program = tmp_path / "frazil-server"
    program.symlink_to(PROGRAM)
    (tmp_path / "frazil-server.service").write_text(unit.replace(installed, str(program)))
    shutil.copy(DIST / "frazil-server.socket", tmp_path)
    # systemd would also load the machine's other units, and warn of unknown keys in them.
    others = tmp_path / "others"
    others.mkdir()
    (others / "sysinit.target").write_text("[Unit]\nDescription=Another package's\nNonsense=1\n")
    command = ["systemd-analyze", "verify", "--man=no", *tmp_path.glob("frazil-server.s*")]
    env = os.environ | {"SYSTEMD_UNIT_PATH": f"{others}:"}
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S, env=env)
    assert "Nonsense" in result.stderr
    ours = [line for line in result.stderr.splitlines() if "frazil-server" in line]
    assert (result.returncode, ours) == (0, []), result.stderr

    # The folder of the guide's Unix sockets, the only one in which the unit may write.
    assert "\nRuntimeDirectory=frazil\n" in unit and "unix:/run/frazil/" in (ROOT / "docs/server.md").read_text()

    settings = tmp_path / "server.toml"
    settings.write_text(f'[names]\norders = "{NAME.removeprefix("orders=")}"\n')
    # ExecStartPre would run without the sockets, so it cannot judge the settings. A store may be away for longer than five starts take.
    assert "ExecStartPre" not in unit and "\nStartLimitIntervalSec=0\n" in unit
    [starts] = re.findall(rf"^ExecStart={installed} (.*)$", unit, re.MULTILINE)
    result = run("check", *starts.replace("/etc/frazil/server.toml", str(settings)).split())
    assert result.returncode == 0, result.stderr
