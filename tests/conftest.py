"""Whatever ends a run of the tests, their servers, processes and folders end too; and which tests go on side by side."""

import os
import re
import signal

import pytest


def pytest_configure():
    # What runs beside this process may have the same fixed node numbers.
    os.environ["FRAZIL_GUARD_SCOPE"] = f"pytest-{os.getpid()}"
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
