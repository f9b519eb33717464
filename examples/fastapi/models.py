"""Two tables whose keys are IDs of frazil, and a foreign key between them. `python models.py` creates the tables."""

import os

import frazil
from frazil.sqlalchemy import SnowflakeType, check_columns
from sqlalchemy import ForeignKey, String, create_engine, make_url
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, sessionmaker

# Each worker process leases its own node number, by the spec line in FRAZIL. uvicorn imports this while its event loop runs, where only
# `timeout` allows a wait.
ids = frazil.Snowflake(timeout=30)
# `postgresql://` alone would mean psycopg2. A connection that a restart of the database has cut is replaced before it is used.
engine = create_engine(make_url(os.environ["DATABASE_URL"]).set(drivername="postgresql+psycopg"), pool_pre_ping=True, max_overflow=0)
Session = sessionmaker(engine, expire_on_commit=False)


class Base(DeclarativeBase):
    pass


class Topic(Base):
    __tablename__ = "topics"

    id: Mapped[int] = mapped_column(SnowflakeType, primary_key=True, default=ids)
    title: Mapped[str] = mapped_column(String(100))


class Message(Base):
    __tablename__ = "messages"

    id: Mapped[int] = mapped_column(SnowflakeType, primary_key=True, default=ids)
    topic_id: Mapped[int] = mapped_column(ForeignKey("topics.id"), index=True)
    author: Mapped[str] = mapped_column(String(100))
    text: Mapped[str] = mapped_column(String(2000))


if __name__ == "__main__":
    Base.metadata.create_all(engine)
    # Existing tables may have keys of 32 bits.
    with engine.connect() as connection:
        check_columns(connection, Base.metadata)
