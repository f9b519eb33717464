"""A panic ends only the connection or thread in which it happens. It is logged like other events, and counted."""

import pathlib
import socket
import subprocess

import pytest
from replica import TIMEOUT_S, Replica

SOURCE = pathlib.Path(__file__).parent / "broken.c"


@pytest.fixture
def server(tmp_path):
    """Runs a server that can be made to panic."""
    library = tmp_path / "broken.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True, timeout=TIMEOUT_S)
    env = {"LD_PRELOAD": str(library), "BREAKS": str(tmp_path / "breaks")}
    with Replica(tmp_path, "orders=standard node=1", env=env) as replica:
        yield replica


def panics(server):
    # The log consists of lines of JSON only.
    return [event for event in server.events() if event["event"] == "panic"]


def test_a_panic_ends_one_connection(server):
    with server.redis() as other:
        assert other.ping()
        assert server.raw(b"POST /v1/orders/next HTTP/1.1\r\nHost: localhost\r\nX: PANIC\r\n\r\n", port="http") == b""
        assert server.raw(b"ECHO PANIC\r\n") == b""
        assert other.incr("orders") > 0 and len(server.ids("orders", 100)) == 100
        counted = server.ask("GET", "/metrics", port="admin")[2].decode()
        assert "frazil_server_panics_total 2\n" in counted and 'connections{protocol="resp"} 1\n' in counted
    assert {(event["level"], event["code"]) for event in panics(server)} == {("error", "INTERNAL")} and len(panics(server)) == 2
    assert server.end() == 0


def test_a_port_that_breaks_ends_the_server(server, tmp_path):
    """The server exits, so that its supervisor restarts it. Without a listener, it would stay ready but serve no client."""
    (tmp_path / "breaks").touch()
    with socket.socket() as client:
        client.connect(("127.0.0.1", server.ports["http"]))
        assert server.running.wait(TIMEOUT_S) == 1
    assert panics(server)
    failed = server.events()[-1]
    assert (failed["event"], failed["code"]) == ("failed", "INTERNAL")
