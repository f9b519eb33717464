//! The texts for PostgreSQL.
//!
//! Transactions are READ COMMITTED: every statement sees all commits before its beginning. The
//! comparing statement begins after the locks are held. So it sees the newest records, and no other
//! session can change them before the commit. Settings are LOCAL to the transaction, so a pooler
//! may give the session to another client afterwards (PgBouncer's transaction mode).
//!
//! The server is identified by the cluster's system identifier, its timeline, and the OIDs of the
//! database and of the table. The timeline changes when a replica is promoted, or a backup is
//! restored to a point in time. The OIDs change when a dump is restored. If the user may not read
//! the first two, they are left out, and such changes are not noticed. All programs must connect
//! with the same rights, because otherwise they see different identities.
//!
//! `fsync=off` is refused. `full_page_writes=off` is allowed, because copy-on-write file systems,
//! and services with their own storage, use it and never tear a page. A file system snapshot, or a
//! base backup that is started without a recovery target, changes none of these.

use super::link::Link;
use super::{META, Texts, hex, rows, slot};
use crate::{Swap, Which};
use frazil_base::error::{Error, ErrorKind, Result};
use std::time::Duration;

/// The table, for an administrator to make if frazil's user may not create tables. It goes into the
/// search path's first schema.
pub(super) const TABLE: &str = "CREATE TABLE IF NOT EXISTS frazil (namespace TEXT COLLATE \"C\" NOT NULL, slot BIGINT NOT NULL, \
     record TEXT COLLATE \"C\", PRIMARY KEY (namespace, slot))";

/// The server's identity in SQL, the most precise first.
const SERVERS: [&str; 4] = [
    "concat_ws('-', (SELECT system_identifier FROM pg_control_system()), substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8), OIDS)",
    "concat_ws('-', (SELECT system_identifier FROM pg_control_system()), OIDS)",
    "concat_ws('-', substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8), OIDS)",
    "concat_ws('-', OIDS)",
];
const OIDS: &str = "(SELECT oid FROM pg_database WHERE datname = current_database()), to_regclass('frazil')::oid";

const CLOCK: &str = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

pub(super) struct Postgresql {
    /// The identity's expression.
    server: String,
}

/// Checks the server, and makes the table if it does not exist.
///
/// # Errors
/// `STORE_*`
pub(super) fn prepare(link: &mut Link) -> Result<Postgresql> {
    let mut columns = inspect(link, "frazil")?;
    if columns.is_none() {
        // While another session makes the table, the server refuses it with one of several codes.
        let created = create(link);
        columns = match inspect(link, "frazil") {
            Ok(Some(columns)) => Some(columns),
            absent => created.and(absent)?,
        };
    }
    if let Some(columns) = columns.filter(|columns| columns != "namespace text, record text, slot bigint") {
        return Err(link.unsuitable(&format!("its table frazil has the columns {columns}, and was not made by: {TABLE}")));
    }
    for server in SERVERS {
        let server = server.replace("OIDS", OIDS);
        match link.try_ask(&format!("SELECT {server}")) {
            Ok(_) => return Ok(Postgresql { server }),
            // The expression is not allowed, not known, or not supported.
            Err(refusal) if matches!(refusal.code.as_str(), "42501" | "42883" | "0A000") => {}
            Err(refusal) => return Err(link.error(&refusal)),
        }
    }
    Err(link.unsuitable("its catalogue pg_database cannot be read"))
}

