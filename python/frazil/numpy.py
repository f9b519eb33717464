"""numpy: arrays of IDs, exact.

`ids.array(n)` makes new ones, `ids.fill(array)` fills existing memory, and `layout.decode_many(array)` takes many apart.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from frazil import _frazil

try:
    import numpy
except ModuleNotFoundError as error:
    if error.name != "numpy":
        raise
    raise ImportError("frazil.numpy needs numpy: pip install 'frazil[numpy]'", name=error.name) from error

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ids"]


def ids(values: "Iterable[int | str] | NDArray[Any]") -> "NDArray[numpy.int64]":
    """The IDs of an array or of any iterable, as a new int64 array: from integers, or from their decimal text.

    `ids(texts)` reads text exactly, and `ids(array).astype("U19")` writes it. An int64 array cannot hold missing values, so they are
    refused. Raises WrongTypeError for floats, which have rounded, for masked values and for objects that hold no IDs. Raises IdInvalidError
    for a number outside 0 to 2^63 - 1, and for a text that is not an ID.

    >>> ids(["1541815603606036480", "7"])
    array([1541815603606036480,                   7])
    """
    return _frazil._ids(values)
