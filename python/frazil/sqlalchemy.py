"""SQLAlchemy 2, SQLModel and Alembic: columns of IDs.

>>> class Item(Base):
...     __tablename__ = "item"
...     id: Mapped[int] = mapped_column(SnowflakeType, primary_key=True, default=ids)
...     name: Mapped[str]

The default may be any generator. SQLAlchemy calls it before the INSERT for each row without an ID, so a thousand rows need one statement
and no value is read back.
"""

import operator
import sys
from datetime import datetime
from typing import Any

import frazil
from frazil._exact import integral
from frazil._ranges import first_id

try:
    from sqlalchemy import BigInteger, Column, ColumnElement, Connection, Dialect, MetaData, Table, and_, event, inspect, text, true
    from sqlalchemy.engine import Inspector
    from sqlalchemy.orm import InstrumentedAttribute
    from sqlalchemy.sql.compiler import IdentifierPreparer
    from sqlalchemy.types import Float, Integer, Numeric, String, TypeDecorator, TypeEngine
except ModuleNotFoundError as error:
    if error.name != "sqlalchemy":
        raise
    raise ImportError("frazil.sqlalchemy needs SQLAlchemy: pip install 'frazil[sqlalchemy]'", name=error.name) from error

__all__ = ["SnowflakeType", "check_columns", "created_between"]

# A larger constant may be an ID; one up to here was written by a person.
_NEVER_MINTED = 2**31 - 1


class SnowflakeType(TypeDecorator[int]):
    """A column of IDs: BIGINT in the database, `int` in Python. It takes no arguments.

    The database never numbers such a column: it has no SERIAL, IDENTITY or AUTO_INCREMENT, with or without a default. Foreign keys to it
    are BIGINT automatically. A value is an integer from 0 to 2^63 - 1, also as a Decimal without a fraction, or None. Other values, such
    as a float or a str, are rejected before the statement is sent, with a StatementError whose `orig` is a WrongTypeError or an
    IdInvalidError. A float from a driver is also rejected (WrongTypeError).

    >>> item = Table("item", metadata, Column("id", SnowflakeType, primary_key=True, default=ids))
    """

    impl = BigInteger
    cache_ok = True

    @property
    def python_type(self) -> type[int]:
        return int

    def process_bind_param(self, value: Any, dialect: Dialect) -> int | None:
        if value is None:
            return None
        number: int = value if type(value) is int else _integer(value)
        frazil.format_id(number, "hex")  # refuses other values
        return number

    def process_result_value(self, value: Any, dialect: Dialect) -> int | None:
        if value is None:
            return None
        if type(number := integral(value)) is int:
            return number
        raise frazil.errors.WrongTypeError(f"the database returned {value!r} for a column of IDs, which must be BIGINT: {_rounded(value)}")


def _integer(value: Any) -> int:
    value = integral(value)
    if isinstance(value, frazil.Snowflake | frazil.Numbers):
        raise frazil.errors.WrongTypeError(
            "the value of the column is a generator: in a dataclass write insert_default=ids instead of default=ids"
        )
    if isinstance(value, str):
        raise frazil.errors.WrongTypeError(f"a column of IDs takes an int, not the str {value[:60]!r}: frazil.parse_id(text) is its int")
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise frazil.errors.WrongTypeError(f"a column of IDs takes an int, not {type(value).__name__}: {_rounded(value)}")
    # An exact int, because some drivers quote a value of a subclass.
    return int(operator.index(value))


def _rounded(value: object) -> str:
    return "floats round IDs above 2^53" if isinstance(value, float) else "IDs are integers"


@event.listens_for(SnowflakeType, "after_parent_attach", propagate=True)
def _attached(_type: SnowflakeType, column: Any) -> None:
    """Turns autoincrement off, because with "auto" PostgreSQL creates a sequence for a column without a default."""
    if column.autoincrement is True:
        raise frazil.errors.SpecError(
            f"autoincrement=True on column {column.name}: its IDs come from a generator, so write default=ids instead"
        )
    column.autoincrement = False
    # The default is set after the type.
    event.listen(column, "after_parent_attach", _check_default)


def _check_default(column: Any, _table: Any) -> None:
    """Refuses `default=ids.next()`, which is one ID for all rows. Another constant may be the ID of a row that others refer to."""
    value = integral(getattr(column.default, "arg", None))
    is_id = hasattr(value, "__index__") and not isinstance(value, bool)
    if is_id and (column.primary_key or column.unique or value > _NEVER_MINTED):
        raise frazil.errors.SpecError(
            f"default={value} on column {column.name} is one ID for all rows: write default=ids, or default=ids.next without parentheses"
        )


def created_between(
    column: ColumnElement[int] | InstrumentedAttribute[int],
    start: datetime | None,
    end: datetime | None,
    layout: frazil.Layout | frazil.Snowflake | frazil.Buffered,
) -> ColumnElement[bool]:
    """The rows whose IDs were made from `start` on and before `end`: a condition that uses the key's own index. None leaves a side open.

    `layout` is a layout, or a generator that has one. The times are aware datetimes, exact to the layout's tick (1 ms with most), so each
    row is in exactly one of two adjacent ranges. With `lag=D` stamps are up to D old, so begin D earlier.

    >>> select(Item).where(created_between(Item.id, midnight, midnight + timedelta(days=1), ids))
    """
    layout = layout if isinstance(layout, frazil.Layout) else layout.layout
    conditions: list[ColumnElement[bool]] = [true()]
    if start is not None:
        conditions.append(column >= first_id(layout, start))
    if end is not None:
        conditions.append(column < first_id(layout, end))
    return and_(*conditions)


