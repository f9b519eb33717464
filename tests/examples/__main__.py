"""Starts an example to look at: python3 tests/examples NAME

It runs until Ctrl-C, on DATABASE_URL, or else on a new PostgreSQL, whose data is removed at the end. PORT is 8000 by default.
"""

import contextlib
import os
import pathlib
import sys

# Python puts the folder itself on the path, but the packages are in its parent.
sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)

import servers
from servers import process

from examples import application


def main(arguments):
    if len(arguments) != 1 or arguments[0] not in application.names():
        print(f"{__doc__}\nNAME is one of: {', '.join(application.names())}", file=sys.stderr)
        return 2
    process.exit_on_signals()
    example = application.Example(arguments[0])
    example.prepare()
    with contextlib.ExitStack() as stack:
        database = os.environ.get("DATABASE_URL") or stack.enter_context(servers.start("postgresql")).url
        running = stack.enter_context(example.start(database, int(os.environ.get("PORT", "8000"))))
        print(f"{running.url}\nin {example.folder}, with DATABASE_URL={database}; what it says is in {running.log}; Ctrl-C ends it")
        try:
            running.running.wait()
        finally:
            running.stop()
    return 1


try:
    sys.exit(main(sys.argv[1:]))
except (servers.Failure, AssertionError, KeyboardInterrupt) as failure:
    sys.exit(f"examples: {failure or 'interrupted'}")
