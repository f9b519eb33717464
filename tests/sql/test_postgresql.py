"""PostgreSQL: the requirements of indexes, partition bounds and managed services, and sessions with hostile settings."""

import itertools

import pytest
from databases import Refused, statements
from layouts import Layout

TWITTER = Layout("time:41@1ms datacenter:5 worker:5 sequence:12 epoch:1288834974657")
ID = 1541815603606036480
BASE62 = "1ptWyK4WgZU"
CALLS = f"""SELECT extract(epoch FROM frazil_time({ID})), frazil_unix_ms({ID}), frazil_worker({ID}), frazil_base62({ID}),
    frazil_from_base62('{BASE62}'), frazil_min_id('2022-06-28 16:07:40.105+00'), frazil_max_id('2022-06-28 16:07:40.105+00')"""
ANSWERS = [(1656432460.105, 1656432460105, 26, BASE62, ID, ID >> 22 << 22, (ID >> 22 << 22) + 4194303)]


def answers(database, schema=""):
    [(seconds, *others)] = database.query(CALLS.replace("frazil_", f"{schema}frazil_"))
    return [(float(seconds), *others)]


@pytest.fixture
def session(postgresql):
    """Opens PostgreSQL with the functions, and rolls back a test's tables and settings."""
    postgresql.query("BEGIN")
    postgresql.install("twitter")
    yield postgresql
    postgresql.query("ROLLBACK")


def explain(database, query, analyze=""):
    return "\n".join(row[0] for row in database.query(f"EXPLAIN ({analyze}COSTS OFF) {query}"))


def rows(database):
    """Makes a table of a thousand IDs, one a minute from 2025 on."""
    database.query("CREATE TABLE items (id bigint PRIMARY KEY)")
    database.query(
        "INSERT INTO items SELECT frazil_min_id(timestamptz '2025-01-01+00' + n * interval '1 minute') + 26 * 4096 FROM generate_series(0, 9999) n"
    )
    database.query("ANALYZE items")


def test_they_are_immutable_parallel_safe_and_an_ordinary_accounts(session):
    flags = session.query("SELECT proname, provolatile, proparallel, prosecdef FROM pg_proc WHERE proname LIKE 'frazil\\_%'")
    assert {name for name, *_ in flags} >= {"frazil_time", "frazil_worker", "frazil_min_id", "frazil_base62"}
    assert {tuple(of_one) for _, *of_one in flags} == {("i", "s", False)}
    assert session.query("SELECT usesuper FROM pg_user WHERE usename = current_user") == [(False,)]


@pytest.mark.parametrize(
    "setting",
    [
        "TimeZone = 'America/New_York'",
        "TimeZone = 'Asia/Kathmandu'",
        "DateStyle = 'SQL, DMY'",
        "IntervalStyle = 'sql_standard'",
        "standard_conforming_strings = off",
        "extra_float_digits = -15",
        "bytea_output = 'escape'",
        "search_path = ''",
    ],
)
def test_a_sessions_settings_change_nothing(session, setting):
    """The settings have no effect when the functions are created or called."""
    [(schema,)] = session.query("SELECT current_schema()")
    session.query(f"SET LOCAL {setting}")
    for _ in ("created without", "created with"):
        assert answers(session, f"{schema}.") == ANSWERS
        # Around the beginning and the end of summer time in New York, each instant has its own IDs.
        for text in ("2025-03-09 06:59:59.999", "2025-03-09 07:00:00", "2025-11-02 05:30:00", "2025-11-02 06:30:00"):
            [(same,)] = session.query(f"SELECT {schema}.frazil_time({schema}.frazil_min_id('{text}+00')) = timestamptz '{text}+00'")
            assert same, text
        session.install("twitter", "--schema", schema)


