"""What is still leased is given back on SIGTERM, as at the interpreter's exit, if the program wants that.

Without that a node number that is held by a global would have to wait for its bound. A forked child gives back what it has leased
itself, and nothing of its parent's; a generator that it has not used yet stays open, as it has nothing to give back.
"""

from . import _frazil

_handler_before = None


def close_on_sigterm():
    """Gives leased numbers back on SIGTERM, and then does what the program did before: its handler is called, or SIGTERM ends it.

    Python ends on SIGTERM without running what `atexit` holds. The store is waited for up to 0.5 s. A program that ignores SIGTERM goes
    on to, and one whose handler was set by a library in C keeps that: nothing is changed then. To be called on the main thread, after
    the program has set its own handler, which finds the generators closed.
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
    _frazil._close_all()
    if callable(_handler_before):
        _handler_before(number, frame)
        return
    import os
    import signal

    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    # The kernel spares a container's first process.
    os._exit(128 + number)
