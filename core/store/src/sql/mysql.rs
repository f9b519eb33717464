//! The texts for MariaDB and MySQL.
//!
//! Transactions are REPEATABLE READ, which every format of the binary log accepts. The first plain SELECT, which is the
//! comparison, makes the snapshot. It begins after the locks are held, so it sees the newest records, and no other session can
//! change them before the commit. The INSERTs take the locks. An INSERT of an existing row locks it: IGNORE shared, ON DUPLICATE
//! KEY UPDATE exclusively.
//!
//! Each text begins with these settings ([`link`](super::link) adds them), because proxies share sessions:
//!
//! | setting | because |
//! |---|---|
//! | `sql_mode` | `EMPTY_STRING_IS_NULL` makes the answers of a group NULL; `ORACLE` has another syntax |
//! | `autocommit` | without it, a server would keep showing the first load's snapshot |
//! | `completion_type` | with CHAIN, a commit begins the next transaction, in which settings cannot be changed |
//! | `sql_select_limit` | in a load that is cut off, records seem to be gone |
//! | `sql_big_selects`, `sql_safe_updates` | frazil's statements could be refused |
//! | `group_concat_max_len` | the list of the table's columns could be cut off |
//! | `timestamp` | a fixed value would stop the session's clock, by which leases end |
//!
//! The server is identified by `@@server_uuid` (MySQL) or `@@server_uid` (newer MariaDB: the machine's network card and the port),
//! or else by server_id, host name and port. This shows a promoted replica. It does not show a backup or a dump that was restored
//! on the same server.
//!
//! A server is refused if its settings allow it to forget acknowledged writes in a crash of its machine:
//! `innodb_flush_log_at_trx_commit` other than 1 or 3, or `sync_binlog` other than 1 if the binary log is on (after a crash, the
//! log decides what was committed).

use super::link::{Link, Values};
use super::{META, Texts, hex, rows, slot};
use crate::{Swap, Which};
use frazil_base::error::{Error, ErrorKind, Result};
use std::collections::BTreeSet;
use std::time::Duration;

/// The table, for an administrator to make if frazil's user may not create tables. Its columns are
/// binary, because comparisons of other columns ignore trailing spaces, and often case.
pub(super) const TABLE: &str = "CREATE TABLE IF NOT EXISTS frazil (namespace VARBINARY(64) NOT NULL, slot BIGINT NOT NULL, \
     record VARBINARY(4096) NULL, PRIMARY KEY (namespace, slot)) ENGINE = InnoDB";

/// The server's identity in SQL, the most precise first.
const SERVERS: [&str; 3] = ["@@global.server_uuid", "@@global.server_uid", "CONCAT_WS('-', @@server_id, @@hostname, @@port)"];

/// The statement's time in UTC, in every time zone of a session.
const CLOCK: &str = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)";

/// The setting is 0 or 1, or a word in newer servers.
pub(super) const WRITABLE: &str = "(CONCAT(@@global.read_only) IN ('0', 'OFF'))";

pub(super) struct Mysql {
    /// The identity's expression.
    pub(super) server: &'static str,
}

/// Checks the server, and makes the table if it does not exist.
///
/// # Errors
/// `STORE_*`
pub(super) fn prepare(link: &mut Link) -> Result<Mysql> {
    let mut columns = inspect(link, "frazil")?;
    if columns.is_none() {
        // While another session makes the table, the server refuses it with one of several codes.
        let created = create(link);
        columns = match inspect(link, "frazil") {
            Ok(Some(columns)) => Some(columns),
            absent => created.and(absent)?,
        };
    }
    if let Some(columns) = columns.filter(|columns| columns != "namespace varbinary PRI, record varbinary , slot bigint PRI") {
        return Err(link.unsuitable(&format!("its table frazil has the columns {columns}, and was not made by: {TABLE}")));
    }
    for server in SERVERS {
        match link.try_ask(&format!("SELECT {server}")) {
            Ok(_) => return Ok(Mysql { server }),
            // The server has no such variable.
            Err(refusal) if refusal.code == "1193" => {}
            Err(refusal) => return Err(link.error(&refusal)),
        }
    }
    Err(link.unsuitable("it has no @@server_id"))
}

/// Checks the server, and the columns of a table if it exists.
pub(super) fn inspect(link: &mut Link, table: &str) -> Result<Option<String>> {
    let rows = link.ask(&format!(
        "SELECT {WRITABLE}, @@global.innodb_flush_log_at_trx_commit, @@global.log_bin, @@global.sync_binlog, \
         (SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '{table}'), \
         (SELECT GROUP_CONCAT(COLUMN_NAME, ' ', DATA_TYPE, ' ', COLUMN_KEY ORDER BY COLUMN_NAME SEPARATOR ', ') \
          FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '{table}'), VERSION()"
    ))?;
    let row = rows.first().map(Vec::as_slice).unwrap_or_default();
    let version = link.text(row, 6)?;
    if version.contains("TiDB") {
        return Err(link.unsuitable(&format!("it is {version}, whose snapshots are older than its locks")));
    }
    if link.number(row, 0)? != 1 {
        return Err(link.readonly());
    }
    let flush = link.number(row, 1)?;
    if flush != 1 && flush != 3 {
        let why = format!("innodb_flush_log_at_trx_commit={flush} loses acknowledged writes in a crash; set it to 1");
        return Err(link.unsuitable(&why));
    }
    let sync = link.number(row, 3)?;
    if link.number(row, 2)? != 0 && sync != 1 {
        let why = format!("sync_binlog={sync} with the binary log on loses acknowledged writes when the machine crashes; set it to 1");
        return Err(link.unsuitable(&why));
    }
    let Some(Some(engine)) = row.get(4) else { return Ok(None) };
    if engine != "InnoDB" {
        return Err(link.unsuitable(&format!("its table {table} has the engine {engine}, which has no transactions: make it InnoDB")));
    }
    Ok(Some(row.get(5).cloned().flatten().unwrap_or_default()))
}

