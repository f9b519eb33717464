"""`SnowflakeAutoField`: a bigint key without a counter in the database."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core import checks
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

import frazil
from frazil._exact import integral, parse_canonical

from .formats import digits_alone
from .generator import get_snowflake

if TYPE_CHECKING:

    class _BigAutoField(models.BigAutoField[int | str, int]): ...
else:
    _BigAutoField = models.BigAutoField


def exact(value: Any) -> int:
    """Returns the ID of an integer or a canonical decimal text. Raises IdInvalidError, a ValueError, and WrongTypeError, a TypeError."""
    if isinstance(value, str):
        return parse_canonical(value)
    value = integral(value)
    text = frazil.format_id(value, "decimal")
    return value if type(value) is int else frazil.parse_id(text)


class SnowflakeAutoField(_BigAutoField):
    """A bigint primary key that settings.FRAZIL mints when a row is inserted. No counter of the database fills it.

    Use it in `DEFAULT_AUTO_FIELD`, `AppConfig.default_auto_field` or `id = SnowflakeAutoField(primary_key=True)`. As with BigAutoField, an
    object has no key until it is saved, and an explicit key is used. `save()` of a new object and `bulk_create()` are one INSERT each. When a
    key is written, a value that is not an ID from 0 to 2^63 - 1 raises IdInvalidError or WrongTypeError. So does a lookup by a float, or
    by a Decimal with a fraction.
    """

    # The module that migrations name, wherever the class is defined.
    __module__ = "frazil.django"
    description = _("Snowflake ID")
    # A number of numpy cannot be compared with Django's empty list.
    empty_values = (None, "")
    default_error_messages = {"invalid": _("“%(value)s” is not an ID: digits only, 0 to 9223372036854775807.")}

    def check(self, **options: Any) -> list[Any]:
        """Also finds `default=ids.next()`, which is one ID for all rows."""
        found: list[Any] = super().check(**options)
        if self.has_default() and not callable(self.default):
            why = f"default={self.default} is one ID for all rows."
            found.append(checks.Error(why, hint="Leave it out: settings.FRAZIL mints the key of each row.", obj=self, id="frazil.E003"))
        return found

    def get_internal_type(self) -> str:
        # A plain bigint: no IDENTITY, no AUTO_INCREMENT; in SQLite no INTEGER PRIMARY KEY, which would number rows that have no ID.
        return "BigIntegerField"

    def contribute_to_class(self, cls: type[models.Model], name: str, **options: Any) -> None:  # type: ignore[override]
        if cls.__module__ == "django.db.migrations.recorder":
            # Django's list of applied migrations. No migration can change its table, whose key may be a 32-bit counter.
            _BigAutoField(verbose_name="ID", primary_key=True, auto_created=True).contribute_to_class(cls, name)
            return
        super().contribute_to_class(cls, name, **options)
        if not cls._meta.abstract:
            _insert_what_is_new(cls)

    def get_pk_value_on_save(self, instance: models.Model) -> int:
        return digits_alone(get_snowflake().next())

    def get_db_converters(self, connection: Any) -> list[Any]:
        converters: list[Any] = super().get_db_converters(connection)
        return [*converters, _from_database] if settings.USE_THOUSAND_SEPARATOR else converters

    def to_python(self, value: Any) -> int | None:
        if value is None:
            return None
        try:
            return exact(value)
        except (frazil.errors.IdInvalidError, frazil.errors.WrongTypeError) as error:
            raise ValidationError(self.error_messages["invalid"], code="invalid", params={"value": value}) from error

    def get_prep_value(self, value: Any) -> Any:
        # int() would truncate a float, and a Decimal with a fraction.
        value = integral(value)
        if value is not None and not isinstance(value, (int, str, Promise)):
            value = exact(value)
        return super().get_prep_value(value)

    def get_db_prep_save(self, value: Any, connection: Any) -> Any:
        # Without super(), which refuses 0 where MariaDB would take it for the next number of a counter.
        return value if value is None or hasattr(value, "as_sql") else exact(value)


def _from_database(value: Any, expression: Any, connection: Any) -> int | None:
    return None if value is None else digits_alone(value)


def is_snowflake(field: Any) -> bool:
    """Returns true if a column holds keys of a SnowflakeAutoField, because it is one or refers to one."""
    while getattr(field, "remote_field", None) and getattr(field, "concrete", False) and not field.many_to_many:
        field = field.target_field
    return isinstance(field, SnowflakeAutoField)


def holds_ids(field: Any) -> bool:
    """Returns true if a field of a model, or a reference to many rows, holds keys of a SnowflakeAutoField."""
    many = field.many_to_many or field.one_to_many
    return is_snowflake(field.related_model._meta.pk if many else field)


def _insert_what_is_new(model: type[models.Model]) -> None:
    """Skips the UPDATE that Django's `save()` tries first if an object has a key.

    A default would also skip it. But it would give every object a key when it is created, saved or not, and treat `Model(id=...).save()` as an
    INSERT although the row exists.
    """
    inherited: Any = model._save_table

    @functools.wraps(inherited)
    def _save_table(
        self: models.Model,
        raw: bool = False,
        cls: Any = None,
        force_insert: bool = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Any = None,
    ) -> Any:
        key = cls._meta.pk
        if isinstance(key, SnowflakeAutoField) and getattr(self, key.attname) is None and not force_update and not update_fields:
            force_insert = True
        return inherited(self, raw, cls, force_insert, force_update, using, update_fields)

    model._save_table = _save_table  # type: ignore[attr-defined]
