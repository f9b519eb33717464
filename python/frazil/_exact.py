"""Rules that adapters share: canonical decimals, exact integers, and the numbers that JavaScript reads without rounding."""

import decimal
from typing import Any

import frazil

EXACT_IN_JAVASCRIPT = 2**53 - 1


def parse_canonical(text: str) -> int:
    """Returns the ID of a decimal text without leading zeros. Raises IdInvalidError, also for the padded form of 19 digits."""
    number = frazil.parse_id(text)
    if str(number) != text:
        raise frazil.errors.IdInvalidError(f"{text!r} has leading zeros: an ID is the number's canonical decimal string, {str(number)!r}")
    return number


def integral(value: Any) -> Any:
    """Returns the int of a Decimal without a fraction, which is exact, as forms and drivers give it. Returns any other value unchanged."""
    # Excludes 1E+1000000, whose digits would take seconds.
    if isinstance(value, decimal.Decimal) and value.is_finite() and value.adjusted() < 30 and value == value.to_integral_value():
        return int(value)
    return value