def test_no_other_schemas_names_are_taken(session):
    """Foreign objects on the search_path, with types that nearly fit, are neither called nor bound."""
    for name, arguments in [
        ("substr", "text, bigint, integer"),
        ("strpos", "varchar, varchar"),
        ("floor", "bigint"),
        ("to_timestamp", "bigint"),
        ("left", "varchar, integer"),
        ("timezone", "text, date"),
    ]:
        parameters = ", ".join(arguments.split(", "))
        session.query(f"CREATE FUNCTION {name}({parameters}) RETURNS text LANGUAGE sql AS $$ SELECT 'taken'::text $$")
    for operator, left, right in [
        ("*", "interval", "bigint"),
        ("*", "numeric", "integer"),
        ("%", "bigint", "integer"),
        ("&", "bigint", "integer"),
        ("|", "bigint", "integer"),
        ("||", "text", "bigint"),
        ("+", "timestamp", "bigint"),
    ]:
        name = f"taken_{abs(hash((operator, left, right)))}"
        session.query(f"CREATE FUNCTION {name}({left}, {right}) RETURNS bigint LANGUAGE sql AS $$ SELECT 666::bigint $$")
        session.query(f"CREATE OPERATOR {operator} (LEFTARG = {left}, RIGHTARG = {right}, FUNCTION = {name})")
    assert answers(session) == ANSWERS
    session.install("twitter")
    assert answers(session) == ANSWERS


def test_an_index_on_the_time(session):
    rows(session)
    session.query("CREATE INDEX items_time ON items (frazil_time(id))")
    session.query("CREATE INDEX items_worker ON items (frazil_worker(id), frazil_time(id))")
    session.query("ANALYZE items")
    # Index maintenance runs with an empty search_path.
    session.query("SET LOCAL search_path = ''")
    session.query("REINDEX TABLE public.items")
    session.query("SET LOCAL search_path = public")
    within = "frazil_time(id) >= '2025-01-02 00:00+00' AND frazil_time(id) < '2025-01-02 00:05+00'"
    assert "Index Scan using items_time" in explain(session, f"SELECT * FROM items WHERE {within}")
    assert session.query(f"SELECT count(*) FROM items WHERE {within}") == [(5,)]
    assert "items_time" in explain(session, "SELECT * FROM items ORDER BY frazil_time(id) DESC LIMIT 3")
    of_worker = explain(session, f"SELECT * FROM items WHERE frazil_worker(id) = 27 AND {within}")
    assert "items_worker" in of_worker and "Filter" not in of_worker
    # The primary key serves a range of time without any other index.
    span = "id >= frazil_min_id('2025-01-02 00:00+00') AND id <= frazil_max_id('2025-01-02 00:04+00')"
    assert "Index Only Scan using items_pkey" in explain(session, f"SELECT * FROM items WHERE {span}")
    assert session.query(f"SELECT count(*) FROM items WHERE {span}") == [(5,)]
    assert "items_pkey" in explain(session, "SELECT * FROM items WHERE id >= frazil_min_id(now() - interval '1 day')")
    assert "items_pkey" in explain(session, f"SELECT * FROM items WHERE id = frazil_from_base62('{BASE62}')")
    with pytest.raises(Refused, match="frazil: ID_INVALID: -1 is not an ID"):
        session.tried("INSERT INTO items VALUES (-1)")


def test_generated_columns_and_constraints(session):
    session.query(
        "CREATE TABLE made (id bigint PRIMARY KEY, created_at timestamptz GENERATED ALWAYS AS (frazil_time(id)) STORED, "
        "worker smallint GENERATED ALWAYS AS (frazil_worker(id)) STORED, CHECK (frazil_datacenter(id) < 31))"
    )
    session.query(f"INSERT INTO made VALUES ({ID})")
    [(created_at, worker)] = session.query("SELECT created_at, worker FROM made")
    assert (created_at.timestamp(), worker) == (1656432460.105, 26)


def test_parallel_workers_call_them(session):
    rows(session)
    session.query("SET LOCAL parallel_setup_cost = 0")
    session.query("SET LOCAL parallel_tuple_cost = 0")
    session.query("SET LOCAL min_parallel_table_scan_size = 0")
    query = "SELECT count(frazil_time(id)), max(frazil_base62(id)) FROM items"
    assert "Parallel" in explain(session, query)
    last = TWITTER.min_id(1_735_689_600_000_000 + 9999 * 60_000_000) + 26 * 4096
    assert session.query(query) == [(10000, session.one("base62", "id", last))]


