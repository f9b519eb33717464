"""etcd 3.4: a cluster of one member."""

from . import process
from .server import Server


class Etcd(Server):
    name = "etcd"
    package = "etcd-server"
    program = "etcd"

    def prepare(self):
        self.reserved_for_peers = process.reserve_port()
        self.peers = f"http://127.0.0.1:{process.port_of(self.reserved_for_peers)}"

    def command(self):
        clients = f"http://127.0.0.1:{self.port}"
        options = {
            "name": "frazil",
            "data-dir": self.data,
            "listen-client-urls": clients,
            "advertise-client-urls": clients,
            "listen-peer-urls": self.peers,
            "initial-advertise-peer-urls": self.peers,
            "initial-cluster": f"frazil={self.peers}",
            "logger": "zap",
            "log-level": "warn",
        }
        return [self.executable, *(f"--{key}={value}" for key, value in options.items())]

    def stop(self):
        super().stop()
        self.reserved_for_peers.close()

    def url_at(self, port):
        return f"etcd://127.0.0.1:{port}"

    def answers(self, connection):
        connection.sendall(b"GET /health HTTP/1.0\r\n\r\n")
        answer = b""
        while part := connection.recv(1000):
            answer += part
        return b'"health":"true"' in answer
