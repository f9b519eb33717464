"""django-filter: filters of keys take what `SnowflakeFormField` takes, and report other text as a form does."""

from __future__ import annotations

from django_filters import Filter, filterset

from .fields import SnowflakeAutoField
from .forms import SnowflakeFormField


class SnowflakeFilter(Filter):  # type: ignore[misc]  # django-filter has no types
    """A filter by an ID: digits, 0 to 2^63 - 1. FilterSets use it for keys automatically."""

    field_class = SnowflakeFormField


# django-filter itself would use a NumberFilter for a number of any size, also with a fraction, which no lookup of a key accepts.
filterset.FILTER_FOR_DBFIELD_DEFAULTS[SnowflakeAutoField] = {"filter_class": SnowflakeFilter}
