"""Ranges of time as ranges of IDs, shared by the adapters of databases."""

import datetime

from . import Layout
from .errors import BeforeEpochError, LayoutExpiredError


def first_id(layout: Layout, time: datetime.datetime) -> int:
    """The first ID of the tick that holds an instant; 0 before the layout's epoch, and 2^63 - 1 after its end."""
    try:
        return layout.min_id(time)
    except BeforeEpochError:
        return 0
    except LayoutExpiredError:
        return 2**63 - 1
