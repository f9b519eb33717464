//! The results of reading a source: its size, its broken lines, and its order.

use super::order::Order;
use frazil::admin::foreign::Reason as Broken;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The number of broken lines that are shown for each source.
const SHOWN: usize = 20;

/// The position at which reading continues: byte and line, and for CSV the row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SourcePosition {
    pub(super) byte: u64,
    pub(super) line: u64,
    pub(super) row: u64,
}

/// A line that is not an ID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BrokenLine {
    pub(super) line: u64,
    pub(super) why: Broken,
    /// The line, escaped and shortened.
    pub(super) text: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reading {
    pub(super) ids: u64,
    /// IDs above 2^53 written as floats, and those among them that are not doubles.
    #[serde(default)]
    pub(super) floats: u64,
    #[serde(default)]
    pub(super) exact_floats: u64,
    pub(super) order: Order,
    pub(super) broken: BTreeMap<Broken, u64>,
    pub(super) examples: Vec<BrokenLine>,
}

impl Reading {
    #[cold]
    pub(super) fn broken(&mut self, line: u64, why: Broken, text: String) {
        *self.broken.entry(why).or_default() += 1;
        if self.examples.len() < SHOWN {
            self.examples.push(BrokenLine { line, why, text });
        }
    }

    pub(super) fn broken_lines(&self) -> u64 {
        self.broken.values().sum()
    }
}
