"""The release of leased numbers on SIGTERM, as at the interpreter's exit, if the program asks for it.

Without it the node number of a global generator stays reserved until its bound. A forked child releases only the numbers that it has leased
itself. A generator that the child has not used yet stays open, because it has nothing to release.
"""

from . import _frazil

_handler_before = None


def close_on_sigterm():
    """Releases leased numbers on SIGTERM. Then calls the program's own handler, or lets SIGTERM end the program.

    Python ends on SIGTERM without running `atexit` functions. The release waits for the store for up to 0.5 s. If the program ignores
    SIGTERM, or a library in C has set the handler, nothing is changed. Call it on the main thread, after the program has set its own
    handler. That handler runs after the generators are closed.
    """
    global _handler_before
    import signal
    import threading

    if threading.current_thread() is not threading.main_thread():
        raise _frazil.OutOfRangeError(
            "close_on_sigterm() is for the main thread, where Python calls signals' handlers,"
            f" and this is the thread {threading.current_thread().name!r}"
        )
    before = signal.getsignal(signal.SIGTERM)
    if before in (signal.SIG_IGN, None, _close_and_go_on):
        return
    _handler_before = before
    signal.signal(signal.SIGTERM, _close_and_go_on)


def _close_and_go_on(number, frame):
    _frazil.close_all()
    if callable(_handler_before):
        _handler_before(number, frame)
        return
    import os
    import signal

    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    # The kernel does not end a container's first process by a signal.
    os._exit(128 + number)
