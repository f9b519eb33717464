"""frazil.sqlalchemy on real databases."""

import asyncio
import copy
import decimal
import pickle
from datetime import UTC, datetime, timedelta
from typing import Annotated

import frazil
import numpy
import pytest
import sql
from frazil.sqlalchemy import SnowflakeType, check_columns, created_between
from sqlalchemy import (
    Column,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    create_engine,
    func,
    insert,
    inspect,
    literal,
    literal_column,
    select,
    text,
)
from sqlalchemy.exc import IntegrityError, OperationalError, StatementError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedAsDataclass, Session, mapped_column

LARGEST = 2**63 - 1
IDS = frazil.Snowflake("standard", node=1)


@pytest.fixture(params=sql.DATABASES)
def database(request):
    return request.param


@pytest.fixture
def engine(database, tmp_path):
    engine = create_engine(sql.url(database, tmp_path))
    yield engine
    left = MetaData()
    left.reflect(engine)
    left.drop_all(engine)
    engine.dispose()


def base():
    class Base(DeclarativeBase):
        pass

    return Base


def user_and_item(base, default=IDS):
    class User(base):
        __tablename__ = "user_"
        id: Mapped[int] = mapped_column(SnowflakeType, primary_key=True, default=default)
        name: Mapped[str] = mapped_column(String(50))

    class Item(base):
        __tablename__ = "item"
        id: Mapped[int] = mapped_column(SnowflakeType, primary_key=True, default=default)
        user_id: Mapped[int] = mapped_column(ForeignKey("user_.id"))

    return User, Item


def refusal(call):
    """Returns frazil's error for a statement that SQLAlchemy refuses."""
    with pytest.raises(StatementError) as refused:
        call()
    assert isinstance(refused.value.orig, frazil.FrazilError), refused.value
    return refused.value.orig


def test_a_key_and_a_foreign_key_are_bigint_and_the_database_numbers_nothing(engine):
    User, Item = user_and_item(base())
    User.metadata.create_all(engine)
    for table, column in ("user_", "id"), ("item", "id"), ("item", "user_id"):
        [present] = [each for each in inspect(engine).get_columns(table) if each["name"] == column]
        assert present["type"].compile(engine.dialect).startswith("BIGINT")
        assert present["default"] is None and present.get("autoincrement") in (False, "auto", None), present
    with engine.connect() as connection:
        check_columns(connection, User.metadata)
    with Session(engine) as session:
        user = User(name="first")
        session.add(user)
        session.flush()
        largest = User(id=LARGEST, name="largest")
        session.add(largest)
        session.flush()
        session.add(Item(user_id=LARGEST))
        session.commit()
        assert type(user.id) is int and IDS.layout.decode(user.id).node == 1
        assert session.get(User, LARGEST) is largest
        assert session.scalars(select(Item.user_id)).all() == [LARGEST]
        assert session.scalars(select(User.id).order_by(User.id)).all() == [user.id, LARGEST]


@pytest.mark.parametrize("default", [IDS, IDS.next, frazil.Buffered("standard", node=2, size=4096)], ids=["generator", "method", "ring"])
@pytest.mark.parametrize("way", ["add_all", "rows", "core"])
def test_a_thousand_rows_are_one_statement_that_returns_nothing(engine, way, default):
    User, _ = user_and_item(base(), default)
    User.metadata.create_all(engine)
    with Session(engine) as session, sql.statements(engine) as sent:
        if way == "add_all":
            users = [User(name=str(n)) for n in range(1000)]
            session.add_all(users)
            session.flush()
            assert [user.id for user in users] == sorted({user.id for user in users}), "in the order of the rows"
        else:
            session.execute(insert(User if way == "rows" else User.__table__), [{"name": str(n)} for n in range(1000)])
        session.commit()
    inserts = [statement for statement in sent if statement.startswith("INSERT")]
    assert len(inserts) == len(sent) == 1 and "RETURNING" not in inserts[0]
    with engine.connect() as connection:
        rows = connection.execute(select(User.id, User.name).order_by(User.id)).all()
    assert [row.name for row in rows] == [str(n) for n in range(1000)]