/// Checks the server, and whether a table has frazil's columns, if it exists. With
/// `quote_all_identifiers` the names of types are in quotes.
pub(super) fn inspect(link: &mut Link, table: &str) -> Result<Option<String>> {
    let rows = link.ask(&format!(
        "SELECT pg_is_in_recovery()::text, current_setting('transaction_read_only'), current_setting('fsync'), \
         t.relkind::text || t.relpersistence::text, \
         (SELECT string_agg(attname || ' ' || replace(atttypid::regtype::text, '\"', ''), ', ' ORDER BY attname) FROM pg_attribute \
          WHERE attrelid = t.oid AND attname IN ('namespace', 'slot', 'record') AND NOT attisdropped), version() \
         FROM (SELECT to_regclass('{table}') AS oid) AS name LEFT JOIN pg_class AS t ON t.oid = name.oid"
    ))?;
    let row = rows.first().map(Vec::as_slice).unwrap_or_default();
    let version = link.text(row, 5)?;
    if !version.starts_with("PostgreSQL ") || version.contains("-YB-") {
        return Err(link.unsuitable(&format!("it is {version}, and its transactions are not PostgreSQL's")));
    }
    if link.text(row, 0)? == "true" || link.text(row, 1)? == "on" {
        return Err(link.readonly());
    }
    if link.text(row, 2)? == "off" {
        return Err(link.unsuitable(
            "fsync=off loses acknowledged writes when the machine crashes; set fsync=on (a service with durable \
             storage that shows fsync=off cannot be distinguished from one that loses them: use another store)",
        ));
    }
    let Some(Some(kind)) = row.get(3) else { return Ok(None) };
    if kind != "rp" {
        let why = format!("its table {table} is not an ordinary, logged table (UNLOGGED ones are emptied after a crash)");
        return Err(link.unsuitable(&why));
    }
    Ok(Some(row.get(4).cloned().flatten().unwrap_or_default()))
}

fn create(link: &mut Link) -> Result<()> {
    match link.try_ask(TABLE) {
        Ok(_) => Ok(()),
        Err(refusal) if matches!(refusal.code.as_str(), "42501" | "3F000") => {
            let why = format!(
                "the store {link} has no table frazil, and the user may not create it ({}): let an administrator run {TABLE}; \
                 and GRANT SELECT, INSERT, UPDATE ON frazil TO the user",
                refusal.code
            );
            Err(Error::new(ErrorKind::StoreAuth, why))
        }
        Err(refusal) => Err(link.error(&refusal)),
    }
}

impl Texts for Postgresql {
    fn load(&self, namespace: &str, which: &Which, number: usize) -> String {
        let (server, rows) = (&self.server, rows(&text(namespace), which));
        format!(
            "SELECT now.ms::text, now.server, slot::text, record, '{number}' FROM (SELECT {CLOCK} AS ms, {server} AS server) AS now \
             LEFT JOIN ({rows}) AS found ON TRUE ORDER BY found.slot"
        )
    }