def check_columns(connection: Connection, metadata: MetaData) -> None:
    """Compares the columns of IDs with those that the database has, and refuses those that would lose or repeat IDs.

    Call it at the start of a program, or in its tests, to check existing tables. Columns of 32 bits are too narrow (MySQL and MariaDB cut IDs to
    2147483647 if they are not strict), and floats round. SQLite's INTEGER PRIMARY KEY and an AUTO_INCREMENT number rows without an ID by
    the largest ID plus one, which a generator may also make. Missing tables are skipped. Raises OutOfRangeError, which names the column
    and the fix.

    >>> with engine.connect() as connection:
    ...     check_columns(connection, Base.metadata)

    With an async engine: `await connection.run_sync(check_columns, Base.metadata)`.
    """
    inspector = inspect(connection)
    dialect = connection.dialect
    mysql = dialect.name in ("mysql", "mariadb")
    quote = dialect.identifier_preparer
    for table in metadata.tables.values():
        ours = {column.name for column in table.columns if _holds_ids(column)}
        if not ours or not inspector.has_table(table.name, table.schema):
            continue
        keys = inspector.get_pk_constraint(table.name, table.schema)["constrained_columns"]
        for column in inspector.get_columns(table.name, table.schema):
            if column["name"] not in ours:
                continue
            kind = column["type"].compile(dialect)
            name = f"{table.fullname}.{column['name']}"
            its_table, its_name = quote.format_table(table), quote.quote(column["name"])
            if mysql:
                change = f"ALTER TABLE {its_table} MODIFY {its_name} BIGINT{'' if column['nullable'] else ' NOT NULL'}"
            elif dialect.name == "sqlite":
                change = f"SQLite changes no column, so create the table {its_table} anew, with {its_name} BIGINT, and copy the rows"
                if keys == [column["name"]] and _declared(connection, table, column["name"]) == "INTEGER":
                    raise frazil.errors.OutOfRangeError(f"{name} is an INTEGER PRIMARY KEY, which SQLite numbers by itself: {change}")
                if isinstance(column["type"], Integer):  # all have 64 bits
                    continue
            else:
                change = f"ALTER TABLE {its_table} ALTER COLUMN {its_name} TYPE BIGINT"
            if _is_narrow(column["type"]):
                if mysql and (drops := _drops(inspector, table, column["name"], quote)):
                    change = f"remove its foreign keys, and add them again when both columns are BIGINT: {'; '.join([*drops, change])}"
                raise frazil.errors.OutOfRangeError(f"{name} is {kind}, too narrow for IDs of 63 bits: {change}")
            if mysql and column.get("autoincrement") is True:
                raise frazil.errors.OutOfRangeError(f"{name} has AUTO_INCREMENT, which repeats IDs: {change}")


def _holds_ids(column: Column[Any], seen: frozenset[Column[Any]] = frozenset()) -> bool:
    # Two keys may refer to each other.
    others = [key.column for key in column.foreign_keys if key.column not in seen]
    return isinstance(column.type, SnowflakeType) or any(_holds_ids(other, seen | {column}) for other in others)


def _drops(inspector: Inspector, table: Table, column: str, quote: IdentifierPreparer) -> list[str]:
    """Returns the statements that drop the foreign keys of and to a column. MySQL and MariaDB change no type of such a column."""
    return [
        f"ALTER TABLE {quote.quote(other)} DROP FOREIGN KEY {quote.quote(key['name'])}"
        for (_, other), keys in inspector.get_multi_foreign_keys(schema=table.schema).items()
        for key in keys
        if key["name"]
        and (
            (other == table.name and column in key["constrained_columns"])
            or (key["referred_table"] == table.name and column in key["referred_columns"])
        )
    ]


def _declared(connection: Connection, table: Table, column: str) -> Any:
    """Returns the type in SQLite's words. INT is INTEGER, but only a key that is declared INTEGER is the row's number."""
    asked = text("SELECT upper(type) FROM pragma_table_info(:table, :schema) WHERE name = :column")
    return connection.scalar(asked, {"table": table.name, "schema": table.schema or "main", "column": column})


def _is_narrow(type_: TypeEngine[Any]) -> bool:
    # In SQLAlchemy 2.0 a Float is also a Numeric.
    if isinstance(type_, Numeric) and not isinstance(type_, Float):
        return (type_.precision or 19) - (type_.scale or 0) < 19
    return isinstance(type_, Float | Integer | String) and not isinstance(type_, BigInteger)


def _render_plainly(autogenerate: Any, *_: Any) -> None:
    """Renders the type as BigInteger with autoincrement=False, because a migration is permanent and must not depend on the program."""
    options = autogenerate.opts
    of_the_program = options.get("render_item")

    def render_item(kind: str, item: Any, context: Any) -> Any:
        rendered = of_the_program(kind, item, context) if of_the_program else False
        if rendered is False and kind == "type" and isinstance(item, SnowflakeType):
            return f"{options['sqlalchemy_module_prefix'] or ''}BigInteger()"
        return rendered

    options["render_item"] = render_item


# Alembic runs the program's models, so it has been imported by now. Without Alembic there is nothing to register.
if "alembic" in sys.modules:
    from alembic.autogenerate import comparators

    comparators.dispatch_for("schema")(_render_plainly)
