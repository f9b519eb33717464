"""Support for Litestar, whose OpenAPI reads the types of Pydantic's models instead of their JSON Schema."""

from __future__ import annotations

import contextlib
import functools
import sys
from typing import Any


def describe(exact: type, pattern: str) -> None:
    """Describes each annotation of a class as a string, if the program has imported Litestar."""
    if "litestar" in sys.modules:
        # Where it is still being imported, the next model tries again.
        with contextlib.suppress(ImportError):
            _install(exact, pattern)


@functools.cache
def _install(exact: type, pattern: str) -> None:
    from litestar.openapi.spec import OpenAPIType, Schema
    from litestar.plugins.pydantic import PydanticSchemaPlugin

    plugin: Any = PydanticSchemaPlugin
    supports, to_schema = plugin.is_plugin_supported_field, plugin.to_openapi_schema

    def holds_id(field: Any) -> bool:
        return any(isinstance(each, exact) for each in field.metadata)

    def is_plugin_supported_field(self: Any, field_definition: Any) -> bool:
        return holds_id(field_definition) or supports(self, field_definition)

    def to_openapi_schema(self: Any, field_definition: Any, schema_creator: Any) -> Any:
        if holds_id(field_definition):
            return Schema(type=OpenAPIType.STRING, pattern=pattern)
        return to_schema(self, field_definition, schema_creator)

    plugin.is_plugin_supported_field, plugin.to_openapi_schema = is_plugin_supported_field, to_openapi_schema
