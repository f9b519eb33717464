"""Whatever ends a run of the tests, their servers, processes and folders end too; and which tests go on side by side."""

import itertools
import os
import re
import signal
import subprocess

import pytest

SCOPE = "FRAZIL_GUARD_SCOPE"
COUNT = itertools.count(1)


class Apart(subprocess.Popen):
    """A process that may have fixed node numbers of this one, unless a test has given them a common scope."""

    def __init__(self, *args, env=None, **options):
        env = dict(os.environ if env is None else env)
        mine = f"pytest-{os.getpid()}"
        if env.get(SCOPE, mine) == mine:
            env[SCOPE] = f"{mine}-{next(COUNT)}"
        super().__init__(*args, env=env, **options)


def pytest_configure():
    os.environ[SCOPE] = f"pytest-{os.getpid()}"
    subprocess.Popen = Apart
    # As Ctrl-C does, also where a shell has started the run in the background and lets it ignore that.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """The tests of one store go to one process, which starts its server once; all others go wherever there is time."""
    from xdist.scheduler import LoadScopeScheduling

    class ByStore(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            store = re.search(r"\[(file|redis|postgresql|mariadb|etcd|zookeeper|frazil)\]$", nodeid)
            return store[1] if store else nodeid

    return ByStore(config, log)
