//! The results of reading a source: its size, its broken lines, and its order.

use super::order::Order;
use frazil::admin::foreign::Reason as Broken;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// So many broken lines of a source are shown.
const SHOWN: usize = 20;

/// The position at which reading continues. A file of text has a byte and a line, CSV a row as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) byte: u64,
    pub(super) line: u64,
    pub(super) row: u64,
}

/// A line that is no ID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BrokenLine {
    pub(super) line: u64,
    pub(super) why: Broken,
    /// Escaped, and cut.
    pub(super) text: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reading {
    pub(super) ids: u64,
    /// IDs above 2^53 that are written as a float is, and those among them that no double holds.
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