def test_values_that_the_database_fills_in_return_to_their_own_rows(engine, database):
    Base = base()

    class Item(Base):
        __tablename__ = "item"
        id: Mapped[int] = mapped_column(SnowflakeType, primary_key=True, default=IDS)
        name: Mapped[str] = mapped_column(String(10))
        shown: Mapped[str] = mapped_column(String(20), server_default=text("'by the server'"))

    Base.metadata.create_all(engine)
    with Session(engine) as session, sql.statements(engine) as sent:
        items = [Item(name=str(n)) for n in range(1000)]
        session.add_all(items)
        session.flush()
        assert len(sent) <= 2, sent
        assert {item.shown for item in items} == {"by the server"}
        session.expire_all()
        names = dict(session.execute(select(Item.id, Item.name)).all())
        assert [names[item.id] for item in items] == [item.name for item in items]


@pytest.mark.filterwarnings("ignore:Callable object passed")
def test_dataclasses(engine):
    class Base(MappedAsDataclass, DeclarativeBase):
        pass

    class Item(Base):
        __tablename__ = "item"
        id: Mapped[int] = mapped_column(SnowflakeType, init=False, primary_key=True, insert_default=IDS)
        name: Mapped[str] = mapped_column(String(10))

    class Known(Base):
        __tablename__ = "known"
        id: Mapped[int] = mapped_column(SnowflakeType, primary_key=True, default_factory=IDS)

    class Mistaken(Base):
        __tablename__ = "mistaken"
        id: Mapped[int] = mapped_column(SnowflakeType, primary_key=True, default=IDS)

    Base.metadata.create_all(engine)
    with Session(engine) as session:
        item, known = Item("a"), Known()
        assert type(known.id) is int
        session.add_all([item, known])
        session.flush()
        assert session.scalars(select(Item.id)).all() == [item.id] and session.scalars(select(Known.id)).all() == [known.id]
        session.add(Mistaken())
        refused = refusal(session.flush)
        assert isinstance(refused, frazil.errors.WrongTypeError) and "insert_default=ids" in str(refused)


def test_a_type_for_all_tables(engine):
    key = Annotated[int, mapped_column(SnowflakeType, primary_key=True, default=IDS)]
    Base = base()

    class Item(Base):
        __tablename__ = "item"
        id: Mapped[key]

    class Other(Base):
        __tablename__ = "other"
        id: Mapped[key]
        item_id: Mapped[int | None] = mapped_column(ForeignKey("item.id"))

    Base.metadata.create_all(engine)
    with Session(engine) as session:
        item = Item()
        session.add_all([item, Other()])
        session.flush()
        assert session.scalars(select(Item.id)).all() == [item.id]
        assert session.scalars(select(Other.item_id)).all() == [None]
    assert isinstance(Other.__table__.c.item_id.type, SnowflakeType)


def test_inheritance_has_one_id_for_all_tables_of_a_row(engine):
    Base = base()

    class Animal(Base):
        __tablename__ = "animal"
        id: Mapped[int] = mapped_column(SnowflakeType, primary_key=True, default=IDS)
        kind: Mapped[str] = mapped_column(String(10))
        __mapper_args__ = {"polymorphic_on": "kind", "polymorphic_identity": "animal"}

    class Cat(Animal):
        __tablename__ = "cat"
        id: Mapped[int] = mapped_column(ForeignKey("animal.id"), primary_key=True)
        lives: Mapped[int]
        __mapper_args__ = {"polymorphic_identity": "cat"}

    Base.metadata.create_all(engine)
    with Session(engine) as session, sql.statements(engine) as sent:
        session.add_all([Cat(lives=n) for n in range(1000)])
        session.flush()
        assert len(sent) == 2, "one for each table"
        assert session.execute(select(func.count()).select_from(Animal.__table__.join(Cat.__table__))).scalar() == 1000
    with engine.connect() as connection:
        check_columns(connection, Base.metadata)


