"""SQLite, DuckDB, ClickHouse, BigQuery: types, collations, and what keys and generated columns need."""

import re

import pytest
from databases import Refused, frazil
from layouts import Layout

TWITTER = Layout("time:41@1ms datacenter:5 worker:5 sequence:12 epoch:1288834974657")
ID = 1541815603606036480
BASE62 = "1ptWyK4WgZU"


def test_sqlite_takes_integers_only(sqlite):
    sqlite.install("twitter")
    for value, shown in [(f"'{ID}'", ID), ("1.5", "1.5"), ("1e18", "1.0e+18"), ("x'00'", ""), ("''", ""), ("9223372036854775808", "9.22")]:
        for function in ("time", "worker", "base62"):
            with pytest.raises(Refused, match=re.escape(f"frazil: ID_INVALID: {shown}")):
                sqlite.tried(f"SELECT {sqlite.call(function, value)}")
    for value in ("'2025-01-01'", "1735689600000.5"):
        with pytest.raises(Refused, match="frazil: WRONG_TYPE: .* is not an integer: use Unix milliseconds"):
            sqlite.tried(f"SELECT {sqlite.call('min_id', value)}")
    for value in ("5", f"x'{BASE62.encode().hex()}'", "1.0"):
        with pytest.raises(Refused, match="frazil: ID_INVALID: .* is not an ID in base62"):
            sqlite.tried(f"SELECT {sqlite.call('from_base62', value)}")


def test_sqlite_expressions_are_for_views_indexes_and_generated_columns(sqlite):
    sqlite.install("twitter")
    time, worker, digits = (sqlite.expressions[name][0] for name in ("time", "worker", "from_base62"))
    sqlite.query("DROP TABLE IF EXISTS items")
    sqlite.query(f"CREATE TABLE items (id INTEGER PRIMARY KEY, created_at TEXT AS ({time}) STORED, digits TEXT COLLATE NOCASE)")
    sqlite.query(f"CREATE INDEX items_worker ON items ({worker})")
    sqlite.query("CREATE INDEX items_created_at ON items (created_at)")
    sqlite.query(f"CREATE TEMP VIEW decoded AS SELECT id, {time} AS created_at, {worker} AS worker, {digits} AS back FROM items")
    sqlite.query(f"INSERT INTO items (id, digits) VALUES ({ID}, '{BASE62}')")
    assert sqlite.query("SELECT * FROM decoded") == [(ID, "2022-06-28 16:07:40.105", 26, ID)]
    plan = sqlite.query("EXPLAIN QUERY PLAN SELECT * FROM items WHERE created_at >= '2022-06-28'")
    assert "USING INDEX items_created_at" in plan[0][3]
    plan = sqlite.query(f"EXPLAIN QUERY PLAN SELECT id FROM items WHERE {worker} = 26")
    assert "items_worker" in plan[0][3]
    first = sqlite.call("min_id", "1656432460105")
    plan = sqlite.query(f"EXPLAIN QUERY PLAN SELECT id FROM items WHERE id >= {first}")
    assert any("USING INTEGER PRIMARY KEY (rowid>?)" in row[3] for row in plan)
    with pytest.raises(Refused, match="frazil: ID_INVALID: -1 is not an ID"):
        sqlite.tried("INSERT INTO items (id) VALUES (-1)")
    # Even in a column that ignores case, 'a' is not 'A' here.
    sqlite.query("DELETE FROM items")
    sqlite.query("INSERT INTO items (id, digits) VALUES (1, 'AzL8n0Y58m7'), (2, 'azL8n0Y58m7')")
    assert sqlite.query("SELECT back FROM decoded WHERE id = 1") == [(2**63 - 1,)]
    with pytest.raises(Refused, match="frazil: ID_INVALID: "):
        sqlite.tried("SELECT back FROM decoded WHERE id = 2")


