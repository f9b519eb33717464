"""Redis 7: every write is on disk before it is acknowledged."""

import time

from . import process
from .server import Failure, Server


class Redis(Server):
    name = "redis"
    package = "redis-server"
    program = "redis-server"

    def command(self):
        return self.command_for(self.data, self.port)

    def command_for(self, data, port):
        options = {
            "port": port,
            "bind": "127.0.0.1",
            "dir": data,
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
            "maxmemory": "64mb",
            "maxmemory-policy": "noeviction",
            # A replica is in sync at once after it has connected, not 5 s later.
            "repl-diskless-sync-delay": 0,
        }
        return [self.executable, *(part for key, value in options.items() for part in (f"--{key}", value))]

    def url_at(self, port):
        return f"redis://127.0.0.1:{port}/0"

    def answers(self, connection):
        connection.sendall(b"PING\r\n")
        return connection.recv(100) == b"+PONG\r\n"

    def call(self, *words, port=None):
        """Sends one command with a short answer, and returns the start of the answer."""
        with process.connect(port or self.port) as connection:
            parts = [str(word).encode() for word in words]
            connection.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
            answer = connection.recv(65536).decode()
        if answer.startswith("-"):
            raise Failure(f"redis refuses {words}: {answer}")
        return answer

    def flush(self):
        """Loses all data at once, like a mistaken FLUSHALL."""
        self.call("FLUSHALL", "SYNC")

    def promote_replica(self, stale_for=1.0, sleep=time.sleep):
        """Makes a failover that loses writes: a replica gets none for `stale_for` seconds, and then replaces the primary.

        The promoted replica is another process with its own data, and answers at the primary's address. `sleep` waits for the seconds.
        """
        data = self.folder / f"replica-{time.monotonic_ns()}"
        data.mkdir(mode=0o700)
        reserved = process.reserve_port()
        port = process.port_of(reserved)
        replica = process.spawn([*self.command_for(data, port), "--replicaof", "127.0.0.1", self.port], self.log, cwd=self.folder)
        try:
            if not process.await_true(lambda: self.in_step(port), 30):
                raise Failure("the replica does not follow")
            # Its primary is now a port on which no server listens. It keeps its data, and is still a replica.
            self.call("REPLICAOF", "127.0.0.1", 1, port=port)
            sleep(stale_for)
            self.kill9()
        except BaseException:
            replica.kill()
            reserved.close()
            raise
        self.running, self.data = replica, data
        self.call("REPLICAOF", "NO", "ONE", port=port)
        self.call("CONFIG", "SET", "port", self.port, port=port)
        reserved.close()
        self.wait()

    def in_step(self, port):
        """Returns whether a replica has all its primary's data, also on disk. Until it has rewritten its log, it would lose writes."""
        try:
            follows = "master_link_status:up" in self.call("INFO", "replication", port=port)
            disk = self.call("INFO", "persistence", port=port)
        except OSError:
            return False
        return follows and "aof_rewrite_in_progress:0" in disk and "aof_rewrite_scheduled:0" in disk
