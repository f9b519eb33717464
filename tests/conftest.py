"""Shared by all suites: a run that is ended removes its servers, processes and folders. Tests of one store run in one process."""

import itertools
import os
import re
import signal
import subprocess

import pytest

SCOPE = "FRAZIL_GUARD_SCOPE"
COUNT = itertools.count(1)


class Apart(subprocess.Popen):
    """A process with its own scope of fixed node numbers, unless a test has given it a common scope."""

    def __init__(self, *args, env=None, **options):
        env = dict(os.environ if env is None else env)
        mine = f"pytest-{os.getpid()}"
        if env.get(SCOPE, mine) == mine:
            env[SCOPE] = f"{mine}-{next(COUNT)}"
        super().__init__(*args, env=env, **options)


def pytest_configure():
    os.environ[SCOPE] = f"pytest-{os.getpid()}"
    subprocess.Popen = Apart
    # Both signals act like Ctrl-C, even if a shell has started the run in the background with the signal ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Runs the tests of one store in one process, which starts its server once. All other tests run in any process."""
    from xdist.scheduler import LoadScopeScheduling

    class ByStore(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            store = re.search(r"\[(file|redis|postgresql|mariadb|etcd|zookeeper|frazil)\]$", nodeid)
            return store[1] if store else nodeid

    return ByStore(config, log)
