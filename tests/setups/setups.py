"""The set-ups. Each yields a store's URL and, for a cluster, a function that makes it fail over."""

import contextlib
import functools
import os
import pathlib
import shutil
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
    """Runs a program in a new folder. `command` gets the folder, and one port for each of `ports`."""
    with tempfile.TemporaryDirectory(prefix="frazil-setup-") as name:
        os.chmod(name, 0o777)
        folder = pathlib.Path(name)
        line = command(folder)
        if not shutil.which(line[0]):
            raise servers.Missing(f"{line[0]} is missing")
        running = process.spawn(line, folder / "log", account, cwd=folder)
        try:
            if not process.await_true(lambda: all(map(listens, ports)) or running.poll() is not None, 90) or running.poll() is not None:
                raise servers.Failure(f"it does not start (Debian's packages: {PACKAGES}): {(folder / 'log').read_text()[-2000:]}")
            yield running
        finally:
            # This also kills the children of a pooler.
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
    """Returns HAProxy's command. Its time limits are long, so that it does not cut silent connections."""
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


@contextlib.contextmanager
def odyssey():
    with servers.start("postgresql") as server, free_ports(1) as [port]:
        account = 'storage_user "frazil"\n storage_password "secret"\n password "secret"\n'
        settings = (
            f'daemonize no\nlocks_dir "."\nlog_to_stdout yes\nlog_format "%m\\n"\nlisten {{\n host "127.0.0.1"\n port {port}\n}}\n'
            f'storage "one" {{\n type "remote"\n host "127.0.0.1"\n port {server.port}\n}}\n'
            f'database default {{\n user default {{\n authentication "clear_text"\n {account} storage "one"\n pool "transaction"\n }}\n}}\n'
        )
        with program(lambda folder: ["/usr/bin/odyssey", written(folder, "settings", settings)], "postgres", [port]):
            yield server.url_at(port), None


class Node(servers.Mariadb):
    """A server of a Galera cluster. The first one has no others to join."""

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
    """Starts three servers. HAProxy uses one at a time; that one is killed half way."""
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
    """Starts a balancer that cuts connections after a silence shorter than the time between two renewals."""
    with servers.start(kind) as server, free_ports(1) as [port]:
        text = f"listen all\n bind 127.0.0.1:{port}\n timeout client {IDLE}\n timeout server {IDLE}\n server one 127.0.0.1:{server.port}\n"
        with program(haproxy(text), ports=[port]):
            yield server.url_at(port), None


@contextlib.contextmanager
def sentinel():
    """Starts a primary, a replica, three sentinels, and HAProxy, which follows the primary."""
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


class Valkey(servers.Redis):
    """Valkey, which began as Redis 7.2."""

    name = "valkey"
    package = "valkey-server"
    program = "valkey-server"


class Redict(servers.Redis):
    """Redict, which began as Redis 7.2."""

    name = "redict"
    package = "redict"
    program = "redict-server"


class Mysql(servers.Mariadb):
    """MySQL, whose users log in with caching_sha2_password."""

    name = "mysql"
    package = "mysql-server"
    program = "mysqld"

    def install(self):
        self.run([self.executable, "--no-defaults", "--initialize-insecure", f"--datadir={self.data}", f"--tmpdir={self.folder}"])

    def command(self):
        # MySQL 9 has another option for the size of the log.
        return [*(part for part in super().command() if not part.startswith("--innodb-log-file-size")), "--mysqlx=OFF"]


class Member(servers.Zookeeper):
    """A server of an ensemble."""

    def __init__(self, number, ensemble, role):
        self.number, self.ensemble, self.role = number, ensemble, role
        super().__init__()

    def prepare(self):
        super().prepare()
        (self.data / "myid").write_text(f"{self.number}\n")
        with self.settings.open("a") as settings:
            settings.write(f"initLimit=20\nsyncLimit=10\npeerType={self.role}\n{self.ensemble}")

    def answers(self, connection):
        connection.sendall(b"srvr")
        return b"Mode: " in connection.recv(4096)


@contextlib.contextmanager
def observer():
    """Three servers of ZooKeeper, and the observer through which all processes ask; the leader is killed half way."""
    with contextlib.ExitStack() as stack, free_ports(8) as ports:
        roles = ["participant"] * 3 + ["observer"]
        pairs = zip(roles, ports[::2], ports[1::2], strict=True)
        ensemble = "".join(f"server.{number}=127.0.0.1:{a}:{b}:{role}\n" for number, (role, a, b) in enumerate(pairs, 1))
        members = [stack.enter_context(Member(number, ensemble, role)) for number, role in enumerate(roles, 1)]
        for member in members:
            member.launch()
        for member in members:
            member.wait()
        yield members[-1].url, lambda: next(member for member in members if leads(member)).kill9()


def leads(member):
    with process.connect(member.port) as connection:
        connection.sendall(b"srvr")
        return b"Mode: leader" in connection.recv(4096)


@contextlib.contextmanager
def alone(kind):
    """One server, without anything between it and the processes; it is killed half way, and starts again."""
    with kind() as server:
        server.launch()
        server.wait()
        yield server.url, server.restart


SETUPS = {
    **{f"pgbouncer-{mode}": functools.partial(pgbouncer, mode) for mode in ("session", "transaction", "statement")},
    "pgpool": pgpool,
    "odyssey": odyssey,
    "galera": galera,
    **{f"idle-{kind}": functools.partial(idle, kind) for kind in ("postgresql", "mariadb", "redis", "etcd")},
    "sentinel": sentinel,
    "etcd-login": etcd_with_logins,
    "observer": observer,
    **{kind.name: functools.partial(alone, kind) for kind in (*servers.KINDS.values(), Valkey, Redict, Mysql)},
}
