"""The times at which rows were created, read from their keys."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from django.db import NotSupportedError, models

from frazil._ranges import first_id

from .generator import get_layout


def created_at(row: Any) -> datetime.datetime:
    """Returns the time at which a row was created, in UTC, from its object or its ID. Rows with IDs of an earlier counter have the layout's epoch.

    Raises WrongTypeError for an object that has not been saved, IdInvalidError for a value that is not an ID of settings.FRAZIL's layout.

    >>> created_at(item)
    datetime.datetime(2026, 11, 22, 17, 4, 5, 678000, tzinfo=datetime.timezone.utc)
    """
    return get_layout().decode(row.pk if isinstance(row, models.Model) else row).time


def created_between(start: datetime.datetime | None, end: datetime.datetime | None, field: str = "pk") -> models.Q:
    """The rows that were created from `start` on and before `end`. The condition uses the key's index. None leaves a side open.

    The times are aware datetimes, exact to the layout's tick (1 ms with most), so adjacent ranges share no row. `field` names another
    column with such IDs: `created_between(start, end, "order_id")`.

    >>> Item.objects.filter(created_between(midnight, None))
    """
    condition = models.Q()
    if start is not None and (first := first_id(get_layout(), start)) > 0:
        condition &= models.Q((f"{field}__gte", first))
    if end is not None:
        condition &= models.Q((f"{field}__lt", first_id(get_layout(), end)))
    return condition


class SnowflakeQuerySet(models.QuerySet[Any]):
    """A queryset with `created_between`."""

    def created_between(self, start: datetime.datetime | None, end: datetime.datetime | None) -> SnowflakeQuerySet:
        """The rows that were created from `start` on and before `end`, like the function `created_between`."""
        return self.filter(created_between(start, end))


if TYPE_CHECKING:

    class _Manager(models.Manager[Any]):
        pass

else:
    _Manager = models.Manager.from_queryset(SnowflakeQuerySet)


class SnowflakeManager(_Manager):
    """A manager with `created_between`: `objects = SnowflakeManager()`.

    >>> Item.objects.created_between(midnight, None).count()
    """

    def created_between(self, start: datetime.datetime | None, end: datetime.datetime | None) -> SnowflakeQuerySet:
        """The rows that were created from `start` on and before `end`, like the function `created_between`."""
        # Also works with a queryset class that `from_queryset` has set.
        found: Any = self.get_queryset().filter(created_between(start, end))
        return found  # type: ignore[no-any-return]


class CreatedAt(models.Func):
    """The time at which a row was created, computed by the database (PostgreSQL, MariaDB, MySQL, SQLite), for example to group by day.

    For filters use `created_between`, which finds rows by the key's index. Needs USE_TZ=True.

    >>> Item.objects.annotate(day=TruncDay(CreatedAt())).values("day").annotate(items=Count("*"))
    """

    output_field = models.DateTimeField()

    def __init__(self, expression: Any = "pk") -> None:
        super().__init__(expression)

    def as_sql(self, compiler: Any, connection: Any, **context: Any) -> Any:  # type: ignore[override]
        if connection.vendor not in _FROM_UNIX_MS:
            raise NotSupportedError(f"CreatedAt() is for {', '.join(_FROM_UNIX_MS)}; elsewhere decode the keys with created_at(row)")
        layout = get_layout()
        epoch = (layout.epoch - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(milliseconds=1)
        shift = layout.sequence_bits + sum(layout.field_bits.values())
        ticks = f"(%(expressions)s >> {shift})"
        if connection.vendor == "mysql":  # whose >> is unsigned
            ticks = f"CAST({ticks} AS SIGNED)"
        template = _FROM_UNIX_MS[connection.vendor].replace("MS", f"({ticks} * {layout.tick_ms} + {epoch})")
        return super().as_sql(compiler, connection, template=template)


_FROM_UNIX_MS = {
    "postgresql": "to_timestamp(MS / 1000.0)",
    "mysql": "TIMESTAMPADD(MICROSECOND, MS * 1000, TIMESTAMP'1970-01-01 00:00:00.000000')",
    # Doubled for Django's template, and again for the cursor.
    "sqlite": "STRFTIME('%%%%Y-%%%%m-%%%%d %%%%H:%%%%M:%%%%f', MS / 1000.0, 'unixepoch')",
}
