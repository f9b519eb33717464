"""The set-ups: each yields a store's URL and, for a cluster, what makes it fail over."""

import contextlib
import functools
import os
import pathlib
import signal
import socket
import subprocess
import tempfile

import servers
from servers import process

PACKAGES = "pgbouncer pgpool2 haproxy redis-sentinel galera-4 rsync"
IDLE = "600ms"


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def program(command, account=None, ports=()):
    """Runs a program in a folder of its own; `command` gets the folder, and a port for each of `ports`."""
    with tempfile.TemporaryDirectory(prefix="frazil-setup-") as name:
        os.chmod(name, 0o777)
        folder = pathlib.Path(name)
        running = process.spawn(command(folder), folder / "log", account, cwd=folder)
        try:
            if not process.await_true(lambda: all(map(listens, ports)) or running.poll() is not None, 90) or running.poll() is not None:
                raise servers.Failure(f"it does not start (Debian's packages: {PACKAGES}): {(folder / 'log').read_text()[-2000:]}")
            yield running
        finally:
            # A pooler's own children, too.
            process.send(process.family(running.pid), signal.SIGKILL)
            running.wait()


@contextlib.contextmanager
def free_ports(count):
    reserved = [process.reserve_port() for _ in range(count)]
    yield [process.port_of(one) for one in reserved]
    for one in reserved:
        one.close()


def written(folder, name, text):
    path = folder / name
    path.write_text(text)
    path.chmod(0o644)
    return path


def haproxy(sections):
    """HAProxy's command; a section that is silent for too long is not meant to be one."""
    defaults = "defaults\n mode tcp\n timeout connect 2s\n timeout client 1h\n timeout server 1h\n"
    return lambda folder: ["/usr/sbin/haproxy", "-f", written(folder, "ha.cfg", defaults + sections)]


@contextlib.contextmanager
def pgbouncer(mode):
    with servers.start("postgresql") as server, free_ports(1) as [port]:
        settings = (
            f"[databases]\nfrazil = host=127.0.0.1 port={server.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
            f"auth_type = plain\nauth_file = users\npool_mode = {mode}\nunix_socket_dir =\n"
        )

        def command(folder):
            written(folder, "users", '"frazil" "secret"\n')
            return ["/usr/sbin/pgbouncer", written(folder, "settings", settings)]

        with program(command, "postgres", [port]):
            yield server.url_at(port), None


@contextlib.contextmanager
def pgpool():
    with servers.start("postgresql") as server, free_ports(2) as [port, control]:
        settings = (
            f"listen_addresses='127.0.0.1'\nport={port}\nsocket_dir='.'\npcp_port={control}\npcp_socket_dir='.'\npid_file_name='pid'\n"
            f"backend_hostname0='127.0.0.1'\nbackend_port0={server.port}\nbackend_flag0='ALWAYS_PRIMARY'\n"
            "backend_clustering_mode='raw'\nallow_clear_text_frontend_auth=on\n"
        )
        with program(lambda folder: ["/usr/sbin/pgpool", "-n", "-f", written(folder, "settings", settings)], "postgres", [port]):
            yield server.url_at(port), None


class Node(servers.Mariadb):
    """A server of a Galera cluster; the first one has no others to join."""

    def __init__(self, ports, others):
        self.ports, self.others = ports, others
        super().__init__()

    def command(self):
        group, transfer, state = (f"127.0.0.1:{port}" for port in self.ports)
        options = {
            "binlog-format": "ROW",
            "innodb-autoinc-lock-mode": 2,
            "wsrep-on": "ON",
            "wsrep-provider": "/usr/lib/galera/libgalera_smm.so",
            "wsrep-cluster-address": f"gcomm://{self.others}",
            "wsrep-node-address": group,
            "wsrep-provider-options": f"gmcast.listen_addr=tcp://{group};ist.recv_addr={transfer};gcache.size=16M",
            "wsrep-sst-method": "rsync",
            "wsrep-sst-receive-address": state,
        }
        plain = [part for part in super().command() if not (self.others and part.startswith("--init-file"))]
        return [*plain, *(f"--{key}={value}" for key, value in options.items()), *([] if self.others else ["--wsrep-new-cluster"])]


