"""The ways in which an operator restores stores. Each cell has a store, and functions that take and restore a backup."""

import contextlib
import dataclasses
import enum
import os
import pathlib
import shutil
import socket
import subprocess
from collections.abc import Callable

import servers
from servers import process


class Sees(enum.Enum):
    """The processes that notice the restore."""

    EVERYBODY = "every process, with its next call"
    HOLDER = "the holder, with its next renewal"
    NOBODY = "nobody: the record is still there"


@dataclasses.dataclass
class Cell:
    """One way to restore one store."""

    name: str
    store: Callable
    save: Callable
    restore: Callable
    later: Sees
    """The answer for a number that was taken after the backup."""
    earlier: Sees
    """The answer for a number that was taken before the backup, and whose bound in the backup has passed."""
    clock: bool = True
    """True if the store has a clock: a process that notices then continues, unless its number was taken."""


class Folder:
    """`store=file:`, in a new folder."""

    def __init__(self, folder):
        self.path = folder / "store"
        self.url = f"file:{self.path}"


def copy(source, target):
    subprocess.run(["cp", "-a", source, target], check=True)
    return target


def move_into_place(store, saved):
    store.path.rename(store.path.with_name("replaced"))
    saved.rename(store.path)


def copy_of_data(server, name="saved"):
    """Makes a cold copy of a server's data folder, equal to a snapshot of its volume."""
    server.kill9()
    saved = copy(server.data, server.folder / name)
    server.launch()
    server.wait()
    return saved


def put_data_back(server, saved):
    server.kill9()
    shutil.rmtree(server.data)
    saved.rename(server.data)
    server.launch()
    server.wait()


# PostgreSQL.


class Archiving(servers.Postgresql):
    """A server with base backups and an archive of its log."""

    def prepare(self):
        super().prepare()
        self.archive = self.folder / "archive"
        self.run(["mkdir", self.archive])
        self.run([self.executable, "--single", "-D", self.data, "postgres"], input="CREATE ROLE keeper REPLICATION LOGIN\n")
        with open(self.data / "pg_hba.conf", "a") as rules:
            rules.write("host replication keeper 127.0.0.1/32 trust\n")

    def command(self):
        return [*super().command(), "--archive_mode=on", f"--archive_command=cp %p {self.archive}/%f"]

    def base_backup(self):
        saved = self.folder / "base"
        tool = pathlib.Path(self.executable).with_name("pg_basebackup")
        self.run([tool, "--pgdata", saved, "--host=127.0.0.1", f"--port={self.port}", "--username=keeper", "--checkpoint=fast"])
        return saved

    def recover_to_backup(self, saved):
        """Recovers to the time at which the backup was complete. The server is then promoted, on another timeline."""
        with open(saved / "postgresql.auto.conf", "a") as settings:
            settings.write(
                f"restore_command = 'cp {self.archive}/%f %p'\nrecovery_target = 'immediate'\nrecovery_target_action = 'promote'\n"
            )
        self.run(["touch", saved / "recovery.signal"])
        put_data_back(self, saved)
        read_only = "SELECT pg_is_in_recovery()"
        if not process.await_true(lambda: self.sql(read_only).strip() == "f", servers.server.TIMEOUT):
            raise servers.Failure("PostgreSQL does not end its recovery")


def dump(*options):
    return lambda server: server.run(["pg_dump", *options, server.url])


def load(before=""):
    def restore(server, text):
        file = server.folder / "dump.sql"
        file.write_text(before + text)
        file.chmod(0o644)
        server.run(["psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--single-transaction", f"--file={file}", server.url])

    return restore


# MariaDB.


def account(server):
    return ["--no-defaults", "--user=frazil", "--password=secret", "--protocol=tcp", "--host=127.0.0.1", f"--port={server.port}"]


def maria_dump(*options):
    return lambda server: server.run(["mariadb-dump", *account(server), "--single-transaction", *options, "frazil"])


def maria_load(server, text):
    server.run(["mariadb", *account(server), "frazil"], input=text)


# Redis.


class Dumping(servers.Redis):
    """A server that starts from a dump."""

    appends = "yes"

    def command_for(self, data, port):
        return [*super().command_for(data, port), "--appendonly", self.appends]


def redis_dump(server):
    server.call("SAVE")
    return copy(server.data / "dump.rdb", server.folder / "saved.rdb")


def redis_from_dump(server, saved):
    server.kill9()
    shutil.rmtree(server.data)
    server.data.mkdir(mode=0o700)
    copy(saved, server.data / "dump.rdb")
    server.appends = "no"
    server.launch()
    server.wait()


def redis_ask(server, *commands):
    """Sends commands together, and returns the bytes of their answers."""
    with process.connect(server.port) as connection:
        for words in commands:
            parts = [word if isinstance(word, bytes) else word.encode() for word in words]
            connection.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    if b"-ERR" in answer:
        raise servers.Failure(f"Redis refuses {commands}: {answer!r}")
    return answer