def test_without_a_default_a_row_needs_its_id(engine):
    Base = base()

    class Item(Base):
        __tablename__ = "item"
        id: Mapped[int] = mapped_column(SnowflakeType, primary_key=True)
        name: Mapped[str | None] = mapped_column(String(10))

    Base.metadata.create_all(engine)
    with engine.begin() as connection, pytest.raises((IntegrityError, OperationalError)):
        connection.execute(text("INSERT INTO item (name) VALUES ('a')"))
    with Session(engine) as session:
        session.add(Item(id=IDS.next()))
        session.commit()
        assert session.scalar(select(func.count(Item.id))) == 1


def test_an_explicit_null_is_not_replaced_by_an_id(engine):
    User, _ = user_and_item(base())
    User.metadata.create_all(engine)
    with Session(engine) as session:
        with pytest.raises((IntegrityError, OperationalError)):
            session.bulk_insert_mappings(User, [{"id": None, "name": "a"}], render_nulls=True)
        session.rollback()
        session.bulk_insert_mappings(User, [{"id": None, "name": "a"}, {"name": "b"}])
        assert session.scalar(select(func.count(User.id))) == 2
        assert session.scalars(select(User.name).where(User.id.is_(None))).all() == []


def test_autoincrement_is_refused():
    with pytest.raises(frazil.errors.SpecError, match="autoincrement=True on column id"):
        Column("id", SnowflakeType, primary_key=True, autoincrement=True)


def test_SPEC_of_a_default_that_is_called_once():
    """`default=ids.next()` gives all rows one ID. A default that refers to a manually numbered row is allowed."""
    made, metadata = IDS.next(), MetaData()
    for options in ({"primary_key": True}, {"unique": True}, {}):
        with pytest.raises(frazil.errors.SpecError, match=rf"default={made} on column id is one ID for all rows: write default=ids"):
            Table(f"t{len(metadata.tables)}", MetaData(), Column("id", SnowflakeType, default=made, **options))
    with pytest.raises(frazil.errors.SpecError, match="one ID for all rows"):

        class Item(base()):
            __tablename__ = "item"
            id: Mapped[int] = mapped_column(SnowflakeType, primary_key=True, default=IDS.next())

    with pytest.raises(frazil.errors.SpecError, match="one ID for all rows"):

        class Data(MappedAsDataclass, base()):
            __tablename__ = "data"
            id: Mapped[int] = mapped_column(SnowflakeType(), primary_key=True, default=IDS.next())

    for default in (IDS, IDS.next, lambda: IDS.next(), text("1")):
        Table("good", MetaData(), Column("id", SnowflakeType, primary_key=True, default=default))
    Table("refers", MetaData(), Column("kind", SnowflakeType, default=7), Column("id", SnowflakeType, primary_key=True))


@pytest.mark.parametrize(
    "value, error",
    [
        ("1541815603606036480", frazil.errors.WrongTypeError),
        (1.5e18, frazil.errors.WrongTypeError),
        (decimal.Decimal("5.5"), frazil.errors.WrongTypeError),
        (decimal.Decimal("NaN"), frazil.errors.WrongTypeError),
        (decimal.Decimal("1E+1000000"), frazil.errors.WrongTypeError),
        (decimal.Decimal(-1), frazil.errors.IdInvalidError),
        (True, frazil.errors.WrongTypeError),
        (b"5", frazil.errors.WrongTypeError),
        (-1, frazil.errors.IdInvalidError),
        (2**63, frazil.errors.IdInvalidError),
    ],
    ids=repr,
)
def test_values_that_are_not_ids_are_refused_before_they_are_sent(engine, value, error):
    User, _ = user_and_item(base())
    User.metadata.create_all(engine)
    with Session(engine) as session, sql.statements(engine) as sent:
        for ask in (
            lambda: session.scalar(select(User).where(User.id == value)),
            lambda: session.scalar(select(User).where(User.id.in_([5, value]))),
            lambda: session.execute(insert(User), [{"id": 5, "name": ""}, {"id": value, "name": ""}]),
            lambda: session.get(User, value),
        ):
            refused = refusal(ask)
            assert type(refused) is error
            assert "frazil.parse_id(text)" in str(refused) or not isinstance(value, str)
            assert "floats round" in str(refused) or not isinstance(value, float)
        assert sent == []