def test_duckdb_takes_integers_and_instants_only(duckdb):
    duckdb.install("twitter")
    for call in (
        "time(1.5)",
        "time(1e18)",
        f"time('{ID}')",
        "time(18446744073709551615)",
        f"time({ID}::HUGEINT)",
        "min_id('2025-01-01')",
        "min_id(5)",
    ):
        with pytest.raises(Refused, match="does not support the supplied arguments"):
            duckdb.tried(f"SELECT frazil_{call}")
    types = duckdb.query("SELECT typeof(frazil_time(5)), typeof(frazil_worker(5)), typeof(frazil_base62(5)), typeof(frazil_min_id(now()))")
    assert types == [("TIMESTAMP WITH TIME ZONE", "BIGINT", "VARCHAR", "BIGINT")]
    for value, code in [("infinity", "LAYOUT_EXPIRED"), ("-infinity", "BEFORE_EPOCH")]:
        with pytest.raises(Refused, match=f"frazil: {code}: "):
            duckdb.tried(f"SELECT frazil_min_id(TIMESTAMPTZ '{value}')")


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kathmandu"])
def test_duckdb_zones_change_nothing(duckdb, zone):
    duckdb.install("twitter")
    duckdb.query(f"SET TimeZone = '{zone}'")
    assert duckdb.one("time", "id", ID) == "2022-06-28 16:07:40.105000"
    for text in ("2025-03-09 06:59:59.999", "2025-03-09 07:00:00", "2025-11-02 05:30:00", "2025-11-02 06:30:00"):
        instant = f"TIMESTAMPTZ '{text}+00'"
        assert duckdb.query(f"SELECT frazil_time(frazil_min_id({instant})) = {instant}") == [(True,)]
    duckdb.query("RESET TimeZone")


def test_duckdb_filters_and_indexes(duckdb):
    duckdb.install("twitter")
    duckdb.query(
        "CREATE OR REPLACE TABLE items AS SELECT frazil_min_id(TIMESTAMPTZ '2025-01-01 00:00+00' + to_minutes(n)) AS id FROM range(9999) t(n)"
    )
    first, end = (TWITTER.min_id((1_735_776_000 + minutes * 60) * 1_000_000) for minutes in (0, 5))
    within = "id >= frazil_min_id(TIMESTAMPTZ '2025-01-02 00:00+00') AND id < frazil_min_id(TIMESTAMPTZ '2025-01-02 00:05+00')"
    plan = duckdb.query(f"EXPLAIN SELECT * FROM items WHERE {within}")[0][1]
    # The filter has plain numbers, so DuckDB can skip row groups.
    assert f"id >= {first}" in plan.replace("\n", " ") and str(end) in plan
    assert duckdb.query(f"SELECT count(*) FROM items WHERE {within}") == [(5,)]
    duckdb.query("CREATE INDEX items_worker ON items (frazil_worker(id))")
    duckdb.query("CREATE OR REPLACE TABLE codes (digits VARCHAR COLLATE NOCASE)")
    duckdb.query("INSERT INTO codes VALUES ('AzL8n0Y58m7')")
    assert duckdb.query("SELECT frazil_from_base62(digits) FROM codes") == [(2**63 - 1,)]
    duckdb.query("UPDATE codes SET digits = 'azL8n0Y58m7'")
    with pytest.raises(Refused, match="frazil: ID_INVALID: "):
        duckdb.tried("SELECT frazil_from_base62(digits) FROM codes")


def test_duckdb_a_schema_and_a_prefix(duckdb):
    duckdb.query('CREATE SCHEMA IF NOT EXISTS "My-app"')
    for schema in ("My-app", "memory.My-app"):
        duckdb.install("time:41@1ms order:5 select:5 sequence:12 epoch:2025-01-01", "--schema", schema, "--prefix", "t_")
        assert duckdb.query('SELECT "My-app".t_order(4294967295), "My-app".t_select(4294967295)') == [(31, 31)]


