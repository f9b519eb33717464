"""polars: columns of IDs, exact even if values are missing."""

from typing import Any, overload

import frazil
from frazil import _frazil

try:
    import numpy  # noqa: F401
    import polars
except ModuleNotFoundError as error:
    if error.name not in ("numpy", "polars"):
        raise
    raise ImportError("frazil.polars needs polars and numpy: pip install 'frazil[polars]'", name=error.name) from error

__all__ = ["decode", "ids"]


@overload
def ids(column: polars.Series) -> polars.Series: ...
@overload
def ids(column: polars.Expr) -> polars.Expr: ...
def ids(column: polars.Series | polars.Expr) -> polars.Series | polars.Expr:
    """The column of IDs as Int64: from integers of any type, or their decimal text; null stays null.

    An expression becomes one of the query, also of a lazy one, and raises when the query runs. `ids(column).cast(polars.String)` writes
    text, for JSON and everything that JavaScript reads. Raises WrongTypeError for a column of floats, which have rounded, and for values
    that are not IDs. Raises IdInvalidError for a number outside 0 to 2^63 - 1, and for other text.

    >>> ids(polars.Series("id", ["1541815603606036481", None])).to_list()
    [1541815603606036481, None]
    >>> table.with_columns(ids(polars.col("id", "parent")))
    """
    if isinstance(column, polars.Expr):
        return column.map_batches(ids, polars.Int64, is_elementwise=True)
    numbers, known = _parts(column)
    return polars.select(polars.when(known).then(polars.Series(column.name, numbers))).to_series()


@overload
def decode(column: polars.Series, layout: frazil.Layout) -> polars.DataFrame: ...
@overload
def decode(column: polars.Expr, layout: frazil.Layout) -> polars.Expr: ...
def decode(column: polars.Series | polars.Expr, layout: frazil.Layout) -> polars.DataFrame | polars.Expr:
    """A table of the parts of the IDs: `time` in UTC, and each node field, `sequence` and `tick` as Int64.

    For an expression it is a struct of these, so that the parts of several columns stay apart. If an ID is null, all of its parts are.
    Accepts the columns that `ids` accepts, and raises its errors. Raises IdInvalidError for an ID with more bits than the layout.

    >>> table = table.hstack(decode(table["id"], layout))
    >>> parent = decode(polars.col("parent"), layout).alias("parts").name.prefix_fields("parent_")
    >>> table.with_columns(parent).unnest("parts")
    """
    if isinstance(column, polars.Expr):
        parts = decode(polars.Series([], dtype=polars.Int64), layout).schema
        return column.map_batches(lambda part: decode(part, layout).to_struct(part.name), polars.Struct(parts), is_elementwise=True)
    numbers, known = _parts(column)
    frame = polars.DataFrame(dict(layout.decode_many(numbers))).with_columns(polars.col("time").dt.replace_time_zone("UTC"))
    return frame.select(polars.when(known).then(polars.all()))


def _parts(column: polars.Series) -> tuple[Any, polars.Series]:
    """Returns the IDs, with 0 for a null, and a mask of the known ones."""
    if not isinstance(column, polars.Series):
        raise frazil.errors.WrongTypeError(
            f"the column is a {type(column).__name__}, and must be a Series or an expression: table['id'], polars.col('id') or polars.Series(values)"
        )
    if column.dtype.is_float() and column.null_count() < len(column):
        raise frazil.errors.WrongTypeError(
            f"the column is {column.dtype}, and floats have rounded its IDs: read it as integers, such as read_csv(..., schema_overrides={{'id': polars.Int64}})"
        )
    texts = _frazil._texts(column) if column.dtype == polars.String else None
    if texts is not None:
        numbers = texts[0]
    elif column.dtype in (polars.Int64, polars.UInt64):
        numbers = _frazil._ids(column.fill_null(0).to_numpy())
    else:
        numbers = _frazil._ids([0 if value is None else value for value in column.to_list()])
    return numbers, column.is_not_null()