def test_integers_of_other_types_are_integers(engine):
    User, _ = user_and_item(base())
    User.metadata.create_all(engine)
    with Session(engine) as session:
        session.execute(insert(User), [{"id": numpy.int64(LARGEST), "name": "a"}])
        for same in (numpy.uint64(LARGEST), decimal.Decimal(LARGEST), decimal.Decimal(f"{LARGEST}.00")):
            assert session.scalars(select(User.name).where(User.id == same)).all() == ["a"]
    # Not every driver knows NumPy's types.
    assert type(SnowflakeType().process_bind_param(numpy.int64(5), engine.dialect)) is int


def test_values_that_a_driver_returns(engine, database):
    def returned(expression):
        with engine.connect() as connection:
            return connection.execute(select(literal_column(expression, SnowflakeType))).scalar()

    if database != "sqlite":  # which has no exact decimals
        exact = returned(f"CAST({LARGEST} AS DECIMAL(20))")
        assert type(exact) is int and exact == LARGEST
        with pytest.raises(frazil.errors.WrongTypeError, match="must be BIGINT"):
            returned("CAST(1.5 AS DECIMAL(20, 1))")
    with pytest.raises(frazil.errors.WrongTypeError, match="must be BIGINT: floats round"):
        returned("CAST(1541815603606036481 AS DOUBLE PRECISION)" if database == "postgresql" else "1541815603606036481 * 1e0")
    with pytest.raises(frazil.errors.WrongTypeError, match="must be BIGINT"):
        returned("'1541815603606036481'" if database != "postgresql" else "CAST(1 AS TEXT)")
    assert returned("NULL") is None


def test_arithmetic_and_functions_keep_their_types(engine):
    User, _ = user_and_item(base())
    User.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all([User(id=number, name="") for number in (4, 2**62 + 1)])
        session.flush()
        row = session.execute(select(func.max(User.id), func.min(User.id), func.count(User.id))).one()
        assert tuple(row) == (2**62 + 1, 4, 2)
        assert session.scalars(select(User.id - 2**62).order_by(User.id)).all() == [4 - 2**62, 1]
        assert float(session.scalar(select(User.id / 8).where(User.id == 4))) == 0.5
        assert session.scalar(select(User.id % 10).where(User.id == 4)) == 4


def test_the_rows_of_a_time(engine):
    User, _ = user_and_item(base())
    User.metadata.create_all(engine)
    layout, midnight = IDS.layout, datetime(2026, 1, 2, tzinfo=UTC)
    day, tick = timedelta(days=1), timedelta(milliseconds=1)
    rows = {
        layout.max_id(midnight - tick): "before",
        layout.min_id(midnight): "first",
        layout.max_id(midnight + day - tick): "last",
        layout.min_id(midnight + day): "after",
    }
    with Session(engine) as session:
        session.add_all([User(id=id, name=name) for id, name in rows.items()])
        session.flush()

        def between(start, end, of=IDS):
            return session.scalars(select(User.name).where(created_between(User.id, start, end, of)).order_by(User.id)).all()

        assert between(midnight, midnight + day) == between(midnight, midnight + day, layout) == ["first", "last"]
        assert between(midnight - day, midnight) == ["before"]
        assert between(midnight, midnight) == []
        assert between(None, midnight) == between(datetime(2000, 1, 1, tzinfo=UTC), midnight) == ["before"]
        assert between(midnight + day, None) == between(midnight + day, datetime(2500, 1, 1, tzinfo=UTC)) == ["after"]
        assert between(None, None) == ["before", "first", "last", "after"]
        with pytest.raises(frazil.FrazilError, match="naive"):
            between(datetime(2026, 1, 1), midnight)
    seconds = frazil.Layout("time:31@1s node:20 sequence:12 epoch:2025-01-01")
    condition = created_between(User.id, midnight, midnight + timedelta(seconds=1.5), seconds)
    bounds = {bound.value for bound in condition.compile().binds.values()}
    assert bounds == {seconds.min_id(midnight), seconds.min_id(midnight + timedelta(seconds=1))}, "rounded down to a tick"


