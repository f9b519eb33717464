"""A program with frazil.django for mypy, with Django's stubs."""

import datetime
from typing import assert_type

from django.db import models
from frazil.django import CreatedAt, SnowflakeAutoField, SnowflakeManager, SnowflakeQuerySet, created_at, created_between, get_snowflake


class Item(models.Model):
    id = SnowflakeAutoField(primary_key=True)
    objects = SnowflakeManager()


now = datetime.datetime.now(datetime.UTC)
assert_type(Item().id, int)
assert_type(Item.objects.created_between(now, None), SnowflakeQuerySet)
assert_type(created_at(Item()), datetime.datetime)
assert_type(created_between(None, now, "item_id"), models.Q)
assert_type(get_snowflake().next(), int)
Item.objects.annotate(created=CreatedAt("pk"))
Item.objects.created_between("2026-03-01", None)  # type: ignore[arg-type]
