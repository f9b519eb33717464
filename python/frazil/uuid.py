"""UUIDs of version 7 and 4, as the standard library's `uuid.UUID`."""

from ._frazil import (
    uuid4,
    uuid7,
    uuid7_max,
    uuid7_min,
    uuid_time,
)

__all__ = ["uuid4", "uuid7", "uuid7_max", "uuid7_min", "uuid_time"]
