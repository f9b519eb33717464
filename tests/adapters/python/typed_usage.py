"""A program with the adapters that mypy must accept. A line with an ignore must fail."""

from datetime import UTC, datetime
from typing import Any, assert_type

import frazil
import frazil.numpy
import frazil.pandas
import frazil.polars
import numpy
import polars
from frazil.pydantic import SnowflakeId, SnowflakeIdIn
from frazil.sqlalchemy import SnowflakeType, check_columns, created_between
from pydantic import BaseModel, Field
from sqlalchemy import Column, ColumnElement, MetaData, Table, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

ids = frazil.Snowflake("standard", node=1)


class Base(DeclarativeBase):
    pass


class Item(Base):
    __tablename__ = "item"
    id: Mapped[int] = mapped_column(SnowflakeType, primary_key=True, default=ids)
    parent: Mapped[int | None] = mapped_column(SnowflakeType())


class Model(BaseModel):
    id: SnowflakeId = Field(default_factory=ids)
    parent: SnowflakeIdIn | None = None


table = Table("item", MetaData(), Column("id", SnowflakeType, primary_key=True, default=ids))
assert_type(Model(id=5).id, int)
assert_type(Model().parent, int | None)
assert_type(created_between(Item.id, datetime.now(UTC), None, ids), ColumnElement[bool])
select(Item).where(created_between(table.c.id, None, datetime.now(UTC), ids.layout))
created_between(Item.id, "2026", None, ids)  # type: ignore[arg-type]
check_columns(create_engine("sqlite://").connect(), Base.metadata)
assert_type(frazil.numpy.ids(["5", 5]), numpy.ndarray[tuple[Any, ...], numpy.dtype[numpy.int64]])
assert_type(frazil.polars.ids(polars.Series(["5"])), polars.Series)
assert_type(frazil.polars.decode(polars.Series(["5"]), ids.layout), polars.DataFrame)
assert_type(frazil.polars.ids(polars.col("id")), polars.Expr)
assert_type(frazil.polars.decode(polars.col("id"), ids.layout), polars.Expr)
frazil.pandas.decode(["5"], ids)  # type: ignore[arg-type]