@contextlib.contextmanager
def galera():
    """Three servers, of which HAProxy uses one at a time; it is killed half way."""
    with contextlib.ExitStack() as stack, free_ports(10) as [front, *ports]:
        nodes = []
        for first in range(0, 9, 3):
            node = stack.enter_context(Node(ports[first : first + 3], f"127.0.0.1:{ports[0]}" if nodes else ""))
            node.launch()
            node.wait()
            nodes.append(node)
        lines = [f" server n{node.port} 127.0.0.1:{node.port}{' backup' if node is not nodes[0] else ''}\n" for node in nodes]
        text = f"listen all\n bind 127.0.0.1:{front}\n default-server check inter 500ms on-marked-down shutdown-sessions\n" + "".join(lines)
        stack.enter_context(program(haproxy(text), ports=[front]))
        yield nodes[0].url_at(front), nodes[0].kill9


@contextlib.contextmanager
def idle(kind):
    """A balancer that cuts connections which are silent for less than the time between two renewals."""
    with servers.start(kind) as server, free_ports(1) as [port]:
        text = f"listen all\n bind 127.0.0.1:{port}\n timeout client {IDLE}\n timeout server {IDLE}\n server one 127.0.0.1:{server.port}\n"
        with program(haproxy(text), ports=[port]):
            yield server.url_at(port), None


@contextlib.contextmanager
def sentinel():
    """A primary, a replica, three sentinels, and HAProxy that follows the primary."""
    with contextlib.ExitStack() as stack, free_ports(6) as [first, second, *watch, front]:
        own = ["--bind", "127.0.0.1", "--appendonly", "yes", "--save", ""]
        for port, more in ((first, []), (second, ["--replicaof", "127.0.0.1", str(first)])):
            stack.enter_context(program(lambda _, port=port, more=more: ["redis-server", "--port", port, *own, *more], ports=[port]))
        for port in watch:
            text = f"port {port}\nbind 127.0.0.1\nsentinel monitor ids 127.0.0.1 {first} 2\nsentinel down-after-milliseconds ids 2000\n"

            def command(folder, text=text):
                path = written(folder, "sentinel.conf", text + "sentinel failover-timeout ids 10000\n")
                return ["redis-sentinel", path]

            stack.enter_context(program(command, ports=[port]))
        text = (
            f"listen primary\n bind 127.0.0.1:{front}\n option tcp-check\n tcp-check send info\\ replication\\r\\n\n"
            " tcp-check expect string role:master\n default-server check inter 500ms on-marked-down shutdown-sessions\n"
            f" server one 127.0.0.1:{first}\n server two 127.0.0.1:{second}\n"
        )
        stack.enter_context(program(haproxy(text), ports=[front]))
        yield f"redis://127.0.0.1:{front}", lambda: redis_says(watch[0], "sentinel failover ids")


def redis_says(port, line):
    with process.connect(port) as connection:
        connection.sendall(f"{line}\r\n".encode())
        return connection.recv(1000)


@contextlib.contextmanager
def etcd_with_logins():
    with servers.start("etcd") as server:
        for words in ("user add root:secret", "user grant-role root root", "auth enable"):
            command = ["etcdctl", "--endpoints", f"127.0.0.1:{server.port}", *words.split()]
            subprocess.run(command, check=True, capture_output=True, env={**os.environ, "ETCDCTL_API": "3"}, timeout=30)
        yield server.url.replace("etcd://", "etcd://root:secret@"), None


SETUPS = {
    **{f"pgbouncer-{mode}": functools.partial(pgbouncer, mode) for mode in ("session", "transaction", "statement")},
    "pgpool": pgpool,
    "galera": galera,
    **{f"idle-{kind}": functools.partial(idle, kind) for kind in ("postgresql", "mariadb", "redis", "etcd")},
    "sentinel": sentinel,
    "etcd-login": etcd_with_logins,
}
