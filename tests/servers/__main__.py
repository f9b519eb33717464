"""Runs a command with private servers: python3 tests/servers NAME,NAME... -- COMMAND...

Each server's URL is in FRAZIL_TEST_REDIS, _POSTGRESQL, _MARIADB, _ETCD, _ZOOKEEPER; `all` starts all of them.
The exit status is the command's.
"""

import contextlib
import os
import pathlib
import subprocess
import sys

# Python puts the folder itself on the path, but the package is in its parent.
sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)

import servers
from servers import process


def main(arguments):
    if len(arguments) < 3 or arguments[1] != "--":
        print(__doc__, file=sys.stderr)
        return 2
    names = list(servers.KINDS) if arguments[0] == "all" else arguments[0].split(",")
    process.exit_on_signals()
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(server) for server in servers.start_all(names)]
        urls = {servers.variable(server.name): server.url for server in running}
        child = subprocess.Popen(arguments[2:], env=os.environ | urls)
        try:
            status = child.wait()
        except BaseException:
            child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(10)
            child.kill()
            raise
    # Like a shell, this reports a signal as 128 plus its number.
    return status if status >= 0 else 128 - status


try:
    sys.exit(main(sys.argv[1:]))
except (servers.Failure, KeyboardInterrupt) as failure:
    sys.exit(f"servers: {failure or 'interrupted'}")
