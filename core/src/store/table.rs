//! Other systems' tables of ranges, in the SQL stores: a row for each tag, and in it how far its numbers are handed out.

use crate::error::Result;
use std::fmt;
use std::time::Duration;

/// The system that a table belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Table {
    Leaf,
    Tinyid,
}

impl Table {
    /// The names of the tables in a spec.
    pub(crate) const ALL: [(&'static str, Table); 2] = [("leaf", Table::Leaf), ("tinyid", Table::Tinyid)];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Table::Leaf => "leaf_alloc",
            Table::Tinyid => "tiny_id_info",
        }
    }

    /// The column with the tag.
    pub(crate) fn tag_column(self) -> &'static str {
        match self {
            Table::Leaf => "biz_tag",
            Table::Tinyid => "biz_type",
        }
    }

    /// Returns how many characters fit into that column.
    pub(crate) fn tag_width(self) -> usize {
        match self {
            Table::Leaf => 128,
            Table::Tinyid => 63,
        }
    }
}

/// The content of a tag's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) max_id: i64,
    pub(crate) step: i64,
    pub(crate) rest: Option<Rest>,
}

/// Tinyid's other columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    pub(crate) delta: i64,
    pub(crate) remainder: i64,
    pub(crate) id: i64,
    pub(crate) version: i64,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "max_id={} step={}", self.max_id, self.step)?;
        self.rest.map_or(Ok(()), |Rest { delta, remainder, .. }| write!(f, " delta={delta} remainder={remainder}"))
    }
}

/// A connection to a table. As with a [`Store`](super::Store) every call returns in time, and after an error the
/// connection is dropped; an error of `advance` means that the write may have happened.
pub(crate) trait Rows: Send {
    /// Sets the time limit of each later call.
    fn set_timeout(&mut self, timeout: Duration);

    /// # Errors
    /// `STORE_*`, naming the address.
    fn read(&mut self, tag: &str) -> Result<Option<Row>>;

    /// Moves `max_id`, if the row is still as it was read; says whether it was.
    ///
    /// # Errors
    /// `STORE_*`, naming the address: the outcome is not known.
    fn advance(&mut self, tag: &str, from: &Row, max_id: i64) -> Result<bool>;
}
