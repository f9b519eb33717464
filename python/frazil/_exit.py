"""What is still open at the interpreter's exit gives its node number back.

Without that a number that is held by a global would have to wait for its bound. A forked child gives back what it has leased itself,
and nothing of its parent's.
"""

import atexit
import time
import weakref

# For all generators together: a program must end, whatever its store does.
PATIENCE = 0.5

_open: weakref.WeakSet = weakref.WeakSet()


def close_at_exit(ids):
    """Remembers a generator, as long as somebody else does."""
    _open.add(ids)


@atexit.register
def _close_all():
    until = time.monotonic() + PATIENCE
    for ids in list(_open):
        ids._close_within(max(0.0, until - time.monotonic()))
