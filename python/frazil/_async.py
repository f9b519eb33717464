"""The async forms: a call that need not wait runs in place, and a loop is notified when its other calls end."""

import atexit
import contextlib
import functools
import itertools
import os
import sys
import weakref

from . import _frazil

_numbers = itertools.count()
_loops: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


class _Calls:
    """The calls that a loop waits for: the future of each, by its number. A future has no result: the call keeps it for its task."""

    def __init__(self, loop):
        self.futures = {}
        self.ends = _frazil._Ends(functools.partial(_wake, weakref.ref(loop)))

    def settle(self, numbers):
        for number in numbers:
            future = self.futures.pop(number, None)
            if future is not None and not future.done():
                future.set_result(None)


class _TrioFuture:
    """A future for trio, which has none."""

    def __init__(self, event):
        self._event = event

    def done(self):
        return self._event.is_set()

    def set_result(self, _):
        self._event.set()

    def __await__(self):
        yield from self._event.wait().__await__()


async def finish(call, _of):
    """Awaits a call that may have to wait, and returns its result. `_of` keeps the object of the call alive."""
    brought = call.look()
    if brought is not None:
        return brought[0]
    loop, future = _running()
    calls = _loops.get(loop) or _loops.setdefault(loop, _Calls(loop))
    number = next(_numbers)
    calls.futures[number] = future
    try:
        call.start(calls.ends, number)
        await future
        return call.take()
    finally:
        call.cancel()
        calls.futures.pop(number, None)


async def enter(ids):
    """Returns the object itself, for `async with`."""
    return ids


def _running():
    """The running loop, and a future of it. Neither library is imported, because a running loop has imported its own.

    trio reports itself to sniffio, which it imports. It may run within a loop of asyncio, so it is checked first.
    """
    sniffio, trio, asyncio = map(sys.modules.get, ("sniffio", "trio", "asyncio"))
    if trio and sniffio and sniffio.thread_local.name == "trio":
        return trio.lowlevel.current_trio_token(), _TrioFuture(trio.Event())
    if asyncio and (loop := asyncio._get_running_loop()):
        return loop, loop.create_future()
    raise _frazil.WouldBlockError("the call has to wait, and neither asyncio nor trio runs here: call its form without async in a thread")


def _wake(loop):
    """Makes a loop settle the calls that have ended. Runs on another thread than the loop's."""
    loop = loop()
    if loop is None:
        return
    soon = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon
    try:
        soon(_settle, loop)
    except RuntimeError:  # it was closed
        _loops.pop(loop, None)


def _settle(loop):
    # A forked child has dropped its parent's calls, but the parent's loop may still have queued this callback.
    if calls := _loops.get(loop):
        calls.settle(calls.ends.take())


def _in_child():
    """Ends all calls in a forked child, because their results belong to the parent and nothing would wake this loop."""
    inherited = list(_loops.values())
    _loops.clear()
    for calls in inherited:
        # The loop may be one of another thread, which the child does not have.
        with contextlib.suppress(RuntimeError):
            calls.settle(list(calls.futures))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


@atexit.register
def _end():
    for calls in list(_loops.values()):
        calls.ends.end()
