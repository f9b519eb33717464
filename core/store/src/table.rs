//! Other systems' tables of ranges, in the SQL stores. Each tag has a row with the last number that
//! was handed out.

use frazil_base::error::Result;
use std::fmt;
use std::time::Duration;

/// The system that a table belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    Leaf,
    Tinyid,
}

impl Table {
    /// The names of the tables in a spec.
    pub const ALL: [(&'static str, Table); 2] = [("leaf", Table::Leaf), ("tinyid", Table::Tinyid)];

    pub fn name(self) -> &'static str {
        match self {
            Table::Leaf => "leaf_alloc",
            Table::Tinyid => "tiny_id_info",
        }
    }

    /// The column with the tag.
    pub fn tag_column(self) -> &'static str {
        match self {
            Table::Leaf => "biz_tag",
            Table::Tinyid => "biz_type",
        }
    }

    /// Returns the width of the tag's column, in characters.
    pub fn tag_width(self) -> usize {
        match self {
            Table::Leaf => 128,
            Table::Tinyid => 63,
        }
    }
}

/// The content of a tag's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub max_id: i64,
    pub step: i64,
    pub rest: Option<Rest>,
}

/// Tinyid's additional columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    pub delta: i64,
    pub remainder: i64,
    pub id: i64,
    pub version: i64,
}

impl Rest {
    /// Returns whether two residue classes have common numbers.
    pub fn meets(&self, other: &Rest) -> bool {
        let (mut a, mut b) = (self.delta, other.delta);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        // An impossible row is refused in another check.
        a > 0 && (self.remainder - other.remainder) % a == 0
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "max_id={} step={}", self.max_id, self.step)?;
        self.rest.map_or(Ok(()), |Rest { delta, remainder, .. }| write!(f, " delta={delta} remainder={remainder}"))
    }
}

/// A connection to a table. As with a [`Store`](super::Store), every call returns in time, and
/// after an error the connection is dropped. An error of `advance` means that the write may have
/// happened.
pub trait Rows: Send {
    /// Sets the time limit of each later call.
    fn set_timeout(&mut self, timeout: Duration);

    /// # Errors
    /// `STORE_*`, naming the address.
    fn read(&mut self, tag: &str) -> Result<Option<Row>>;

    /// Moves `max_id`, if the row is unchanged since it was read. Returns whether it was.
    ///
    /// # Errors
    /// `STORE_*`, naming the address. The outcome is then unknown.
    fn advance(&mut self, tag: &str, from: &Row, max_id: i64) -> Result<bool>;
}
