//! Leaf's and Tinyid's tables, read and updated as by their own servers, so that both can run at
//! the same time.
//!
//! A row is read, and then updated only if it has not changed in between. Tinyid uses the same
//! statement (didi/tinyid: TinyIdInfoDAOImpl.updateMaxId). Leaf adds to `max_id` in place, and
//! reads it in the same transaction (Meituan-Dianping/Leaf: IDAllocDaoImpl,
//! IDAllocMapper.updateMaxIdByCustomStep). Under the row's lock this is one step. A comparison and
//! a write in one statement are one step, too. So neither sees the other half done.

use super::link::{Link, Values};
use super::{Inspect, hex, look_again, mysql, postgresql, url};
use crate::table::{Rest, Row, Rows, Table};
use frazil_base::error::{Error, ErrorKind, Result};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Postgresql,
    Mysql,
}

impl Dialect {
    fn inspect(self) -> Inspect {
        match self {
            Dialect::Postgresql => postgresql::inspect,
            Dialect::Mysql => mysql::inspect,
        }
    }
}

struct SqlRows {
    link: Link,
    dialect: Dialect,
    table: Table,
    looked: Instant,
}

/// Connects, and checks whether the database keeps acknowledged writes and has the table.
///
/// # Errors
/// `STORE_*`, `SPEC`, naming the address.
pub(in super::super) fn connect(address: &str, table: Table, timeout: Duration) -> Result<Box<dyn Rows>> {
    let (dialect, login) = if address.starts_with("postgres") {
        (Dialect::Postgresql, url::postgresql(address)?)
    } else {
        (Dialect::Mysql, url::mysql(address)?)
    };
    let mut link = Link::connect(login.for_table(table.name()), timeout)?;
    let columns = dialect.inspect()(&mut link, table.name())?;
    if columns.is_none() {
        let why = format!("the store {link} shows the user no table {}; it is made by: {}", table.name(), creation(table, dialect));
        return Err(Error::new(ErrorKind::StoreUnsuitable, why));
    }
    Ok(Box::new(SqlRows { link, dialect, table, looked: Instant::now() }))
}

/// The statement from the other system's manual, without its comments. For PostgreSQL, an
/// equivalent one.
fn creation(table: Table, dialect: Dialect) -> &'static str {
    match (table, dialect) {
        (Table::Leaf, Dialect::Mysql) => {
            "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) NOT NULL DEFAULT '', max_id BIGINT(20) NOT NULL DEFAULT '1', \
             step INT(11) NOT NULL, description VARCHAR(256) DEFAULT NULL, \
             update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, \
             PRIMARY KEY (biz_tag)) ENGINE=InnoDB"
        }
        (Table::Leaf, Dialect::Postgresql) => {
            "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) NOT NULL DEFAULT '', max_id BIGINT NOT NULL DEFAULT 1, \
             step INTEGER NOT NULL, description VARCHAR(256) DEFAULT NULL, \
             update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag))"
        }
        (Table::Tinyid, Dialect::Mysql) => {
            "CREATE TABLE tiny_id_info (id BIGINT(20) UNSIGNED NOT NULL AUTO_INCREMENT, biz_type VARCHAR(63) NOT NULL DEFAULT '', \
             begin_id BIGINT(20) NOT NULL DEFAULT '0', max_id BIGINT(20) NOT NULL DEFAULT '0', step INT(11) DEFAULT '0', \
             delta INT(11) NOT NULL DEFAULT '1', remainder INT(11) NOT NULL DEFAULT '0', \
             create_time TIMESTAMP NOT NULL DEFAULT '2010-01-01 00:00:00', update_time TIMESTAMP NOT NULL DEFAULT '2010-01-01 00:00:00', \
             version BIGINT(20) NOT NULL DEFAULT '0', PRIMARY KEY (id), UNIQUE KEY uniq_biz_type (biz_type)) ENGINE=InnoDB"
        }
        (Table::Tinyid, Dialect::Postgresql) => {
            "CREATE TABLE tiny_id_info (id BIGSERIAL PRIMARY KEY, biz_type VARCHAR(63) NOT NULL DEFAULT '' UNIQUE, \
             begin_id BIGINT NOT NULL DEFAULT 0, max_id BIGINT NOT NULL DEFAULT 0, step INTEGER DEFAULT 0, \
             delta INTEGER NOT NULL DEFAULT 1, remainder INTEGER NOT NULL DEFAULT 0, \
             create_time TIMESTAMP NOT NULL DEFAULT '2010-01-01 00:00:00', update_time TIMESTAMP NOT NULL DEFAULT '2010-01-01 00:00:00', \
             version BIGINT NOT NULL DEFAULT 0)"
        }
    }
}

