"""The async forms: what need not wait is done in place, and a loop is told how its other calls ended."""

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
    """What a call brings that may wait; the object that it is of lives as long."""
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
    """For `async with`."""
    return ids


def _wake(loop):
    """Has a loop settle what has ended; not on its own thread."""
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
