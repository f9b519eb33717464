"""Rules that validators share: canonical decimals, and the numbers that JavaScript reads without rounding."""

import frazil

EXACT_IN_JAVASCRIPT = 2**53 - 1


def parse_canonical(text: str) -> int:
    """Returns the ID of a decimal text without leading zeros. Raises IdInvalidError, also for the padded form of 19 digits."""
    number = frazil.parse_id(text)
    if str(number) != text:
        raise frazil.errors.IdInvalidError(f"{text!r} has leading zeros: an ID is the number's canonical decimal string, {str(number)!r}")
    return number
