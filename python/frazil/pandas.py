"""pandas: columns of IDs, exact even if values are missing.

Read IDs as `Int64`, or as text. Otherwise pandas converts integers beside a missing value to floats, which rounds IDs.
"""

import warnings
from collections.abc import Iterable
from typing import Any

import frazil
from frazil import _frazil

try:
    import numpy
    import pandas
except ModuleNotFoundError as error:
    if error.name not in ("numpy", "pandas"):
        raise
    raise ImportError("frazil.pandas needs pandas: pip install 'frazil[pandas]'", name=error.name) from error

__all__ = ["decode", "ids"]


def ids(column: "pandas.Series[Any] | Iterable[Any]") -> "pandas.Series[Any]":
    """The column of IDs as `Int64`: from integers of any type, or their decimal text. Missing values stay missing.

    `ids(column).astype("string")` writes text, for JSON and everything that JavaScript reads. Raises WrongTypeError for a column of floats,
    which have rounded, and for values that are not IDs. Raises IdInvalidError for a number outside 0 to 2^63 - 1, and for other text.
    Warns of integers that floats have rounded before, as `combine_first` and a late `astype` do: nearly all of them end with as many zero
    bits as a float leaves, which is not chance.

    >>> ids(["1541815603606036481", None])
    0    1541815603606036481
    1                   <NA>
    dtype: Int64
    """
    series, numbers, missing = _parts(column)
    _warn_if_rounded(numbers)
    return pandas.Series(pandas.arrays.IntegerArray(numbers, missing), index=series.index, name=series.name)


def decode(column: "pandas.Series[Any] | Iterable[Any]", layout: frazil.Layout) -> pandas.DataFrame:
    """A table of the parts of the IDs, with the column's index: `time` in UTC, and each node field, `sequence` and `tick` as `Int64`.

    If an ID is missing, all of its parts are. Accepts the columns that `ids` accepts, and raises its errors. Raises IdInvalidError for
    an ID with more bits than the layout.

    >>> table["created"] = decode(table["id"], layout)["time"]
    """
    series, numbers, missing = _parts(column)
    parts: dict[str, Any] = dict(layout.decode_many(numbers))
    times = parts.pop("time")
    times[missing] = numpy.datetime64("NaT", "ms")
    columns: dict[str, Any] = {"time": pandas.DatetimeIndex(times).tz_localize("UTC")}
    for name, values in parts.items():
        columns[name] = pandas.arrays.IntegerArray(values, missing)
    return pandas.DataFrame(columns, index=series.index)


def _warn_if_rounded(numbers: Any) -> None:
    """Warns of a column whose last bits are those of floats.

    Floats keep 53 bits of an ID. Of the IDs that lose k bits, half then end with exactly k zero bits, and none with k - 1. Of exact IDs
    at least as many end with k - 1 zero bits, or all have the same bits.
    """
    large = numbers[numbers > 2**53]
    lowest = large & -large
    # The unit in the last place of a float: exact up to 2^63, because it is a power of 2.
    unit = numpy.spacing(large.astype("float64") * (1 - 2**-53)).astype("int64")
    # These are few in a column without rounded IDs. Finding the distinct ones among all IDs would sort the column.
    rounded, place = numpy.unique(large[lowest == unit], return_index=True)
    exact, below = len(rounded), len(numpy.unique(large[lowest == unit // 2]))
    kinds = len(numpy.unique((rounded // unit[lowest == unit][place]) & 0xFF))
    if exact >= 8 and kinds >= 8 and exact > below + 6 * (below + 1) ** 0.5 and exact * 20 >= (distinct := len(numpy.unique(large))):
        warnings.warn(
            f"floats have rounded IDs of this column: {exact} of {distinct} end as a float leaves them. Keep the column Int64 before a "
            "value is missing: read_csv(..., dtype={'id': 'Int64'}), convert_dtypes() before combine_first",
            UserWarning,
            stacklevel=3,
        )


def _parts(column: Any) -> tuple[Any, Any, Any]:
    """Returns the series, its IDs with 0 for each missing one, and the mask of the missing ones."""
    # pandas would convert a list with a missing value to floats.
    series = pandas.Series(column) if hasattr(column, "dtype") else pandas.Series(column, dtype="object")
    missing = series.isna().to_numpy(dtype=bool)
    if getattr(series.dtype, "kind", "O") == "f" and not missing.all():
        raise frazil.errors.WrongTypeError(
            f"the column is {series.dtype}, and floats have rounded its IDs: read it as integers, such as read_csv(..., dtype={{'id': 'Int64'}})"
        )
    # Text over pyarrow is read in its memory, without a str for each value.
    if getattr(series.dtype, "storage", None) == "pyarrow" or hasattr(series.dtype, "pyarrow_dtype"):
        texts = _frazil._texts(series.array.__arrow_array__())
        if texts is not None:
            return series, *texts
    if len(series) and not missing.any():
        return series, _frazil._ids(series), missing
    values = series.to_numpy(dtype=object, copy=True)
    values[missing] = 0
    return series, _frazil._ids(values), missing
