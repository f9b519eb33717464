"""Two tables whose keys are IDs of frazil, and a foreign key between them. `python models.py` creates the tables."""

import os

import frazil
from sqlalchemy import BigInteger, ForeignKey, String, create_engine, make_url
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, sessionmaker

# Each worker process leases a node number of its own, as the spec line in FRAZIL says. uvicorn imports this while its event loop runs:
# `timeout` says that the program may wait here.
ids = frazil.Snowflake(timeout=30)
# `postgresql://` alone would mean psycopg2. A connection that a restart of the database has cut is replaced before it is used.
engine = create_engine(make_url(os.environ["DATABASE_URL"]).set(drivername="postgresql+psycopg"), pool_pre_ping=True, max_overflow=0)
Session = sessionmaker(engine, expire_on_commit=False)


class Base(DeclarativeBase):
    pass


class Topic(Base):
    __tablename__ = "topics"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False, default=ids.next)
    title: Mapped[str] = mapped_column(String(200))


class Message(Base):
    __tablename__ = "messages"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False, default=ids.next)
    topic_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("topics.id"), index=True)
    author: Mapped[str] = mapped_column(String(100))
    text: Mapped[str] = mapped_column(String(2000))


if __name__ == "__main__":
    Base.metadata.create_all(engine)
