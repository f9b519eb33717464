"""MariaDB 10.11: InnoDB, which syncs its log at every commit."""

from .server import Server


class Mariadb(Server):
    name = "mariadb"
    package = "mariadb-server"
    program = "mariadbd"
    account = "mysql"

    def install(self):
        """Makes the system tables."""
        plain = ["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"]
        self.run(["mariadb-install-db", *plain, f"--datadir={self.data}", f"--tmpdir={self.folder}"])

    def prepare(self):
        self.install()
        # The server reads this file at each start, before it opens the port.
        self.first_words = self.folder / "init.sql"
        self.first_words.write_text(
            "CREATE DATABASE IF NOT EXISTS frazil;\n"
            "CREATE USER IF NOT EXISTS frazil@'127.0.0.1' IDENTIFIED BY 'secret';\n"
            "GRANT ALL ON frazil.* TO frazil@'127.0.0.1';\n"
        )
        self.first_words.chmod(0o644)

    def command(self):
        options = {
            "datadir": self.data,
            "tmpdir": self.folder,
            "bind-address": "127.0.0.1",
            "port": self.port,
            "socket": self.folder / "socket",
            "pid-file": self.folder / "pid",
            "init-file": self.first_words,
            "innodb-buffer-pool-size": "16M",
            "innodb-log-file-size": "8M",
            "innodb-flush-log-at-trx-commit": 1,
            "max-connections": 60,
        }
        return [self.executable, "--no-defaults", "--skip-name-resolve", *(f"--{key}={value}" for key, value in options.items())]

    def url_at(self, port):
        return f"mysql://frazil:secret@127.0.0.1:{port}/frazil"

    def answers(self, connection):
        # The server greets first. The fifth byte is the protocol's version.
        return connection.recv(5)[4:] == b"\x0a"

    def sql(self, text):
        """Runs statements as the owner of the database, and returns their output."""
        account = ["--user=frazil", "--password=secret", "--protocol=tcp", "--host=127.0.0.1", f"--port={self.port}"]
        return self.run(["mariadb", "--no-defaults", *account, "--batch", "--skip-column-names", f"--execute={text}", "frazil"])