def test_partitions_are_pruned_when_planned_and_when_run(session):
    session.query("CREATE TABLE events (id bigint PRIMARY KEY) PARTITION BY RANGE (id)")
    months = [f"2025-{month:02}-01+00" for month in range(1, 5)]
    for number, (first, end) in enumerate(itertools.pairwise(months), 1):
        bounds = f"FROM (frazil_min_id('{first}')) TO (frazil_min_id('{end}'))"
        session.query(f"CREATE TABLE events_{number} PARTITION OF events FOR VALUES {bounds}")
    # The first and the last ID of a month belong to its partition.
    for number, (first, end) in enumerate(itertools.pairwise(months), 1):
        session.query(
            f"INSERT INTO events VALUES (frazil_min_id('{first}')), (frazil_max_id(timestamptz '{end}' - interval '1 microsecond'))"
        )
        assert session.query(f"SELECT count(*) FROM events_{number}") == [(2,)]
    with pytest.raises(Refused, match="no partition of relation"):
        session.query("SAVEPOINT s")
        session.tried("INSERT INTO events VALUES (frazil_min_id('2025-04-01+00'))")
    session.query("ROLLBACK TO s")
    planned = explain(session, "SELECT * FROM events WHERE id >= frazil_min_id('2025-02-10+00') AND id < frazil_min_id('2025-02-11+00')")
    assert "events_2" in planned and "events_1" not in planned and "events_3" not in planned
    session.query("SET LOCAL plan_cache_mode = force_generic_plan")
    session.query("PREPARE since(timestamptz) AS SELECT * FROM events WHERE id >= frazil_min_id($1)")
    assert "Subplans Removed: 2" in explain(session, "EXECUTE since('2025-03-10+00')", analyze="ANALYZE, TIMING OFF, SUMMARY OFF, ")
    recent = explain(session, "SELECT * FROM events WHERE id >= frazil_min_id(now())", analyze="ANALYZE, TIMING OFF, SUMMARY OFF, ")
    assert "Subplans Removed: 3" in recent


def test_infinity_is_not_an_instant_of_a_layout(session):
    for value, code in [("infinity", "LAYOUT_EXPIRED"), ("-infinity", "BEFORE_EPOCH")]:
        session.query("SAVEPOINT s")
        with pytest.raises(Refused, match=f"frazil: {code}: Unix time -?Infinity"):
            session.tried(f"SELECT frazil_min_id('{value}')")
        session.query("ROLLBACK TO s")


def test_only_an_integer_is_an_id(session):
    for value in ("1.5", "1e18::float8", f"{ID}::numeric", f"'{ID}'::text", "9223372036854775808", "'12x'"):
        session.query("SAVEPOINT s")
        with pytest.raises(Refused, match=r"does not exist|invalid input syntax"):
            session.tried(f"SELECT frazil_time({value})")
        session.query("ROLLBACK TO s")


def test_a_columns_collation_changes_no_digit(session):
    session.query("CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level1', deterministic = false)")
    session.query("CREATE TABLE codes (digits text COLLATE blind)")
    session.query(f"INSERT INTO codes VALUES ('{BASE62}')")
    assert session.query("SELECT frazil_from_base62(digits) FROM codes") == [(ID,)]
    session.query("UPDATE codes SET digits = 'azL8n0Y58m7'")
    with pytest.raises(Refused, match="frazil: ID_INVALID: 'azL8n0Y58m7' is not an ID in base62"):
        session.tried("SELECT frazil_from_base62(digits) FROM codes")


def test_a_schema_and_a_prefix(session):
    session.query('CREATE SCHEMA "My-app"')
    session.install("time:41@1ms order:5 select:5 sequence:12 epoch:2025-01-01", "--schema", "My-app", "--prefix", "t_")
    assert session.query('SELECT "My-app".t_order(4294967295), "My-app".t_select(4294967295)') == [(31, 31)]
    assert all('"My-app"."t_' in statement for statement in statements(session.script))
