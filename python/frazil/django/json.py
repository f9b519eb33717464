"""JSON that JavaScript reads without rounding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

from frazil._exact import EXACT_IN_JAVASCRIPT


class SnowflakeJSONEncoder(DjangoJSONEncoder):
    """A DjangoJSONEncoder that writes integers as strings if JavaScript would round them (below -(2^53 - 1) or above 2^53 - 1).

    >>> JsonResponse({"id": item.pk}, encoder=SnowflakeJSONEncoder)
    >>> serializers.serialize("json", Item.objects.all(), cls=SnowflakeJSONEncoder)
    """

    def iterencode(self, o: Any, _one_shot: bool = False) -> Iterator[str]:
        return super().iterencode(_exact(o), _one_shot)


def _exact(value: Any) -> Any:
    if isinstance(value, int):
        return value if -EXACT_IN_JAVASCRIPT <= value <= EXACT_IN_JAVASCRIPT else str(int(value))
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_exact(item) for item in value]
    return value
