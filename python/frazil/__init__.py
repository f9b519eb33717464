"""frazil: 64-bit, time-ordered, globally unique IDs.

>>> ids = frazil.Snowflake("twitter", datacenter=1, worker=7)
>>> ids.layout.decode(ids.next()).worker
7

Plain increasing numbers come from a `Segment` or `Tickets`, IDs that lie ready from a `Buffered`:

>>> orders = frazil.Segment("orders", store="local")
>>> orders.next()
1
"""

from ._frazil import *
from ._frazil import __all__ as __all__
from ._frazil import __version__ as __version__
