"""ZooKeeper 3.8: one server, which syncs its log before it answers."""

from .server import Server


class Zookeeper(Server):
    name = "zookeeper"
    package = "zookeeper"
    program = "java"

    def prepare(self):
        self.settings = self.folder / "zoo.cfg"
        self.settings.write_text(
            f"dataDir={self.data}\n"
            f"clientPort={self.port}\n"
            "clientPortAddress=127.0.0.1\n"
            "tickTime=1000\n"
            "admin.enableServer=false\n"
            "4lw.commands.whitelist=srvr\n"
        )

    def command(self):
        # The heap can grow for the million records of bench/fleet/starts.py.
        small = ["-Xms32m", "-Xmx2g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        quiet = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dzookeeper.jmx.log4j.disable=true"]
        # The jar's manifest names its dependencies. slf4j-simple writes the log.
        jars = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar"
        return [self.executable, *small, *quiet, "-cp", jars, "org.apache.zookeeper.server.quorum.QuorumPeerMain", self.settings]

    def url_at(self, port):
        return f"zookeeper://127.0.0.1:{port}"

    def answers(self, connection):
        connection.sendall(b"srvr")
        return b"Mode: standalone" in connection.recv(4096)
