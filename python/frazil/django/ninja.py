"""django-ninja: keys and references to them are strings in every ModelSchema."""

from __future__ import annotations

import functools
from typing import Annotated, Any, get_args

from ninja.orm import factory, fields
from pydantic import BeforeValidator, ValidationInfo

from frazil.pydantic import _Id

from .fields import holds_ids

_get_schema_field = fields.get_schema_field


def _is_outside(info: ValidationInfo) -> bool:
    """Returns true while a request is read. django-ninja also validates responses, whose context has a status."""
    context = info.context if isinstance(info.context, dict) else {}
    return info.mode == "json" or "request" in context and "response_status" not in context


_Key = Annotated[int, _Id(_is_outside)]
# Responses pass the rows themselves.
_KeyOfRow = Annotated[_Key, BeforeValidator(lambda value: getattr(value, "pk", value))]


@functools.wraps(_get_schema_field)
def _with_exact_keys(field: Any, *, depth: int = 0, optional: bool = False) -> Any:
    python_type, options = _get_schema_field(field, depth=depth, optional=optional)
    if field.is_relation and depth > 0 or not holds_ids(field):
        return python_type, options
    exact: Any = list[_KeyOfRow] if field.many_to_many or field.one_to_many else _Key
    return exact | None if type(None) in get_args(python_type) else exact, options


# `register_field` takes a type by its name in the database, which every bigint shares.
_module: Any
for _module in fields, factory:
    _module.get_schema_field = _with_exact_keys