NARROW = {
    "postgresql": [
        ("CREATE TABLE item (id INTEGER PRIMARY KEY, parent_id BIGINT)", "item.id is INTEGER, too narrow", "ALTER COLUMN id TYPE BIGINT"),
        ("CREATE TABLE item (id BIGINT PRIMARY KEY, parent_id INTEGER)", "item.parent_id is INTEGER", "ALTER COLUMN parent_id TYPE BIGINT"),
        ("CREATE TABLE item (id SMALLINT PRIMARY KEY)", "item.id is SMALLINT", "ALTER COLUMN id TYPE BIGINT"),
        ("CREATE TABLE item (id DOUBLE PRECISION PRIMARY KEY)", "item.id is DOUBLE", "ALTER COLUMN id TYPE BIGINT"),
        ("CREATE TABLE item (id NUMERIC(18) PRIMARY KEY)", "item.id is NUMERIC", "ALTER COLUMN id TYPE BIGINT"),
    ],
    "mariadb": [
        ("CREATE TABLE item (id INT PRIMARY KEY, parent_id BIGINT)", "item.id is INTEGER", "MODIFY id BIGINT NOT NULL"),
        ("CREATE TABLE item (id BIGINT PRIMARY KEY, parent_id INT UNSIGNED)", "item.parent_id is INTEGER", "MODIFY parent_id BIGINT"),
        ("CREATE TABLE item (id MEDIUMINT PRIMARY KEY)", "item.id is MEDIUMINT", "MODIFY id BIGINT NOT NULL"),
        ("CREATE TABLE item (id DOUBLE PRIMARY KEY)", "item.id is DOUBLE", "MODIFY id BIGINT NOT NULL"),
        ("CREATE TABLE item (id VARCHAR(20) PRIMARY KEY)", "item.id is VARCHAR", "MODIFY id BIGINT NOT NULL"),
        ("CREATE TABLE item (id BIGINT PRIMARY KEY AUTO_INCREMENT)", "item.id has AUTO_INCREMENT", "MODIFY id BIGINT NOT NULL"),
    ],
    "sqlite": [
        ("CREATE TABLE item (id INTEGER PRIMARY KEY, parent_id INTEGER)", "item.id is an INTEGER PRIMARY KEY", "with id BIGINT"),
        ("CREATE TABLE item (id BIGINT PRIMARY KEY, parent_id REAL)", "item.parent_id is REAL", "with parent_id BIGINT"),
    ],
}


def test_narrow_columns_are_found_and_the_printed_statement_widens_them(engine, database):
    metadata = MetaData()
    Table("item", metadata, Column("id", SnowflakeType, primary_key=True, default=IDS), Column("parent_id", Integer, ForeignKey("item.id")))
    Table("missing", metadata, Column("id", SnowflakeType, primary_key=True))
    for create, what, fix in NARROW[database]:
        with engine.begin() as connection:
            connection.execute(text(create))
        with engine.connect() as connection, pytest.raises(frazil.errors.OutOfRangeError, match=what) as found:
            check_columns(connection, metadata)
        assert fix in str(found.value)
        if database == "sqlite":
            assert "ALTER" not in str(found.value), "SQLite changes no column's type"
        else:
            with engine.begin() as connection:
                connection.execute(text(str(found.value).rpartition(": ")[2]))
                check_columns(connection, metadata)
        with engine.begin() as connection:
            connection.execute(text("DROP TABLE item"))


def test_the_printed_statements_widen_columns_with_foreign_keys(engine, database):
    if database == "sqlite":
        pytest.skip("SQLite changes no column's type")
    metadata = MetaData()
    Table("item", metadata, Column("id", SnowflakeType, primary_key=True, default=IDS), Column("parent_id", Integer, ForeignKey("item.id")))
    Table("mail", metadata, Column("id", SnowflakeType, primary_key=True, default=IDS), Column("item_id", Integer, ForeignKey("item.id")))
    with engine.begin() as connection:
        connection.execute(
            text("CREATE TABLE item (id INTEGER PRIMARY KEY, parent_id INTEGER, FOREIGN KEY (parent_id) REFERENCES item (id))")
        )
        connection.execute(text("CREATE TABLE mail (id BIGINT PRIMARY KEY, item_id INTEGER, FOREIGN KEY (item_id) REFERENCES item (id))"))
    for what in "item.id is INTEGER", "item.parent_id is INTEGER", "mail.item_id is INTEGER":
        with engine.connect() as connection, pytest.raises(frazil.errors.OutOfRangeError, match=what) as found:
            check_columns(connection, metadata)
        with engine.begin() as connection:
            for statement in str(found.value).rpartition(": ")[2].split("; "):
                connection.execute(text(statement))
    with engine.begin() as connection:
        check_columns(connection, metadata)
        connection.execute(text("DROP TABLE mail"))
        connection.execute(text("DROP TABLE item"))


