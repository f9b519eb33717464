"""Pydantic 2, and so FastAPI: an ID is an `int` in Python, and a decimal string in JSON, where numbers above 2^53 are rounded.

>>> class Item(BaseModel):
...     id: SnowflakeId = Field(default_factory=ids)
>>> Item(id=1541815603606036480).model_dump_json()
'{"id":"1541815603606036480"}'
"""

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

import frazil

from . import _litestar
from ._exact import EXACT_IN_JAVASCRIPT, integral, parse_canonical

try:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import PydanticCustomError, PydanticSerializationUnexpectedValue, core_schema
except ModuleNotFoundError as error:
    if error.name not in ("pydantic", "pydantic_core"):
        raise
    raise ImportError("frazil.pydantic needs Pydantic: pip install 'frazil[pydantic]'", name=error.name) from error

__all__ = ["SnowflakeId", "SnowflakeIdIn"]

_PATTERN = "^(0|[1-9][0-9]{0,18})$"


def _refuse(why: str) -> PydanticCustomError:
    # Without a context the text is not a template, even with braces in a value.
    return PydanticCustomError("snowflake_id", why)


def _from_python(value: Any) -> int:
    if isinstance(value, str):
        return _from_text(value)
    value = integral(value)
    if isinstance(value, float):
        raise _refuse(f"an ID is a decimal string, not the float {value!r}: floats round IDs above 2^53")
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise _refuse(f"an ID is a decimal string or an int, not {type(value).__name__}")
    number = operator.index(value)
    try:
        frazil.format_id(number, "hex")
    except frazil.FrazilError as error:
        raise _refuse(str(error)) from None
    return number


def _from_text(text: str) -> int:
    try:
        return parse_canonical(text)
    except frazil.FrazilError as error:
        raise _refuse(str(error)) from None


def _from_outside(value: Any) -> int:
    number = _from_python(value)
    if number > EXACT_IN_JAVASCRIPT and not isinstance(value, str | _Exact):
        raise _refuse(f"{number} is a number above 2^53 - 1, which JavaScript rounds: send the ID as a decimal string")
    return number


class _Exact(int):
    """An ID that a SnowflakeIdIn has accepted, so no JSON number rounded it. It is accepted again, for example after `model_dump()`."""


def _serialize(value: Any, info: core_schema.SerializationInfo) -> Any:
    # In a union the next member is tried.
    if not isinstance(value, int) or isinstance(value, bool):
        raise PydanticSerializationUnexpectedValue(f"an ID is an int, not {type(value).__name__}")
    # django-ninja writes its JSON from a dump for Python.
    if info.mode == "json" or isinstance(info.context, dict) and "response_status" in info.context:
        return str(value)
    return value


class _Id:
    """An annotation for Pydantic. `outside` says which values may be JSON numbers that JavaScript rounded."""

    def __init__(self, outside: Callable[[core_schema.ValidationInfo], bool], type_: Callable[[int], int] = int) -> None:
        self._outside = outside
        self._type = type_

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        _litestar.describe(_Id, _PATTERN)

        def validate(value: Any, info: core_schema.ValidationInfo) -> int:
            return _from_outside(value) if self._outside(info) else _from_python(value)

        # The int schema in the middle has no effect, but accepts Field(strict=True).
        number = core_schema.with_info_before_validator_function(validate, core_schema.int_schema())
        return core_schema.no_info_after_validator_function(
            self._type,
            number,
            serialization=core_schema.plain_serializer_function_ser_schema(_serialize, info_arg=True),
        )

    def __get_pydantic_json_schema__(self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "pattern": _PATTERN, "examples": ["1541815603606036480"]}


SnowflakeId: TypeAlias = Annotated[int, _Id(lambda info: info.mode == "json")]
"""An ID in a model, a parameter, a list, a key of a dict: an `int` in Python, a decimal string in JSON and in JSON Schema.

It takes an integer from 0 to 2^63 - 1, or its canonical decimal string, also where a model is strict. A float, a bool, leading zeros, signs,
spaces and anything else is a validation error (422 in FastAPI) of the type `snowflake_id`, whose message says why. So is a number above
2^53 - 1 in JSON, because JavaScript may have rounded it.
"""

SnowflakeIdIn: TypeAlias = Annotated[int, _Id(lambda info: True, _Exact)]
"""A SnowflakeId that refuses numbers above 2^53 - 1 even from Python, for the bodies of requests and the arguments of agents' tools.

FastAPI, MCP and most frameworks read JSON before Pydantic sees it, so a JSON number cannot be distinguished from an `int` of the program. An ID
that such a field has taken is known to be exact: another model accepts the `model_dump()` of this one. In a model that the program fills
with other `int`s, use SnowflakeId.
"""
