"""Generators of pickles that this process cannot open."""

import functools

from . import _frazil


class Unopened:
    """A generator whose pickle was loaded, but could not be opened. Each use opens it again, or raises the reason.

    An error while loading would reach no caller: it ends a worker of `multiprocessing.Pool`, and the task never ends.
    """

    def __init__(self, *pickled):
        self._pickled = pickled

    @property  # type: ignore[misc]
    def __class__(self):
        """The class of the generator, for `isinstance`."""
        return self._pickled[0]

    def __getattr__(self, name):
        if callable(getattr(self._pickled[0], name)):
            return functools.partial(_call, self, name)
        return getattr(_open(self), name)

    def __reduce__(self):
        return _frazil._reopen, self._pickled

    def __copy__(self):
        return self

    def __deepcopy__(self, _memo):
        return self

    def __repr__(self):
        return f"<{self._pickled[0].__name__} of a pickle, not open>"

    def __call__(self):
        return _open(self)()

    def __iter__(self):
        return self

    def __next__(self):
        return next(_open(self))

    def __enter__(self):
        return _open(self)

    def __exit__(self, *_exception):
        _open(self).close()

    async def __aenter__(self):
        return _open(self)

    async def __aexit__(self, *_exception):
        await _open(self).aclose()


def _open(unopened):
    """The generator, which is kept once it is open."""
    opened = vars(unopened).get("_opened")
    if opened is None:
        opened = unopened._opened = _frazil._open_pickled(*unopened._pickled)
    return opened


def _call(unopened, name, *arguments, **keywords):
    return getattr(_open(unopened), name)(*arguments, **keywords)
