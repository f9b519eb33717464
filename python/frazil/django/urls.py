"""The path converter `<snowflake:id>`."""

from __future__ import annotations

from typing import Any

from django.urls import register_converter

import frazil

from .fields import exact
from .formats import digits_alone


class SnowflakeConverter:
    """Takes canonical decimals, 0 to 2^63 - 1, and passes an int to the view. Other text does not match the path.

    >>> path("items/<snowflake:id>/", show)
    """

    regex = "(?:0|[1-9][0-9]{0,18})"

    def to_python(self, value: str) -> int:
        return digits_alone(frazil.parse_id(value))

    def to_url(self, value: Any) -> str:
        return str(exact(value))


register_converter(SnowflakeConverter, "snowflake")
