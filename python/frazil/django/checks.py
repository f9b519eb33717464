"""The checks of the project's IDs by `manage.py check`."""

from __future__ import annotations

import datetime
import importlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from django.apps import AppConfig, apps
from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, models, router

import frazil

from .fields import SnowflakeAutoField, holds_ids, is_snowflake
from .generator import get_layout, leases_numbers

_NARROW = (models.SmallIntegerField, models.IntegerField)
_YEAR = datetime.timedelta(days=365)


@checks.register()
def check_setting(app_configs: Any, **_: object) -> list[checks.CheckMessage]:
    """Checks that settings.FRAZIL names a generator, and that its layout lasts."""
    if not _keys():
        return []
    try:
        layout = get_layout()
    except ImproperlyConfigured as error:
        return [checks.Error(str(error), id="frazil.E001")]
    except frazil.FrazilError as error:
        return [checks.Error(f"settings.FRAZIL is refused: {error.name}: {error}", id="frazil.E002")]
    end = layout.expires_at
    if end is None or end - datetime.datetime.now(datetime.UTC) > _YEAR:
        return []
    hint = "Move to a layout with a later epoch or more time bits; its node numbers must be ones that this one never used."
    return [checks.Warning(f"settings.FRAZIL's layout {layout.text} holds no ID from {end:%Y-%m-%d} on.", hint=hint, id="frazil.W001")]


@checks.register(deploy=True)
def check_processes(app_configs: Any, **_: object) -> list[checks.CheckMessage]:
    """Reports a node number that several processes would share."""
    if not _keys() or any(message.is_serious() for message in check_setting(None)) or leases_numbers():
        return []
    hint = "Let each process lease a number: store=local on one machine, or the cluster's store (store=postgresql://..., redis://...)."
    why = "settings.FRAZIL gives every process of this project the same node number: two that run at once mint the same IDs."
    return [checks.Warning(why, hint=hint, id="frazil.W002")]


@checks.register()
def check_applications(app_configs: Any, **_: object) -> list[checks.CheckMessage]:
    """Reports applications of the project that keep counters although DEFAULT_AUTO_FIELD names Snowflake IDs."""
    if settings.DEFAULT_AUTO_FIELD != "frazil.django.SnowflakeAutoField":
        return []
    found: list[checks.CheckMessage] = []
    for app in apps.get_app_configs():
        # Applications of others set it on purpose. `startapp` wrote it into every new application up to Django 5.2.
        own = type(app).default_auto_field is not AppConfig.default_auto_field
        if not own or {"site-packages", "dist-packages"} & set(Path(app.path).parts):
            continue
        if any(model._meta.pk.auto_created and not is_snowflake(model._meta.pk) for model in app.get_models()):
            why = f"default_auto_field of {type(app).__qualname__} overrides DEFAULT_AUTO_FIELD: its models have counters."
            found.append(checks.Warning(why, hint="Remove that line from its apps.py.", obj=app.label, id="frazil.W007"))
    return found


@checks.register()
def check_serializers(app_configs: Any, **_: object) -> list[checks.CheckMessage]:
    """Reports that Django REST framework shows IDs as numbers."""
    if not _keys() or not apps.is_installed("rest_framework") or apps.is_installed("frazil.django"):
        return []
    why = "Django REST framework's serializers show IDs as numbers, which JavaScript rounds."
    return [checks.Warning(why, hint="Add 'frazil.django' to INSTALLED_APPS.", id="frazil.W003")]


@checks.register(checks.Tags.urls)
def check_schemas(app_configs: Any, **_: object) -> list[checks.CheckMessage]:
    """Finds each ModelSchema of django-ninja that shows IDs as numbers."""
    if not _keys():
        return []
    # The URLconf imports the schemas.
    if isinstance(urlconf := getattr(settings, "ROOT_URLCONF", None), str):
        importlib.import_module(urlconf)
    if (factory := sys.modules.get("ninja.orm.factory")) is None:
        return []
    from frazil.pydantic import SnowflakeId

    hint = "Declare the field as frazil.pydantic.SnowflakeId, or import the schema after Django has started: from the URLconf."
    if not apps.is_installed("frazil.django"):
        hint = "Add 'frazil.django' to INSTALLED_APPS."
    exact = type(get_args(SnowflakeId)[1])
    found: list[checks.CheckMessage] = []
    for (model, *_), schema in factory.factory.schemas.items():
        keys = {field.name for field in model._meta.get_fields() if holds_ids(field)}
        numbers = [name for name, info in schema.model_fields.items() if name in keys and _has_int(info.rebuild_annotation(), exact)]
        if numbers:
            why = f"{schema.__module__}.{schema.__name__} shows IDs as numbers, which JavaScript rounds: {', '.join(numbers)}."
            found.append(checks.Warning(why, hint=hint, obj=model, id="frazil.W008"))
    return found


