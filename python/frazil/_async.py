"""The async forms: a call that need not wait runs in place, and a loop is notified when its other calls end."""

import asyncio
import atexit
import functools
import itertools
import weakref

from . import _frazil

_numbers = itertools.count()
_loops: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


class _Calls:
    """The calls that a loop waits for: the future of each, by its number."""

    def __init__(self, loop):
        self.futures = {}
        self.ends = _frazil._Ends(functools.partial(_wake, weakref.ref(loop)))


async def finish(call, _of):
    """Awaits a call that may have to wait, and returns its result. `_of` keeps the object of the call alive."""
    brought = call.look()
    if brought is not None:
        return brought[0]
    loop = asyncio.get_running_loop()
    calls = _loops.get(loop) or _loops.setdefault(loop, _Calls(loop))
    number, future = next(_numbers), loop.create_future()
    calls.futures[number] = future
    try:
        call.start(calls.ends, number)
        return await future
    finally:
        call.cancel()
        calls.futures.pop(number, None)


async def enter(ids):
    """Returns the object itself, for `async with`."""
    return ids


def _wake(loop):
    """Makes a loop settle the calls that have ended. Runs on another thread than the loop's."""
    loop = loop()
    if loop is None:
        return
    try:
        loop.call_soon_threadsafe(_settle, loop)
    except RuntimeError:  # it was closed
        _loops.pop(loop, None)


def _settle(loop):
    calls = _loops[loop]
    calls.ends.settle(calls.futures)


@atexit.register
def _end():
    for calls in list(_loops.values()):
        calls.ends.end()