WIDE = {
    "postgresql": ["id BIGINT PRIMARY KEY", "id NUMERIC(20) PRIMARY KEY", "id NUMERIC PRIMARY KEY"],
    "mariadb": ["id BIGINT PRIMARY KEY", "id BIGINT UNSIGNED PRIMARY KEY", "id DECIMAL(19) PRIMARY KEY"],
    "sqlite": ["id BIGINT PRIMARY KEY", "id INT PRIMARY KEY", "id INTEGER, other BIGINT, PRIMARY KEY (id, other)"],
}


def test_columns_that_are_wide_enough_pass(engine, database):
    metadata = MetaData()
    Table("item", metadata, Column("id", SnowflakeType, primary_key=True))
    for columns in WIDE[database]:
        with engine.begin() as connection:
            connection.execute(text(f"CREATE TABLE item ({columns})"))
            check_columns(connection, metadata)
            connection.execute(text("DROP TABLE item"))


def test_the_remedy_for_a_column_is_quoted(engine, database):
    metadata = MetaData()
    Table("order", metadata, Column("select", SnowflakeType, primary_key=True))
    quote = "`" if database == "mariadb" else '"'
    with engine.begin() as connection:
        connection.execute(text('CREATE TABLE "order" ("select" REAL PRIMARY KEY)'.replace('"', quote)))
    with engine.connect() as connection, pytest.raises(frazil.errors.OutOfRangeError) as found:
        check_columns(connection, metadata)
    assert f"table {quote}order{quote}" in str(found.value).replace("TABLE", "table") and f" {quote}select{quote} " in str(found.value)


def test_keys_that_refer_to_each_other_are_passed_over(engine):
    metadata = MetaData()
    for name, other in ("wife", "husband"), ("husband", "wife"):
        Table(name, metadata, Column("id", Integer, ForeignKey(f"{other}.id", name=f"{name}_of", use_alter=True), primary_key=True))
    with engine.connect() as connection:
        check_columns(connection, metadata)


def test_types_and_tables_are_copied_and_pickled():
    assert isinstance(pickle.loads(pickle.dumps(SnowflakeType())), SnowflakeType)
    assert isinstance(copy.deepcopy(SnowflakeType()), SnowflakeType)
    metadata = MetaData()
    table = Table("item", metadata, Column("id", SnowflakeType, primary_key=True, default=IDS), Column("of", ForeignKey("item.id")))
    copied = table.to_metadata(MetaData())
    assert isinstance(copied.c.id.type, SnowflakeType) and copied.c.id.autoincrement is False and copied.c.id.default is not None
    assert isinstance(copied.c.of.type, SnowflakeType) and SnowflakeType().python_type is int
    mixed_in = Column("id", SnowflakeType, primary_key=True)
    assert mixed_in._copy().autoincrement is False


def test_a_statement_is_compiled_once_for_all_values(engine):
    User, _ = user_and_item(base())
    keys = {select(User).where(User.id == number)._generate_cache_key().key for number in (1, 2)}
    assert len(keys) == 1


def test_literals_and_merged_rows(engine):
    User, _ = user_and_item(base())
    User.metadata.create_all(engine)
    with Session(engine) as session:
        merged = session.merge(User(name="a"))
        session.flush()
        assert session.merge(User(id=merged.id, name="b")) is merged
        session.flush()
        assert session.scalars(select(User.name)).all() == ["b"]
        assert session.scalar(select(literal(LARGEST, SnowflakeType))) == LARGEST
        # An UPDATE that changes nothing is not sent.
        merged.id = int(merged.id)
        with sql.statements(engine) as sent:
            session.flush()
        assert sent == []
    assert str(literal(5, SnowflakeType).compile(compile_kwargs={"literal_binds": True})) == "5"