fn create(link: &mut Link) -> Result<()> {
    match link.try_ask(TABLE) {
        Ok(_) => Ok(()),
        Err(refusal) if matches!(refusal.code.as_str(), "1142" | "1044") => {
            let why = format!(
                "the store {link} shows the user no table frazil, and the user may not create it ({}): let an administrator run {TABLE}; \
                 and GRANT SELECT, INSERT, UPDATE ON frazil TO the user",
                refusal.code
            );
            Err(Error::new(ErrorKind::StoreAuth, why))
        }
        Err(refusal) => Err(link.error(&refusal)),
    }
}

impl Texts for Mysql {
    fn load(&self, namespace: &str, which: &Which, number: usize) -> String {
        let (server, rows) = (self.server, rows(&text(namespace), which));
        format!(
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; \
             SELECT now.ms, now.server, slot, record, '{number}' FROM (SELECT {CLOCK} AS ms, {server} AS server) AS now \
             LEFT JOIN ({rows}) AS found ON TRUE ORDER BY found.slot"
        )
    }

    fn swap(&self, namespace: &str, swap: &Swap, _timeout: Duration, lock_timeout: Duration) -> String {
        let (name, slot) = (text(namespace), slot(swap.key));
        let locks = if slot == META { exclusive(&name, slot) } else { shared(&name) + &exclusive(&name, slot) };
        transaction(&format!("{locks} {} SELECT @frazil_says, @frazil_ms", self.compare(namespace, swap)), lock_timeout)
    }

    /// Takes the locks of all swaps, in one order, and then makes each swap as if it were alone.
    /// The first comparison makes the snapshot. The outcomes are sent in one row, after the commit,
    /// because a stalled client must not delay the commit or other sessions.
    fn swap_many(&self, swaps: &[(&str, &Swap)], _timeout: Duration, lock_timeout: Duration) -> String {
        let metas: BTreeSet<_> = swaps.iter().map(|(namespace, _)| text(namespace)).collect();
        let slots: BTreeSet<_> = swaps.iter().map(|(namespace, swap)| (text(namespace), slot(swap.key))).collect();
        let metas = metas.iter().map(|name| shared(name));
        let locks: String = metas.chain(slots.iter().map(|(name, slot)| exclusive(name, *slot))).collect();
        let swap = |(n, (namespace, swap)): (usize, &(&str, &Swap))| {
            let compare = self.compare(namespace, swap);
            format!("{compare} SET @frazil_all = CONCAT(@frazil_all, '{n} ', @frazil_says, ' ', @frazil_ms, ',')")
        };
        let swaps: Vec<_> = swaps.iter().enumerate().map(swap).collect();
        let work = transaction(&format!("{locks} SET @frazil_all = ''; {}", swaps.join("; ")), lock_timeout);
        format!("{work}; SELECT @frazil_all")
    }

    fn rows(&self, rows: Vec<Values>) -> Vec<Values> {
        let all = rows.into_iter().next_back().and_then(|row| row.into_iter().next()?).unwrap_or_default();
        let row = |one: &str| one.split(' ').map(|word| Some(word.to_owned())).collect();
        all.split_terminator(',').map(row).collect()
    }
}

fn transaction(work: &str, lock_timeout: Duration) -> String {
    // The limit is in seconds, at least one.
    let seconds = lock_timeout.as_secs().max(1);
    format!(
        "SET SESSION innodb_lock_wait_timeout = {seconds}, SESSION lock_wait_timeout = {seconds}; \
         SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION; {work}; COMMIT"
    )
}

fn exclusive(namespace: &str, slot: i64) -> String {
    format!("INSERT INTO frazil (namespace, slot) VALUES ({namespace}, {slot}) ON DUPLICATE KEY UPDATE slot = frazil.slot;")
}

fn shared(namespace: &str) -> String {
    format!("INSERT IGNORE INTO frazil (namespace, slot) VALUES ({namespace}, {META});")
}

impl Mysql {
    /// Compares the locked records, and writes.
    fn compare(&self, namespace: &str, swap: &Swap) -> String {
        let Swap { earliest_ms, latest_ms, .. } = swap;
        let (namespace, slot, server) = (text(namespace), slot(swap.key), self.server);
        let (meta, old) = (optional(swap.meta.as_deref()), optional(swap.old.as_deref()));
        let (expected, new) = (text(&swap.server), text(&swap.new));
        let old = if slot == META { &meta } else { &old };
        format!(
            "SELECT {CLOCK}, CAST({server} AS BINARY) = {expected} \
              AND EXISTS (SELECT 1 FROM frazil WHERE namespace = {namespace} AND slot = {META} AND record <=> {meta}) \
              AND EXISTS (SELECT 1 FROM frazil WHERE namespace = {namespace} AND slot = {slot} AND record <=> {old}) \
              INTO @frazil_ms, @frazil_same; \
             SET @frazil_says = CASE WHEN {WRITABLE} IS NOT TRUE THEN 'readonly' WHEN @frazil_same IS NOT TRUE THEN 'differs' \
              WHEN @frazil_ms >= {earliest_ms} AND @frazil_ms < {latest_ms} THEN 'done' ELSE 'late' END; \
             UPDATE frazil SET record = {new} WHERE namespace = {namespace} AND slot = {slot} AND @frazil_says = 'done';"
        )
    }
}

fn text(text: &str) -> String {
    format!("x'{}'", hex(text))
}

fn optional(record: Option<&str>) -> String {
    record.map_or_else(|| "NULL".to_owned(), text)
}
