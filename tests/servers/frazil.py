"""frazil-server, which lends every namespace of a folder. Several servers may lend the same folder."""

import os
import pathlib

from .server import Failure, Server

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug/frazil-server"


class Frazil(Server):
    name = "frazil"
    package = "none: server/build.sh builds it"
    program = str(PROGRAM)

    def __init__(self, lends=None):
        self.lends = lends
        super().__init__()

    @classmethod
    def find(cls):
        if not PROGRAM.exists():
            raise Failure(f"{PROGRAM} is missing: server/build.sh builds it")
        return cls.program

    @property
    def store(self):
        """Returns the store that the server lends."""
        return self.lends or f"file:{self.data}"

    def command(self):
        return [self.executable, f"--resp=127.0.0.1:{self.port}", f"*=lend store={self.store}"]

    def url_at(self, port):
        return f"frazil://127.0.0.1:{port}"

    def answers(self, connection):
        connection.sendall(b"PING\r\n")
        return connection.recv(100) == b"+PONG\r\n"

    def beside(self):
        """Starts another server, which lends the same store."""
        other = Frazil(self.store)
        try:
            other.launch()
            other.wait()
        except BaseException:
            other.stop()
            raise
        return other