impl SqlRows {
    fn start(&mut self) -> Result<()> {
        self.link.start();
        look_again(&mut self.link, self.dialect.inspect(), self.table.name(), &mut self.looked)
    }

    /// A comparison with the tag, under the rules of the column.
    fn tag(&self, tag: &str) -> String {
        let tag = match self.dialect {
            Dialect::Postgresql => format!("convert_from(decode('{}', 'hex'), 'UTF8')", hex(tag)),
            // A literal has the column's character set and collation. A function's result would
            // not, and would use no index.
            Dialect::Mysql => format!("_utf8mb4 x'{}'", hex(tag)),
        };
        format!("{} = {tag}", self.table.tag_column())
    }

    fn row(&self, row: &Values) -> Result<Row> {
        let number = |column| self.link.number(row, column);
        let rest = match self.table {
            Table::Leaf => None,
            Table::Tinyid => Some(Rest { delta: number(2)?, remainder: number(3)?, id: number(4)?, version: number(5)? }),
        };
        Ok(Row { max_id: number(0)?, step: number(1)?, rest })
    }
}

impl Rows for SqlRows {
    fn set_timeout(&mut self, timeout: Duration) {
        self.link.set_timeout(timeout);
    }

    fn read(&mut self, tag: &str) -> Result<Option<Row>> {
        self.start()?;
        let columns = match self.table {
            Table::Leaf => &["max_id", "step"][..],
            Table::Tinyid => &["max_id", "step", "delta", "remainder", "id", "version"],
        };
        let (table, tag) = (self.table.name(), self.tag(tag));
        let text = match self.dialect {
            Dialect::Postgresql => format!("SELECT {}::text FROM {table} WHERE {tag}", columns.join("::text, ")),
            // This level ensures that each read sees the newest committed row, whatever the
            // server's defaults are.
            Dialect::Mysql => {
                format!("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT {} FROM {table} WHERE {tag}", columns.join(", "))
            }
        };
        match self.link.ask(&text)?.as_slice() {
            [] => Ok(None),
            [row] => self.row(row).map(Some),
            rows => {
                let why = format!("the store {} has {} rows in {table} where {tag}: delete all but one", self.link, rows.len());
                Err(Error::new(ErrorKind::StoreCorrupt, why))
            }
        }
    }

    fn advance(&mut self, tag: &str, from: &Row, max_id: i64) -> Result<bool> {
        self.start()?;
        let (table, tag) = (self.table.name(), self.tag(tag));
        let (timeout, lock_timeout) = (self.link.timeout(), self.link.lock_timeout());
        let (more, only) = match from.rest {
            None => (String::new(), String::new()),
            Some(Rest { id, version, .. }) => {
                (", version = version + 1, update_time = now()".to_owned(), format!(" AND id = {id} AND version = {version}"))
            }
        };
        let update = format!("UPDATE {table} SET max_id = {max_id}{more} WHERE {tag} AND max_id = {}{only}", from.max_id);
        let writable = mysql::WRITABLE;
        let text = match self.dialect {
            Dialect::Postgresql => {
                let (ms, lock_ms) = (timeout.as_millis().max(1), lock_timeout.as_millis().max(1));
                format!(
                    "BEGIN ISOLATION LEVEL READ COMMITTED; \
                     SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = {lock_ms}; SET LOCAL statement_timeout = {ms}; \
                     WITH done AS ({update} RETURNING 1) SELECT count(*)::text FROM done; COMMIT"
                )
            }
            // A demoted primary still accepts writes of privileged users, so the setting is
            // compared. It is in a variable, which a statement-based log records.
            Dialect::Mysql => {
                let seconds = lock_timeout.as_secs().max(1);
                format!(
                    "SET SESSION innodb_lock_wait_timeout = {seconds}, SESSION lock_wait_timeout = {seconds}; \
                     SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION; SET @frazil_writable = {writable}; \
                     {update} AND @frazil_writable; SELECT ROW_COUNT(), @frazil_writable; COMMIT"
                )
            }
        };
        let rows = self.link.ask(&text)?;
        let row = rows.last().map(Vec::as_slice).unwrap_or_default();
        if self.dialect == Dialect::Mysql && self.link.number(row, 1)? != 1 {
            return Err(self.link.readonly());
        }
        Ok(self.link.number(row, 0)? == 1)
    }
}

#[cfg(test)]
mod tests;
