"""The async forms: what must wait for longer than 2 ms does so in the event loop's executor."""

import asyncio

from . import _frazil


async def open_off_loop(cls, spec, options):
    """A generator, opened off the loop: an attempt in place might lease a number that nobody takes."""
    return await asyncio.get_running_loop().run_in_executor(None, lambda: cls(spec, **(options or {})))


async def next_off_loop(ids):
    """The next ID."""
    return await _in_place_or_off_loop(ids.next)


async def batch_off_loop(ids, buffer):
    """The IDs that fill a buffer, as a list."""
    written = 0
    try:
        ids.fill(buffer)
    except _frazil.WouldBlockError as error:
        written = error.written
    else:
        return buffer.tolist()
    rest = memoryview(buffer)[written:]
    await asyncio.get_running_loop().run_in_executor(None, ids.fill, rest)
    return buffer.tolist()


async def _in_place_or_off_loop(work):
    try:
        return work()
    except _frazil.WouldBlockError:
        pass
    return await asyncio.get_running_loop().run_in_executor(None, work)
