"""systemd: what it is told, the sockets that it hands over, and the units."""

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
# Sockets are handed over from descriptor 3 on, to the process with this number.
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
    """Its socket, and what came there so far."""
    # A socket's path is short.
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        path = pathlib.Path(folder) / "notify"
        listener.bind(str(path))
        told = []

        def listen():
            while message := listener.recv(4096):
                told.append(message.decode().split())

        listening = threading.Thread(target=listen)
        listening.start()
        try:
            yield str(path), told
        finally:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
                end.sendto(b"", str(path))
            listening.join()


def test_what_the_manager_is_told(tmp_path):
    with manager() as (path, told), Replica(tmp_path, NAME, env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000"}) as server:

        def heard():
            return [message for message in told if message != ["WATCHDOG=1"]]

        assert process.await_true(lambda: heard() == [["READY=1"]], TIMEOUT_S), told
        server.signal(signal.SIGHUP)
        assert process.await_true(lambda: len(heard()) == 3, TIMEOUT_S), told
        [reloading, since], ready = heard()[1:]
        assert (reloading, ready) == ("RELOADING=1", ["READY=1"]) and re.fullmatch(r"MONOTONIC_USEC=\d+", since)
        assert process.await_true(lambda: told.count(["WATCHDOG=1"]) >= 3, TIMEOUT_S)
        assert server.end() == 0
        assert process.await_true(lambda: heard()[3:] == [["STOPPING=1"]], TIMEOUT_S), told


def test_ready_means_that_ids_are_there(tmp_path):
    """Not while a crashed holder's node number is waited for; then a client need not try twice."""
    spec = f"orders=standard node=3 store=file:{tmp_path}"
    with manager() as (path, told), Replica(tmp_path, spec, env={"NOTIFY_SOCKET": path}) as server:
        assert process.await_true(lambda: ["READY=1"] in told, TIMEOUT_S)
        server.signal(signal.SIGKILL)
        server.running.wait()
        del told[:]
        server.spawn()
        assert process.await_true(lambda: ["READY=1"] in told, TIMEOUT_S), server.log.read_text()
        assert len(server.ids("orders", 2)) == 2


def handed_over(folder, sockets, *arguments):
    """A replica that is handed sockets, by their names."""
    numbers = [str(listener.fileno()) for listener in sockets.values()]
    server = Replica(folder, *arguments, under=[sys.executable, "-c", HAND_OVER, ":".join(sockets), ",".join(numbers)])
    server.command = [part for part in server.command if not str(part).startswith(tuple(f"--{name}=" for name in sockets))]
    server.ports |= {name: process.port_of(listener) for name, listener in sockets.items()}
    server.options["pass_fds"] = [int(number) for number in numbers]
    return server


def test_sockets_that_are_handed_over(tmp_path):
    """A client that comes while no server runs is served by the next one."""
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
    "name, address, arguments, told",
    [
        ("web", "127.0.0.1", [], "FileDescriptorName"),
        ("http", "127.0.0.1", ["--http=:1"], "http=:1 is given"),
        ("http", "0.0.0.0", [], "--tokens"),
    ],
)
def test_sockets_that_do_not_fit(tmp_path, name, address, arguments, told):
    with socket.create_server((address, 0)) as listener, contextlib.ExitStack() as stack:
        server = handed_over(tmp_path, {name: listener}, NAME)
        server.command += arguments
        stack.push(server)
        with pytest.raises(AssertionError, match=told):
            server.start()


@pytest.mark.parametrize("kind", ["datagrams", "nobody listens", "a connection", "a Unix socket"])
def test_sockets_of_another_kind(tmp_path, kind):
    """Sockets of ListenDatagram= and Accept=yes are refused: no client could ever come there."""
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
    """SIGHUP comes while a store does not answer: the manager is not told that it is ready."""
    with manager() as (path, told), contextlib.ExitStack() as stack:
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        spec = f"orders=standard store=redis://127.0.0.1:{process.port_of(silent)}"
        server = Replica(tmp_path, spec, env={"NOTIFY_SOCKET": path})
        stack.push(server)
        server.spawn()
        assert process.await_true(lambda: server.log.exists() and "listening" in server.log.read_text(), TIMEOUT_S)
        server.reload("tokens.read")
        assert server.end() == 0
        assert ["READY=1"] not in told


def test_the_units(tmp_path):
    """systemd understands them, and the server the command line that is in them."""
    assert shutil.which("systemd-analyze"), "systemd-analyze is missing: the package systemd"
    unit = (DIST / "frazil-server.service").read_text()
    installed = "/usr/bin/frazil-server"
    # The checkout's path may have a space, which a unit's line would have to quote.
    program = tmp_path / "frazil-server"
    program.symlink_to(PROGRAM)
    (tmp_path / "frazil-server.service").write_text(unit.replace(installed, str(program)))
    shutil.copy(DIST / "frazil-server.socket", tmp_path)
    # systemd loads the machine's other units as well, and warns of them: another package's has a key that it does not know.
    others = tmp_path / "others"
    others.mkdir()
    (others / "sysinit.target").write_text("[Unit]\nDescription=Another package's\nNonsense=1\n")
    command = ["systemd-analyze", "verify", "--man=no", *tmp_path.glob("frazil-server.s*")]
    env = os.environ | {"SYSTEMD_UNIT_PATH": f"{others}:"}
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S, env=env)
    assert "Nonsense" in told.stderr
    ours = [line for line in told.stderr.splitlines() if "frazil-server" in line]
    assert (told.returncode, ours) == (0, []), told.stderr

    # The folder of the guide's Unix sockets: systemd lets it write nowhere else.
    assert "\nRuntimeDirectory=frazil\n" in unit and "unix:/run/frazil/" in (ROOT / "docs/server.md").read_text()

    settings = tmp_path / "server.toml"
    settings.write_text(f'[names]\norders = "{NAME.removeprefix("orders=")}"\n')
    # What runs before has no sockets, so it cannot judge the settings; and a store may be away for longer than five starts take.
    assert "ExecStartPre" not in unit and "\nStartLimitIntervalSec=0\n" in unit
    [starts] = re.findall(rf"^ExecStart={installed} (.*)$", unit, re.MULTILINE)
    told = run("check", *starts.replace("/etc/frazil/server.toml", str(settings)).split())
    assert told.returncode == 0, told.stderr
