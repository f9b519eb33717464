//! An ID with its source and line in sixteen bytes, in memory and on disk, and examples of IDs for the report.

use std::cmp::Ordering;

/// Ordered by ID, then by source, then by line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct IdRecord {
    pub(super) id: u64,
    /// The source's index in the upper bits, the line's number in the lower ones.
    place: u64,
}

/// The bits of a line's number; the index of the source has the other 16.
const LINE_BITS: u32 = 48;

pub(super) const MOST_SOURCES: usize = 1 << (64 - LINE_BITS);

/// The number of IDs of each kind that are shown for each source.
const SHOWN: usize = 10;

impl IdRecord {
    pub(super) const BYTES: usize = 16;

    #[inline]
    pub(super) fn new(id: u64, source: usize, line: u64) -> Self {
        debug_assert!(source < MOST_SOURCES && line < 1 << LINE_BITS);
        IdRecord { id, place: (source as u64) << LINE_BITS | line }
    }

    #[inline]
    pub(super) fn source(self) -> usize {
        (self.place >> LINE_BITS) as usize
    }

    #[inline]
    pub(super) fn line(self) -> u64 {
        self.place & ((1 << LINE_BITS) - 1)
    }

    #[inline]
    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        (u128::from(self.place) << 64 | u128::from(self.id)).to_le_bytes()
    }

    #[inline]
    pub(super) fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let both = u128::from_le_bytes(bytes);
        IdRecord { id: both as u64, place: (both >> 64) as u64 }
    }
}

impl Ord for IdRecord {
    // One comparison of 128 bits has no branch, which sorting would mispredict.
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |record: &Self| u128::from(record.id) << 64 | u128::from(record.place);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for IdRecord {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An ID with its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Example {
    pub(super) line: u64,
    pub(super) id: u64,
}

/// The number of IDs of one kind, and the smallest of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) count: u64,
    pub(super) examples: Vec<Example>,
}

impl Sample {
    pub(super) fn add(&mut self, record: IdRecord) {
        self.count += 1;
        if self.examples.len() < SHOWN {
            self.examples.push(Example { line: record.line(), id: record.id });
        }
    }
}
