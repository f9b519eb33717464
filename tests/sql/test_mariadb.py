"""MariaDB: sql_modes, time zones, rounding, and what an index and a generated column need."""

import re

import pytest
from databases import Refused
from layouts import Layout

TWITTER = Layout("time:41@1ms datacenter:5 worker:5 sequence:12 epoch:1288834974657")
ID = 1541815603606036480
BASE62 = "1ptWyK4WgZU"
MODES = [
    "",
    "ANSI_QUOTES",
    "ANSI",
    "ORACLE",
    "NO_BACKSLASH_ESCAPES",
    "NO_UNSIGNED_SUBTRACTION",
    "PIPES_AS_CONCAT",
    "HIGH_NOT_PRECEDENCE",
    "EMPTY_STRING_IS_NULL",
    "TIME_ROUND_FRACTIONAL",
    "TRADITIONAL",
]


@pytest.fixture
def session(mariadb):
    """Opens MariaDB with the functions, and resets a test's settings."""
    mariadb.install("twitter")
    yield mariadb
    for setting in ("sql_mode", "time_zone", "character_set_connection", "collation_connection"):
        mariadb.query(f"SET SESSION {setting} = DEFAULT")
    mariadb.query("DROP TABLE IF EXISTS items, codes")


def check(session):
    """Checks that each function returns and refuses the expected values."""
    shown, *numbers = session.query(
        f"SELECT CAST(frazil_time({ID}) AS CHAR), frazil_unix_ms({ID}), frazil_worker({ID}), frazil_from_base62('{BASE62}'), "
        "frazil_min_id(TIMESTAMP'2022-06-28 16:07:40.105999'), frazil_max_id(TIMESTAMP'2022-06-28 16:07:40.105999')"
    )[0]
    assert shown == "2022-06-28 16:07:40.105"
    assert numbers == [1656432460105, 26, ID, ID >> 22 << 22, (ID >> 22 << 22) + 4194303]
    assert session.query(f"SELECT frazil_base62({ID}), frazil_base62({ID}) = '{BASE62.lower()}'") == ((BASE62, 0),)
    for call, code in [
        ("frazil_unix_ms(-1)", "ID_INVALID"),
        ("frazil_base62(-1)", "ID_INVALID"),
        ("frazil_from_base62('azL8n0Y58m7')", "ID_INVALID"),
        ("frazil_min_id(TIMESTAMP'2010-11-04 01:42:54.656999')", "BEFORE_EPOCH"),
        ("frazil_min_id(TIMESTAMP'2080-07-10 17:30:30.209')", "LAYOUT_EXPIRED"),
    ]:
        with pytest.raises(Refused, match=f"1690, .*frazil: {code}: "):
            session.tried(f"SELECT {call}")


@pytest.mark.parametrize("mode", MODES)
def test_no_sql_mode_changes_anything(session, mode):
    session.query(f"SET SESSION sql_mode = '{mode}'")
    given = session.query("SELECT @@SESSION.sql_mode")
    check(session)
    session.install("twitter")
    assert session.query("SELECT @@SESSION.sql_mode") == given, "the script gives the mode back"
    check(session)


@pytest.mark.parametrize("zone", ["+00:00", "-05:00", "+05:45"])
def test_the_sessions_time_zone_changes_nothing(session, zone):
    session.query(f"SET SESSION time_zone = '{zone}'")
    check(session)
    [(distance,)] = session.query("SELECT ABS(frazil_unix_ms(frazil_min_id(UTC_TIMESTAMP(6))) - UNIX_TIMESTAMP(NOW(6)) * 1000)")
    assert distance < 60_000


@pytest.mark.parametrize("mode", ["", "TIME_ROUND_FRACTIONAL"])
def test_microseconds_are_cut_and_not_rounded(session, mode):
    session.query(f"SET SESSION sql_mode = '{mode}'")
    for text, ms in [("00:00:00.000999", 0), ("00:00:00.001000", 1), ("00:00:00.999999", 999), ("23:59:59.999999", 86_399_999)]:
        assert session.query(f"SELECT frazil_min_id(TIMESTAMP'2025-01-01 {text}')")[0][0] == TWITTER.min_id((1_735_689_600_000 + ms) * 1000)