def redis_keys(server):
    """Returns the keys with the values that DUMP returns."""
    keys = redis_ask(server, ["KEYS", "*"]).split(b"\r\n")[2::2]
    # The value is after the length, and before the end of the line.
    return {key: redis_ask(server, ["DUMP", key]).partition(b"\r\n")[2][:-2] for key in keys}


def redis_flush_and_restore(server, saved):
    redis_ask(server, ["MULTI"], ["FLUSHALL"], *(["RESTORE", key, "0", value] for key, value in saved.items()), ["EXEC"])


class Replicated(servers.Redis):
    """A primary with a replica that stops following at the backup."""

    def save_replica(self):
        replica = servers.start("redis")
        replica.call("REPLICAOF", "127.0.0.1", self.port)
        if not process.await_true(lambda: self.in_step(replica.port), 30):
            raise servers.Failure("the replica does not follow")
        # Its primary is now a port on which no server listens, so the replica keeps its data.
        replica.call("REPLICAOF", "127.0.0.1", 1)
        self.replica = replica
        return replica

    def promote(self, replica):
        """Makes the replica answer at the primary's address."""
        self.kill9()
        replica.call("REPLICAOF", "NO", "ONE")
        replica.call("CONFIG", "SET", "port", self.port)
        if not process.await_true(lambda: process.listens(replica.running.pid, self.port), 30):
            raise servers.Failure("the replica does not take the port")

    def stop(self):
        super().stop()
        if hasattr(self, "replica"):
            self.replica.stop()


# etcd.


def etcdctl(server, *words):
    return server.run(["etcdctl", f"--endpoints=http://127.0.0.1:{server.port}", *words], env=os.environ | {"ETCDCTL_API": "3"})


def etcd_snapshot(server):
    saved = server.folder / "snapshot.db"
    etcdctl(server, "snapshot", "save", saved)
    return saved


def etcd_restore(token, ahead=False):
    def restore(server, saved):
        server.kill9()
        shutil.rmtree(server.data)
        member = [f"--initial-cluster=frazil={server.peers}", f"--initial-advertise-peer-urls={server.peers}", "--name=frazil"]
        etcdctl(server, "snapshot", "restore", saved, f"--data-dir={server.data}", *member, f"--initial-cluster-token={token}")
        if ahead:
            with_others(server)
        else:
            server.launch()
            server.wait()

    return restore


def with_others(server):
    """Raises the revision above the earlier one, by other programs' writes before the holders reconnect."""
    held, server.port = server.port, process.port_of(spare := process.reserve_port())
    server.launch()
    server.wait()
    for number in range(100):
        etcdctl(server, "put", f"other/{number}", "x")
    server.kill9()
    spare.close()
    server.port = held
    server.launch()
    server.wait()


def of(kind):
    """Returns a store with a server of this kind, which stops with the store."""

    @contextlib.contextmanager
    def store(folder):
        server = kind()
        try:
            server.launch()
            server.wait()
            yield server
        finally:
            server.stop()

    return store


def folder(path):
    return contextlib.nullcontext(Folder(path))


def keep_folder(store):
    return copy(store.path, store.path.with_name("saved"))


ALL, HOLDER = (Sees.EVERYBODY, Sees.EVERYBODY), (Sees.HOLDER, Sees.HOLDER)
SAME_TOKEN = "etcd-cluster"  # etcd's own default

CELLS = [
    Cell("postgresql-dump", of(servers.Postgresql), dump("--clean", "--if-exists"), load(), *ALL),
    Cell("postgresql-rows", of(servers.Postgresql), dump("--data-only"), load("TRUNCATE frazil;\n"), *HOLDER),
    Cell("postgresql-point-in-time", of(Archiving), Archiving.base_backup, Archiving.recover_to_backup, *ALL),
    Cell("postgresql-base-backup", of(Archiving), Archiving.base_backup, put_data_back, *HOLDER),
    Cell("mariadb-dump", of(servers.Mariadb), maria_dump("--replace"), maria_load, *HOLDER),
    Cell("mariadb-data-folder", of(servers.Mariadb), copy_of_data, put_data_back, *HOLDER),
    Cell("redis-dump", of(Dumping), redis_dump, redis_from_dump, *ALL),
    Cell("redis-keys", of(servers.Redis), redis_keys, redis_flush_and_restore, *HOLDER),
    Cell("redis-replica", of(Replicated), Replicated.save_replica, Replicated.promote, *ALL),
    Cell("etcd-new-token", of(servers.Etcd), etcd_snapshot, etcd_restore("restored"), *ALL, clock=False),
    Cell("etcd-same-token", of(servers.Etcd), etcd_snapshot, etcd_restore(SAME_TOKEN), *HOLDER, clock=False),
    Cell("etcd-overtaken", of(servers.Etcd), etcd_snapshot, etcd_restore(SAME_TOKEN, ahead=True), *HOLDER, clock=False),
    Cell("zookeeper-data-folder", of(servers.Zookeeper), copy_of_data, put_data_back, *HOLDER, clock=False),
    Cell("file-in-place", folder, keep_folder, lambda store, saved: copy(f"{saved}/.", store.path), Sees.NOBODY, Sees.HOLDER),
    Cell("file-renamed", folder, keep_folder, move_into_place, *HOLDER),
]
