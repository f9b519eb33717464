"""IDs in templates and in the admin: digits alone, although USE_THOUSAND_SEPARATOR groups the digits of numbers."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

from django.conf import settings
from django.utils import formats


class DigitsAlone(int):
    """An int whose digits Django does not group. Models use it only if USE_THOUSAND_SEPARATOR is on."""


def digits_alone(number: int) -> int:
    """Returns the number in the form that templates print."""
    return DigitsAlone(number) if settings.USE_THOUSAND_SEPARATOR else number


_number_format = formats.number_format


@functools.wraps(_number_format)
def number_format(value: Any, decimal_pos: int | None = None, use_l10n: bool | None = None, force_grouping: bool = False) -> str:
    if isinstance(value, DigitsAlone) and decimal_pos is None and not force_grouping:
        return str(value)
    return _number_format(value, decimal_pos, use_l10n, force_grouping)


# Templates and the admin localize a value without its field, so they see only its type.
formats.number_format = number_format


def write_digits_alone_in_yaml() -> None:
    """Registers the type for fixtures, because PyYAML writes no subclass of int that it does not know."""
    with contextlib.suppress(ImportError):
        from django.core.serializers.pyyaml import DjangoSafeDumper

        DjangoSafeDumper.add_multi_representer(DigitsAlone, DjangoSafeDumper.represent_int)
