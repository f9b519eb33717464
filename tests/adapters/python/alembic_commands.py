"""Alembic's own command line as a server. It imports its modules once, and runs each command in a forked process.

Reads a line for each command, JSON of [folder, argument, ...], and prints [status, output].
"""

import json
import os
import sys
import traceback

import alembic.command
import alembic.config
import frazil.sqlalchemy  # noqa: F401
import psycopg  # noqa: F401
import pymysql  # noqa: F401
import sqlalchemy.orm  # noqa: F401


def command(folder, arguments, out):
    """Runs a command in the child, and does not return."""
    status = 1
    try:
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.chdir(folder)
        sys.path.insert(0, folder)
        alembic.config.main(argv=arguments, prog="alembic")
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    finally:
        if sys.exc_info()[0]:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


for line in sys.stdin:
    folder, *arguments = json.loads(line)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        command(folder, arguments, write)
    os.close(write)
    with open(read) as out:
        said = out.read()
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said]), flush=True)
