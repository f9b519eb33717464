"""frazil: 64-bit, time-ordered, globally unique IDs.

>>> ids = frazil.Snowflake("twitter", datacenter=1, worker=7)
>>> ids.layout.decode(ids.next()).worker
7

Plain increasing numbers come from a `Segment` or `Tickets`, prefetched IDs from a `Buffered`:

>>> orders = frazil.Segment("orders", store="local")
>>> orders.next()
1
"""

try:
    from ._frazil import __version__ as __version__
except ImportError as _error:
    if _error.name not in ("frazil._frazil", "_frazil"):  # not found, not loaded
        raise
    # Usually the source tree was imported, or a package that was copied from another machine.
    raise ImportError(
        f"frazil's native module is missing in {__path__[0]}, or is not one for this Python: start Python in another folder"
        " if that is frazil's source, or else run: python -m pip install --force-reinstall frazil",
        name=_error.name,
        path=_error.path,
    ) from _error

from . import errors as errors
from . import objectid as objectid
from . import uuid as uuid
from ._frazil import *
from ._frazil import __all__ as __all__

try:
    from snapshot_restore_py import register_after_restore as _register_after_restore  # type: ignore[import-not-found,unused-ignore]
except ImportError:  # not AWS Lambda SnapStart
    pass
else:
    _register_after_restore(restored)
