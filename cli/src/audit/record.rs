//! An ID with the place where it stands: sixteen bytes, in memory and on disk; and the first of its kind, which are shown.

/// Ordered by ID, then by source, then by line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Record {
    pub(super) id: u64,
    /// The source's number above the line's.
    place: u64,
}

/// A line's number has so many bits, and a source's the other 16.
const LINE_BITS: u32 = 48;

pub(super) const MOST_SOURCES: usize = 1 << (64 - LINE_BITS);

/// So many IDs of each kind are shown for each source.
const SHOWN: usize = 10;

impl Record {
    pub(super) const BYTES: usize = 16;

    #[inline]
    pub(super) fn new(id: u64, source: usize, line: u64) -> Self {
        debug_assert!(source < MOST_SOURCES && line < 1 << LINE_BITS);
        Record { id, place: (source as u64) << LINE_BITS | line }
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
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.id.to_le_bytes());
        bytes[8..].copy_from_slice(&self.place.to_le_bytes());
        bytes
    }

    #[inline]
    pub(super) fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let both = u128::from_le_bytes(bytes);
        Record { id: both as u64, place: (both >> 64) as u64 }
    }
}

/// An ID with the line on which it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Example {
    pub(super) line: u64,
    pub(super) id: u64,
}

/// IDs of one kind: how many, and the smallest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) count: u64,
    pub(super) examples: Vec<Example>,
}

impl Sample {
    pub(super) fn add(&mut self, record: Record) {
        self.count += 1;
        if self.examples.len() < SHOWN {
            self.examples.push(Example { line: record.line(), id: record.id });
        }
    }
}
