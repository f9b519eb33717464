"""PostgreSQL 15: the owner is not a superuser, and passwords are checked."""

import pathlib
import struct

from .server import Server


class Postgresql(Server):
    name = "postgresql"
    package = "postgresql"
    program = "/usr/lib/postgresql/*/bin/postgres"
    account = "postgres"

    def prepare(self):
        # initdb does not sync, which would take long, and only matters for a power cut during the tests. The server itself syncs.
        initdb = pathlib.Path(self.executable).with_name("initdb")
        self.run([initdb, "--pgdata", self.data, "--username=postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"])
        (self.data / "pg_hba.conf").write_text("host frazil frazil 127.0.0.1/32 scram-sha-256\n")
        self.run(
            [self.executable, "--single", "-D", self.data, "postgres"],
            input="CREATE ROLE frazil LOGIN PASSWORD 'secret'\nCREATE DATABASE frazil OWNER frazil\n",
        )

    def command(self):
        options = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "shared_buffers": "16MB",
            "max_connections": 60,
            # The shared memory is in the data folder, which is removed. Elsewhere, that of a killed server would remain.
            "dynamic_shared_memory_type": "mmap",
            "fsync": "on",
            "synchronous_commit": "on",
        }
        return [self.executable, "-D", self.data, *(f"--{key}={value}" for key, value in options.items())]

    def url_at(self, port):
        return f"postgresql://frazil:secret@127.0.0.1:{port}/frazil"

    def answers(self, connection):
        # During its recovery, the server also answers, but with an error.
        parameters = b"user\0frazil\0database\0frazil\0\0"
        connection.sendall(struct.pack("!ii", 8 + len(parameters), 3 << 16) + parameters)
        return connection.recv(1) == b"R"

    def sql(self, text):
        """Runs statements as the owner of the database, and returns their output."""
        return self.run(
            ["psql", "--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--set=ON_ERROR_STOP=1", f"--command={text}", self.url]
        )