    fn swap(&self, namespace: &str, swap: &Swap, timeout: Duration, lock_timeout: Duration) -> String {
        let Swap { earliest_ms, latest_ms, .. } = swap;
        let (namespace, slot) = (text(namespace), slot(swap.key));
        let (ms, lock_ms) = (timeout.as_millis().max(1), lock_timeout.as_millis().max(1));
        let (meta, old) = (optional(swap.meta.as_deref()), optional(swap.old.as_deref()));
        let (expected, server, new) = (text(&swap.server), &self.server, text(&swap.new));
        let old = if slot == META { &meta } else { &old };
        // An UPDATE of the record needs the lock FOR NO KEY UPDATE. FOR SHARE excludes it, and FOR
        // KEY SHARE would not.
        let lock_meta = if slot == META { "FOR UPDATE" } else { "FOR SHARE" };
        let lock = |slot: i64, how: &str| {
            format!(
                "INSERT INTO frazil (namespace, slot) VALUES ({namespace}, {slot}) ON CONFLICT (namespace, slot) DO NOTHING; \
                 SELECT 1 FROM frazil WHERE namespace = {namespace} AND slot = {slot} {how};"
            )
        };
        let locks = if slot == META { lock(META, lock_meta) } else { lock(META, lock_meta) + &lock(slot, "FOR UPDATE") };
        format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; \
             SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = {lock_ms}; SET LOCAL statement_timeout = {ms}; \
             {locks} \
             WITH now AS (SELECT {CLOCK} AS ms), same AS (SELECT {server} = {expected} \
              AND EXISTS (SELECT FROM frazil WHERE namespace = {namespace} AND slot = {META} AND record IS NOT DISTINCT FROM {meta}) \
              AND EXISTS (SELECT FROM frazil WHERE namespace = {namespace} AND slot = {slot} AND record IS NOT DISTINCT FROM {old}) AS yes), \
             done AS (UPDATE frazil SET record = {new} FROM now, same WHERE namespace = {namespace} AND slot = {slot} \
              AND same.yes AND now.ms >= {earliest_ms} AND now.ms < {latest_ms} RETURNING 1) \
             SELECT CASE WHEN EXISTS (SELECT FROM done) THEN 'done' WHEN same.yes THEN 'late' ELSE 'differs' END, now.ms::text \
             FROM now, same; \
             COMMIT"
        )
    }

    /// Takes the locks in the order of the primary key, then reads the clock, and then makes one
    /// UPDATE. A locking read sees the newest record of a row. The UPDATE replaces that record,
    /// because no other session can change it in between.
    fn swap_many(&self, swaps: &[(&str, &Swap)], timeout: Duration, lock_timeout: Duration) -> String {
        let server = &self.server;
        let (ms, lock_ms) = (timeout.as_millis().max(1), lock_timeout.as_millis().max(1));
        let row = |(n, (namespace, swap)): (usize, &(&str, &Swap))| {
            let Swap { earliest_ms, latest_ms, .. } = swap;
            let (namespace, slot, expected) = (text(namespace), slot(swap.key), text(&swap.server));
            let (meta, old, new) = (optional(swap.meta.as_deref()), optional(swap.old.as_deref()), text(&swap.new));
            format!("({n}, {namespace}, {slot}::bigint, {expected}, {meta}, {old}, {new}, '{earliest_ms}'::bigint, '{latest_ms}'::bigint)")
        };
        let rows: Vec<_> = swaps.iter().enumerate().map(row).collect();
        let asked = format!("asked (n, namespace, slot, expected, meta, old, new, earliest, latest) AS (VALUES {})", rows.join(", "));
        format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; \
             SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = {lock_ms}; SET LOCAL statement_timeout = {ms}; \
             WITH {asked}, \
             metas AS MATERIALIZED (SELECT namespace, record FROM frazil WHERE slot = {META} AND namespace IN (SELECT namespace FROM asked) \
              ORDER BY namespace FOR SHARE SKIP LOCKED), \
             slots AS MATERIALIZED (SELECT f.namespace, f.slot, f.record FROM frazil AS f, (SELECT count(*) FROM metas) AS locked \
              WHERE (f.namespace, f.slot) IN (SELECT namespace, slot FROM asked) ORDER BY f.namespace, f.slot FOR UPDATE OF f SKIP LOCKED), \
             now AS MATERIALIZED (SELECT {CLOCK} AS ms, {server} AS server FROM (SELECT count(*) FROM slots) AS locked), \
             judged AS MATERIALIZED (SELECT asked.*, metas.namespace IS NOT NULL AND slots.slot IS NOT NULL AS locked, now.ms, \
              now.server = asked.expected AND metas.record IS NOT DISTINCT FROM asked.meta AND slots.record IS NOT DISTINCT FROM asked.old AS same \
              FROM now, asked LEFT JOIN metas USING (namespace) LEFT JOIN slots USING (namespace, slot)), \
             done AS (UPDATE frazil SET record = judged.new FROM judged WHERE frazil.namespace = judged.namespace \
              AND frazil.slot = judged.slot AND judged.locked AND judged.same AND judged.ms >= judged.earliest AND judged.ms < judged.latest \
              RETURNING judged.n) \
             SELECT n::text, CASE WHEN n IN (SELECT n FROM done) THEN 'done' WHEN NOT locked THEN 'skipped' WHEN same THEN 'late' ELSE 'differs' \
             END, ms::text FROM judged; \
             COMMIT"
        )
    }
}

fn text(text: &str) -> String {
    format!("convert_from(decode('{}', 'hex'), 'UTF8')", hex(text))
}

fn optional(record: Option<&str>) -> String {
    record.map_or_else(|| "NULL".to_owned(), text)
}