@pytest.mark.parametrize("collation", ["latin1_swedish_ci", "utf8mb4_general_ci", "utf8mb4_bin", "ascii_general_ci"])
def test_a_connections_collation_changes_no_digit(session, collation):
    session.query(f"SET SESSION character_set_connection = {collation.split('_')[0]}, collation_connection = {collation}")
    check(session)
    session.install("twitter")
    check(session)
    session.query(f"CREATE TABLE codes (digits VARCHAR(20) CHARACTER SET {collation.split('_')[0]} COLLATE {collation})")
    session.query(f"INSERT INTO codes VALUES ('{BASE62}')")
    assert session.query("SELECT frazil_from_base62(digits), frazil_base62(frazil_from_base62(digits)) FROM codes") == ((ID, BASE62),)


def test_attributes_of_the_functions(session):
    flags = session.query(
        "SELECT is_deterministic, sql_data_access, security_type FROM information_schema.routines WHERE routine_name LIKE 'frazil\\_%'"
    )
    # Including the functions of other tests' layouts.
    assert len(flags) >= 9 and set(flags) == {("YES", "NO SQL", "INVOKER")}


def test_the_primary_key_serves_a_range_of_time(session):
    session.query("CREATE TABLE items (id BIGINT PRIMARY KEY)")
    session.query("INSERT INTO items SELECT frazil_min_id(TIMESTAMP'2025-01-01 00:00:00' + INTERVAL seq MINUTE) FROM seq_0_to_9999")
    session.query("ANALYZE TABLE items")
    within = "id >= frazil_min_id('2025-01-02 00:00:00') AND id <= frazil_max_id('2025-01-02 00:04:00')"
    assert session.query(f"SELECT COUNT(*) FROM items WHERE {within}") == ((5,),)
    [(_, _, _, kind, _, key, _, _, rows, _)] = session.query(f"EXPLAIN SELECT * FROM items WHERE {within}")
    assert (kind, key, int(rows) < 10) == ("range", "PRIMARY", True)


def test_generated_columns_are_what_the_script_says(session):
    columns = re.findall(r"^--   (.*)$", session.script, re.MULTILINE)
    assert [column.split()[0] for column in columns] == ["created_at", "`datacenter`", "`worker`", "`sequence`"]
    session.query(f"CREATE TABLE items (id BIGINT PRIMARY KEY, {', '.join(columns)}, KEY (created_at), KEY (worker, created_at))")
    numbers = TWITTER.ids()
    session.query(f"INSERT INTO items (id) VALUES {', '.join(f'({number})' for number in numbers)}")
    rows = session.query("SELECT id, CAST(created_at AS CHAR), datacenter, worker, sequence FROM items ORDER BY id")
    names = ("datacenter", "worker", "sequence")
    assert list(rows) == [(number, TWITTER.time(number) + "000", *(TWITTER.field(name, number) for name in names)) for number in numbers]
    within = "created_at BETWEEN '2022-06-28 16:07:40.105' AND '2022-06-28 16:07:40.105'"
    assert session.query(f"EXPLAIN SELECT * FROM items WHERE {within}")[0][5] == "created_at"
    assert session.query(f"SELECT id FROM items WHERE {within}") == ((ID,),)


def test_insert_ignore_ignores_no_refusal(session):
    session.query("CREATE TABLE items (id BIGINT)")
    with pytest.raises(Refused, match="frazil: BEFORE_EPOCH: "):
        session.tried("INSERT IGNORE INTO items SELECT frazil_min_id('2005-01-01')")
    assert session.query("SELECT COUNT(*) FROM items") == ((0,),)


def test_a_strict_session_takes_only_what_is_an_id_or_an_instant(session):
    for call in (
        "frazil_time('12x')",
        "frazil_time(9223372036854775808)",
        "frazil_time('')",
        "frazil_min_id('2025-13-01')",
        "frazil_min_id('junk')",
    ):
        with pytest.raises(Refused, match=r"Data truncated|Out of range|Incorrect"):
            session.tried(f"SELECT {call}")
    assert session.query(f"SELECT frazil_unix_ms('{ID}'), frazil_unix_ms(CAST({ID} AS UNSIGNED))") == ((1656432460105, 1656432460105),)


def test_a_database_and_a_prefix(session):
    session.install("time:41@1ms order:5 select:5 sequence:12 epoch:2025-01-01", "--schema", "frazil", "--prefix", "t_")
    assert session.query("SELECT frazil.t_order(4294967295), `frazil`.`t_select`(4294967295)") == ((31, 31),)
