"""Django REST framework: keys and references to them are strings in every ModelSerializer, including nested ones."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

import frazil
from frazil._exact import EXACT_IN_JAVASCRIPT

from .fields import SnowflakeAutoField, exact, is_snowflake


class SnowflakeField(serializers.CharField):
    """An ID: a decimal string in the output; in the input a decimal string, or an integer up to 2^53 - 1. A larger one is `rounded`, because
    JavaScript may have rounded it. Floats, leading zeros and numbers outside of 0 to 2^63 - 1 are `invalid`.

    ModelSerializers use it automatically. Elsewhere write `id = SnowflakeField(read_only=True)`, or a relation's `pk_field=SnowflakeField()`.
    """

    default_error_messages = {
        "invalid": _("Not an ID: digits only, 0 to 9223372036854775807."),
        "rounded": _("{number} is a number above 2^53 - 1, which JavaScript rounds: send the ID as a decimal string."),
    }

    def to_internal_value(self, data: Any) -> Any:
        try:
            number = exact(data)
        except (frazil.errors.IdInvalidError, frazil.errors.WrongTypeError):
            self.fail("invalid")
        if number > EXACT_IN_JAVASCRIPT and not isinstance(data, str):
            self.fail("rounded", number=number)
        return number

    def to_representation(self, value: Any) -> str:
        return str(exact(value))


_build_field = serializers.ModelSerializer.build_field


def _with_exact_references(self: Any, field_name: str, info: Any, model_class: Any, nested_depth: int) -> Any:
    field_class, options = _build_field(self, field_name, info, model_class, nested_depth)
    if issubclass(field_class, serializers.PrimaryKeyRelatedField):
        relation = info.relations.get(field_name) or info.fields_and_pk[field_name]
        if is_snowflake(relation.related_model._meta.pk):
            options = {"pk_field": SnowflakeField(), **options}
    # A reference by its column, `customer_id`, is not a field of the model, so it would be shown as a number.
    elif field_class is serializers.ReadOnlyField and is_snowflake(getattr(getattr(model_class, field_name, None), "field", None)):
        return SnowflakeField, {"read_only": True}
    return field_class, options


# Set for all serializers: a forgotten one would round IDs, and nobody writes those that `depth` makes.
serializers.ModelSerializer.serializer_field_mapping[SnowflakeAutoField] = SnowflakeField
serializers.ModelSerializer.build_field = _with_exact_references  # type: ignore[method-assign]
