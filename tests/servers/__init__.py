"""Private servers for the tests: Redis, PostgreSQL, MariaDB, etcd and ZooKeeper, each on its own free loopback port.

    with servers.start("redis") as server:
        frazil.Snowflake("standard", store=server.url)

The data is in a temporary folder, which is removed with the server. Existing servers are never touched. The settings
are those of a careful production server: acknowledged writes are on disk. Start servers from the main thread, because
the kernel ends them with the thread that started them.
"""

from .etcd import Etcd
from .frazil import Frazil
from .mariadb import Mariadb
from .postgresql import Postgresql
from .proxy import Proxy
from .redis import Redis
from .server import Failure, Missing, Server
from .zookeeper import Zookeeper

__all__ = [
    "ALL", "KINDS", "Etcd", "Failure", "Frazil", "Mariadb", "Missing", "Postgresql", "Proxy", "Redis", "Server", "Zookeeper", "start", "start_all",
    "variable",
]  # fmt: skip

KINDS = {kind.name: kind for kind in (Redis, Postgresql, Mariadb, Etcd, Zookeeper)}
# With frazil-server, which is built from this checkout, and lends its own store.
ALL = KINDS | {Frazil.name: Frazil}


def start(name):
    """Starts one server, and returns it once it answers. It ends with the `with` block, or by `stop()`."""
    return start_all([name])[0]


def start_all(names):
    """Starts servers side by side, and returns them once they all answer."""
    unknown = [name for name in names if name not in ALL]
    if unknown:
        raise Failure(f"no such server: {', '.join(unknown)}; there are: {', '.join(ALL)}")
    running = []
    try:
        for name in names:
            running.append(ALL[name]())
        for server in running:
            server.launch()
        for server in running:
            server.wait()
    except BaseException:
        for server in running:
            server.stop()
        raise
    return running


def variable(name):
    """Returns the name of the environment variable with a server's URL."""
    return f"FRAZIL_TEST_{name.upper()}"