def _has_int(type_: Any, exact: type) -> bool:
    """Returns true if a type has an int without the annotation of an ID."""
    if any(isinstance(each, exact) for each in getattr(type_, "__metadata__", ())):
        return False
    return isinstance(type_, type) and issubclass(type_, int) or any(_has_int(each, exact) for each in get_args(type_))


@checks.register(checks.Tags.models)
def check_generic_references(app_configs: Any, **_: object) -> list[checks.CheckMessage]:
    """Reports columns of generic foreign keys that cannot hold IDs."""
    if not _keys() or not apps.is_installed("django.contrib.contenttypes"):
        return []
    from django.contrib.contenttypes.fields import GenericForeignKey

    found: list[checks.CheckMessage] = []
    for model in apps.get_models():
        for reference in model._meta.private_fields:
            if isinstance(reference, GenericForeignKey):
                column: Any = model._meta.get_field(reference.fk_field)
                if isinstance(column, _NARROW) and not isinstance(column, models.BigIntegerField):
                    why = f"{column} has 32 bits or less: its generic foreign key cannot refer to a row with a Snowflake ID."
                    found.append(checks.Warning(why, hint="Make it a BigIntegerField, or a CharField.", obj=model, id="frazil.W004"))
    return found


@checks.register(checks.Tags.database)
def check_columns(app_configs: Any, databases: Sequence[str] | None = None, **_: object) -> list[checks.CheckMessage]:
    """Reports columns of existing tables that cannot hold IDs. Runs in `manage.py check --database default`, and before each `migrate`."""
    return [message for alias in databases or () for message in _check_database(alias)]


def _check_database(alias: str) -> Iterator[checks.CheckMessage]:
    connection = connections[alias]
    with connection.cursor() as cursor:
        tables = set(connection.introspection.table_names(cursor))
        for model in apps.get_models(include_auto_created=True):
            columns = [field for field in model._meta.local_concrete_fields if is_snowflake(field)]
            table = model._meta.db_table
            if not columns or model._meta.proxy or table not in tables or not router.allow_migrate_model(alias, model):
                continue
            narrow = _narrow_columns(connection, cursor, table)
            for field in columns:
                if (kind := narrow.get(field.column or "")) is not None:
                    yield _too_narrow(connection, model, field, kind)


def _narrow_columns(connection: Any, cursor: Any, table: str) -> dict[str, str]:
    """Returns the columns of a table that cannot hold an ID, each with its type."""
    if connection.vendor == "sqlite":
        cursor.execute(f"PRAGMA table_info({connection.ops.quote_name(table)})")
        # Only a key of exactly this type is SQLite's row number.
        return {name: "INTEGER PRIMARY KEY" for _, name, kind, _, _, key in cursor.fetchall() if key and kind.upper() == "INTEGER"}
    narrow: dict[str, str] = {}
    for column in connection.introspection.get_table_description(cursor, table):
        kind = connection.introspection.get_field_type(column.type_code, column)
        kind = kind[0] if isinstance(kind, tuple) else kind
        if kind.endswith(("IntegerField", "AutoField")) and "Big" not in kind:
            narrow[column.name] = kind
    return narrow


def _too_narrow(connection: Any, model: type[models.Model], field: Any, kind: str) -> checks.CheckMessage:
    place = f"{model._meta.db_table}.{field.column} in the database {connection.alias!r}"
    name, why = "W005", "has 32 bits or less: an ID does not fit."
    if kind == "INTEGER PRIMARY KEY":
        name, why = "W006", "is SQLite's row number (INTEGER PRIMARY KEY): a row that comes without an ID gets the highest one plus 1."
    hint = "Run makemigrations and migrate."
    if model._meta.auto_created and field.primary_key:
        # makemigrations does not see the tables that Django makes for many-to-many fields.
        sql = "\n".join(_alteration(connection, model, field))
        hint = f"makemigrations does not see this table: run this yourself, in a migration's RunSQL for example:\n{sql}"
    return checks.Warning(f"{place} {why}", hint=hint, obj=model, id=f"frazil.{name}")


def _alteration(connection: Any, model: type[models.Model], field: Any) -> list[str]:
    """Returns the statements that change the key of such a table to the type of its model."""
    before: Any = models.AutoField(primary_key=True, name=field.name)
    before.set_attributes_from_name(field.name)
    before.model = model
    with connection.schema_editor(collect_sql=True, atomic=False) as editor:
        editor.alter_field(model, before, field)
        statements: list[str] = editor.collected_sql
    return statements


def _keys() -> list[Any]:
    """The project's keys that settings.FRAZIL mints."""
    return [model._meta.pk for model in apps.get_models(include_auto_created=True) if isinstance(model._meta.pk, SnowflakeAutoField)]
