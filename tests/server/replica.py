"""A running frazil-server, and what clients send it."""

import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

import redis

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from servers import process

ROOT = pathlib.Path(__file__).parent.parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PROGRAM = pathlib.Path(os.environ.get("FRAZIL_TEST_PROGRAM", TARGET / "debug/frazil-server"))
TIMEOUT_S = 60


class Replica:
    """A server with the given names, which ends with the `with` block."""

    def __init__(self, folder, *arguments, env=None, tls=None, under=(), host=""):
        """Prepares a server. `tls` is the clients' `ssl.SSLContext`, `under` a command that starts it, `host` the host of its addresses."""
        self.tls, self.address = tls, "::1" if host.startswith("[") else "127.0.0.1"
        self.reserved = {protocol: process.reserve_port() for protocol in ("http", "resp", "admin")}
        self.ports = {protocol: process.port_of(reserved) for protocol, reserved in self.reserved.items()}
        addresses = [f"--{protocol}={host}:{port}" for protocol, port in self.ports.items()]
        self.command = [*under, PROGRAM, *addresses, *arguments]
        self.log = folder / f"server-{self.ports['http']}.log"
        # The scope keeps it apart from other tests' servers with the same fixed numbers.
        self.options = {"env": os.environ | {"FRAZIL_GUARD_SCOPE": str(folder)} | (env or {})}
        self.running = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.running.poll() is None:
            self.running.kill()
        self.running.wait()
        for reserved in self.reserved.values():
            reserved.close()

    def spawn(self):
        self.running = process.spawn(self.command, self.log, **self.options)

    def start(self):
        self.spawn()
        assert process.await_true(lambda: self.running.poll() is not None or self.is_ready(), TIMEOUT_S), self.log.read_text()
        assert self.running.poll() is None, self.log.read_text()

    def is_ready(self):
        try:
            return self.ask("GET", "/readyz", port="admin")[0] == 200
        except OSError:
            return False

    def signal(self, number):
        os.kill(self.running.pid, number)

    def reload(self, name):
        """Makes the server read its files again, and waits until it has logged one more event with this name."""

        def count():
            return sum(event["event"] == name for event in self.events())

        before = count()
        self.signal(signal.SIGHUP)
        assert process.await_true(lambda: count() > before, TIMEOUT_S), self.log.read_text()

    def end(self):
        """Ends the server by SIGTERM, as an operator does, and returns its exit status."""
        self.signal(signal.SIGTERM)
        return self.running.wait(TIMEOUT_S)

    def events(self):
        """Returns the events that the server has logged."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def connection(self, port="http"):
        if self.tls:
            return http.client.HTTPSConnection(self.address, self.ports[port], timeout=TIMEOUT_S, context=self.tls)
        return http.client.HTTPConnection(self.address, self.ports[port], timeout=TIMEOUT_S)

    def ask(self, method, path, headers=None, body=None, port="http"):
        """Sends a request on a new connection; returns the status, the headers and the body."""
        connection = self.connection(port)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def json(self, method, path, **options):
        """Sends a request, and parses the answer as JSON."""
        status, _, body = self.ask(method, path, **options)
        return status, json.loads(body)

    def ids(self, name, count):
        """Returns `count` IDs, requested over HTTP."""
        status, body = self.json("POST", f"/v1/{name}/next?n={count}")
        assert status == 200, body
        return [int(number) for number in body["ids"]]

    def redis(self, **options):
        # No retries, because the library would retry a refused request for seconds.
        return redis.Redis(port=self.ports["resp"], socket_timeout=TIMEOUT_S, **({"retry": None} | options))

    def raw(self, data, port="resp"):
        """Sends bytes, and returns what comes back until the server closes the connection."""
        with socket.create_connection(("127.0.0.1", self.ports[port]), timeout=TIMEOUT_S) as connection:
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                return b"".join(iter(lambda: connection.recv(65536), b""))
            except OSError:
                # The server closed the connection with unread input, so the answer may be lost.
                return b""


def run(*arguments, env=None):
    """Runs frazil-server to its end."""
    return subprocess.run(
        [PROGRAM, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=os.environ | (env or {})
    )