def test_existing_tables(engine):
    User, _ = user_and_item(base())
    User.metadata.create_all(engine)
    table = Table("user_", MetaData(), Column("id", SnowflakeType, primary_key=True, default=IDS), autoload_with=engine)
    with engine.begin() as connection:
        connection.execute(insert(table), [{"name": "a"}, {"name": "b"}])
        assert connection.execute(select(func.count(table.c.id.distinct()))).scalar() == 2


def async_databases():
    return [pytest.param(database, driver, id=driver) for database in sql.DATABASES for driver in sql.ASYNC_DRIVERS[database]]


@pytest.mark.parametrize("database, driver", async_databases())
def test_async_engines(database, driver, tmp_path):
    User, Item = user_and_item(base())

    async def main():
        engine = create_async_engine(sql.url(database, tmp_path, driver))
        try:
            async with engine.begin() as connection:
                await connection.run_sync(User.metadata.create_all)
                await connection.run_sync(check_columns, User.metadata)
            with sql.statements(engine.sync_engine) as sent:
                async with AsyncSession(engine, expire_on_commit=False) as session:
                    users = [User(name=str(n)) for n in range(1000)]
                    session.add_all(users)
                    await session.commit()
                    assert [type(user.id) for user in users] == [int] * 1000
                    assert len(sent) == 1 and "RETURNING" not in sent[0]
                    session.add(Item(user_id=users[-1].id))
                    await session.commit()
                    rows = (await session.execute(select(User.id, User.name).order_by(User.id))).all()
            assert [row.name for row in rows] == [str(n) for n in range(1000)]
        finally:
            async with engine.begin() as connection:
                await connection.run_sync(User.metadata.drop_all)
            await engine.dispose()

    asyncio.run(main())


def test_a_default_does_not_hold_up_a_loop(tmp_path):
    # With four IDs an hour, the fifth would wait for the next hour.
    few = frazil.Snowflake(layout="time:31@1h node:10 sequence:2 epoch:2025-01-01", store="memory", namespace="few", exhausted="wait:5h")
    User, _ = user_and_item(base(), few)

    async def main():
        engine = create_async_engine(sql.url("sqlite", tmp_path, "sqlite+aiosqlite"))
        async with engine.begin() as connection:
            await connection.run_sync(User.metadata.create_all)
        async with AsyncSession(engine) as session:
            session.add_all([User(name=str(n)) for n in range(5)])
            with pytest.raises(frazil.errors.WouldBlockError) as refused:
                await session.flush()
        assert refused.value.retry_after > 0
        # IDs that the program has awaited beforehand need no default.
        ready = await IDS.abatch(5)
        async with AsyncSession(engine) as session:
            session.add_all([User(id=id, name="") for id in ready])
            await session.flush()
        await engine.dispose()

    asyncio.run(main())


def test_many_rows_in_batches_whose_ids_come_back_in_their_order(database, tmp_path):
    engine = create_engine(sql.url(database, tmp_path), insertmanyvalues_page_size=100)
    User, _ = user_and_item(base())
    User.metadata.create_all(engine)
    try:
        with Session(engine) as session:
            rows = [{"name": str(n)} for n in range(350)]
            returned = session.execute(insert(User).returning(User.id, User.name, sort_by_parameter_order=True), rows).all()
            assert [row.name for row in returned] == [row["name"] for row in rows]
            assert len({row.id for row in returned}) == 350 and {type(row.id) for row in returned} == {int}
    finally:
        User.metadata.drop_all(engine)
        engine.dispose()


def test_rows_that_are_values_of_one_statement(engine):
    User, _ = user_and_item(base())
    User.metadata.create_all(engine)
    with Session(engine) as session:
        session.execute(insert(User).values([{"name": str(n)} for n in range(100)]))
        assert session.scalar(select(func.count(User.id.distinct()))) == 100


def test_a_default_that_is_called_once_for_many_rows_makes_no_rows(engine):
    User, _ = user_and_item(base())
    User.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all([User(name="a"), User(name="b")])
        session.flush()
        with pytest.raises(IntegrityError):
            session.execute(insert(User).from_select(["name"], select(User.name)))
