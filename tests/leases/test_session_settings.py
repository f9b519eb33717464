"""Administrators' settings for all sessions, a user or a database. Grouped renewals keep their leases, and no ID repeats."""

import logging
import os
import time

import frazil
import pytest
import servers

# These leases are renewed together.
LEASES = 3
SPEC = "layout='time:41@1ms node:10 sequence:12 epoch:2025-01-01' window=10s renew=1s detached=true"
ROUNDS = int(os.environ.get("FRAZIL_SESSION_ROUNDS", "20"))

# Settings that forbid every write, such as default_transaction_read_only, are left out: a start refuses them.
MARIADB = {
    "sql_mode": [
        "'EMPTY_STRING_IS_NULL'",
        "'ORACLE'",
        "'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES'",
        "'PAD_CHAR_TO_FULL_LENGTH,NO_UNSIGNED_SUBTRACTION,HIGH_NOT_PRECEDENCE'",
        "'TRADITIONAL,ONLY_FULL_GROUP_BY'",
        "''",
    ],
    "autocommit": ["0"],
    "completion_type": ["'CHAIN'", "'RELEASE'"],
    "tx_isolation": ["'READ-UNCOMMITTED'", "'SERIALIZABLE'"],
    "time_zone": ["'+13:00'"],
    "sql_select_limit": ["0", "1"],
    "sql_big_selects": ["0"],
    "max_join_size": ["1"],
    "sql_safe_updates": ["1"],
    "group_concat_max_len": ["4"],
    "foreign_key_checks": ["0"],
    "unique_checks": ["0"],
    "character_set_server": ["'utf16'"],
    "collation_connection": ["'utf8mb4_bin'"],
    "max_sort_length": ["64"],
}
POSTGRESQL = {
    "default_transaction_isolation": ["'serializable'", "'repeatable read'"],
    "default_transaction_deferrable": ["on"],
    "synchronous_commit": ["off"],
    "standard_conforming_strings": ["off"],
    "backslash_quote": ["off"],
    "bytea_output": ["escape"],
    "lock_timeout": ["'1ms'"],
    "statement_timeout": ["'10s'"],
    "row_security": ["off"],
    "transform_null_equals": ["on"],
    "DateStyle": ["'German, DMY'"],
    "IntervalStyle": ["'sql_standard'"],
    "TimeZone": ["'Asia/Tokyo'"],
    "extra_float_digits": ["-15"],
    "client_encoding": ["'LATIN1'"],
    "enable_indexscan": ["off"],
    "search_path": ["public, pg_catalog"],
    "quote_all_identifiers": ["on"],
}


def mint(url, name):
    """Mints with leases that are renewed together, through several renewals. Returns the number of IDs."""
    events, issued = [], set()
    handler = logging.Handler()
    handler.emit = lambda record: events.append((record.event, record.getMessage()))
    logging.getLogger("frazil").addHandler(handler)
    ids = [frazil.Snowflake(f"{SPEC} store={url} namespace={name}") for _ in range(LEASES)]
    try:
        nodes, count = [one.node for one in ids], 0
        renewals = [one.stats().lease_renewals for one in ids]
        for _ in range(ROUNDS):
            for one in ids:
                batch = one.batch(1000)
                issued.update(batch)
                count += len(batch)
            time.sleep(0.05)
        end = time.monotonic() + 60
        while any(one.stats().lease_renewals < before + 2 for one, before in zip(ids, renewals, strict=True)) and time.monotonic() < end:
            time.sleep(0.02)
        # A slow call on a busy machine is not a loss.
        slow = ("no answer within", "late:")
        bad = [
            text
            for event, text in events
            if event.startswith(("lease.lost", "store.")) or (event == "lease.failing" and not any(part in text for part in slow))
        ]
        assert not bad, bad
        assert [one.node for one in ids] == nodes
        assert all(one.stats().lease_renewals >= before + 2 for one, before in zip(ids, renewals, strict=True))
        assert len(issued) == count
    finally:
        logging.getLogger("frazil").removeHandler(handler)
        for one in ids:
            one.close()
    return count


def rounds(settings):
    """Returns combinations of all settings, so that each value of each setting occurs."""
    return [
        [(key, values[n % len(values)]) for key, values in settings.items()]
        for n in range(max(len(values) for values in settings.values()))
    ]


@pytest.fixture(scope="module")
def mariadb():
    with servers.start("mariadb") as server:
        yield server


@pytest.fixture(scope="module")
def postgresql():
    with servers.start("postgresql") as server:
        yield server


def as_root(server, text):
    return server.run(["mariadb", "--no-defaults", "--user=root", f"--socket={server.folder / 'socket'}", f"--execute={text}"])


@pytest.mark.parametrize("settings", rounds(MARIADB))
def test_global_settings_of_mariadb(mariadb, settings):
    as_root(mariadb, "SET " + ", ".join(f"@@global.{key} = {value}" for key, value in settings))
    try:
        mint(mariadb.url, f"all{rounds(MARIADB).index(settings)}")
    finally:
        as_root(mariadb, "SET " + ", ".join(f"@@global.{key} = DEFAULT" for key, _ in settings))


def test_grouped_renewals_where_empty_texts_are_null(mariadb):
    """FRAZIL_SESSION_ROUNDS=3400 mints ten million IDs."""
    as_root(mariadb, "SET @@global.sql_mode = 'EMPTY_STRING_IS_NULL'")
    try:
        print(mint(mariadb.url, "empty"), "IDs, 0 repeated, 0 leases lost")
    finally:
        as_root(mariadb, "SET @@global.sql_mode = DEFAULT")


def test_a_clock_that_a_session_has_stopped(mariadb):
    as_root(mariadb, "SET @@global.init_connect = 'SET timestamp = UNIX_TIMESTAMP() - 60'")
    try:
        mint(mariadb.url, "stopped")
    finally:
        as_root(mariadb, "SET @@global.init_connect = DEFAULT")


@pytest.mark.parametrize("of", ["ROLE frazil", "DATABASE frazil"])
@pytest.mark.parametrize("settings", rounds(POSTGRESQL))
def test_settings_of_a_user_or_a_database_of_postgresql(postgresql, of, settings):
    for key, value in settings:
        postgresql.sql(f"ALTER {of} SET {key} = {value}")
    try:
        mint(postgresql.url, f"{of[:4].lower()}{rounds(POSTGRESQL).index(settings)}")
    finally:
        postgresql.sql(f"ALTER {of} RESET ALL")