def test_clickhouse_takes_integers_and_instants_only(clickhouse):
    clickhouse.install("twitter")
    for value in (f"toUInt64({ID})", f"toInt128({ID})", f"toUInt256({ID})", f"toNullable({ID})", f"toLowCardinality({ID})"):
        assert clickhouse.query(f"SELECT frazil_unix_ms({value})") == [["1656432460105"]], value
    for value in ("toUInt64(18446744073709551615)", "toUInt64(9223372036854775808)", "toUInt128('36893488147419103233')", "toInt8(-1)"):
        for function in ("unix_ms", "time", "worker", "base62"):
            with pytest.raises(Refused, match="frazil: ID_INVALID: "):
                clickhouse.tried(f"SELECT frazil_{function}({value})")
    for call in (
        "unix_ms(1.5)",
        "time(1e18)",
        f"worker('{ID}')",
        "base62(toDecimal64(5, 0))",
        "min_id('2025-01-01')",
        "min_id(5)",
        "min_id(today())",
    ):
        with pytest.raises(Refused, match="ILLEGAL_TYPE_OF_ARGUMENT|frazil: ID_INVALID"):
            clickhouse.tried(f"SELECT frazil_{call}")
    calls = "frazil_time(id), frazil_worker(id), frazil_unix_ms(id), frazil_base62(id), frazil_min_id(frazil_time(id))"
    types = clickhouse.query("SELECT " + ", ".join(f"toTypeName({call})" for call in calls.split(", ")) + " FROM (SELECT toInt64(5) AS id)")
    assert types == [["DateTime64(3, 'UTC')", "Int64", "Int64", "String", "Int64"]]
    # With this setting, the server computes every branch for every row.
    eager = "SETTINGS short_circuit_function_evaluation = 'disable'"
    answer = clickhouse.session.query(
        f"SELECT frazil_unix_ms(materialize({ID})), frazil_min_id(materialize(toDateTime(1656432460, 'UTC'))) {eager}", "CSV"
    )
    assert str(answer) == f"1656432460105,{TWITTER.min_id(1_656_432_460_000_000)}\n"
    zoned = clickhouse.query("SELECT frazil_min_id(toDateTime('2025-01-01 00:00:00', 'America/New_York'))")
    assert zoned == [[str(TWITTER.min_id(1_735_707_600_000_000))]]


def test_clickhouse_the_primary_key_serves_a_range_of_time(clickhouse):
    clickhouse.install("twitter")
    clickhouse.query(
        "CREATE OR REPLACE TABLE items (id Int64, created_at DateTime64(3, 'UTC') MATERIALIZED frazil_time(id)) "
        "ENGINE = MergeTree ORDER BY id PARTITION BY toYYYYMM(frazil_time(id)) SETTINGS index_granularity = 128"
    )
    clickhouse.query(
        "INSERT INTO items SELECT frazil_min_id(toDateTime64('2025-01-01 00:00:00', 3, 'UTC') + toIntervalMinute(number)) FROM numbers(9999)"
    )
    within = "id >= frazil_min_id(toDateTime64('2025-01-02 00:00:00', 3, 'UTC')) AND id < frazil_min_id(toDateTime64('2025-01-02 00:05:00', 3, 'UTC'))"
    assert clickhouse.query(f"SELECT count(), toString(min(created_at)) FROM items WHERE {within}") == [["5", "2025-01-02 00:00:00.000"]]
    plan = str(clickhouse.session.query(f"EXPLAIN indexes = 1 SELECT * FROM items WHERE {within}", "TSVRaw"))
    assert f"id in [{TWITTER.min_id(1_735_776_000_000_000)}, +Inf)" in plan and "Granules: 1/" in plan


def test_bigquery_a_dataset_and_a_prefix():
    script = frazil("sql", "bigquery", "twitter", "--schema", "my-project.My_set", "--prefix", "t_")
    assert "CREATE OR REPLACE FUNCTION `my-project`.`My_set`.`t_time`(id INT64)" in script
