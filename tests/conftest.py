"""Whatever ends a run of the tests, their servers, processes and folders end too."""

import signal


def pytest_configure():
    # As Ctrl-C does, also where a shell has started the run in the background and lets it ignore that.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
