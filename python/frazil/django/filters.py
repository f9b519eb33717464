"""django-filter: filters of keys take what `SnowflakeFormField` takes, and report other text as a form does."""

from __future__ import annotations

from django_filters import Filter, filterset

from .fields import SnowflakeAutoField
from .forms import SnowflakeFormField


class SnowflakeFilter(Filter):  # type: ignore[misc]  # django-filter has no types
    """A filter by an ID: digits, 0 to 2^63 - 1. FilterSets use it for keys automatically."""

    field_class = SnowflakeFormField


# django-filter's own would be a NumberFilter: a number of any size, with a fraction or not, which no lookup of a key can take.
filterset.FILTER_FOR_DBFIELD_DEFAULTS[SnowflakeAutoField] = {"filter_class": SnowflakeFilter}
