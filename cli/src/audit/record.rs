//! An ID with its source and line, in sixteen bytes in memory and in three to seventeen on disk, and examples of IDs for the report.

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
    /// The most bytes that [`write`](Self::write) uses, and the bytes that it and [`read`](Self::read) need.
    pub(super) const LONGEST: usize = 17;

    pub(super) const ZERO: Self = IdRecord { id: 0, place: 0 };

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

    /// Writes the difference to the record before it, and returns the number of bytes: one for the lengths, then the step of the ID, and
    /// that of the place, whose lowest bit is its sign.
    #[inline]
    pub(super) fn write(self, before: Self, to: &mut [u8; Self::LONGEST]) -> usize {
        let step = self.place.wrapping_sub(before.place) as i64;
        let (id, place) = (self.id.wrapping_sub(before.id), (step << 1 ^ step >> 63) as u64);
        let more = |step: u64| (step | 1).ilog2() as usize / 8;
        let (more, last) = (more(id), more(place));
        to[0] = (more << 3 | last) as u8;
        *to[1..].first_chunk_mut().expect("17 bytes") = id.to_le_bytes();
        *to[2 + more..].first_chunk_mut().expect("17 bytes") = place.to_le_bytes();
        3 + more + last
    }

    /// Reads what [`write`](Self::write) wrote, and the number of bytes.
    #[inline]
    pub(super) fn read(before: Self, from: &[u8; Self::LONGEST]) -> (Self, usize) {
        let (more, last) = (usize::from(from[0] >> 3 & 7), usize::from(from[0] & 7));
        let step = |at: usize, more: usize| u64::from_le_bytes(*from[at..].first_chunk().expect("17 bytes")) & u64::MAX >> (56 - 8 * more);
        let (id, place) = (step(1, more), step(2 + more, last));
        let place = before.place.wrapping_add(place >> 1 ^ (place & 1).wrapping_neg());
        (IdRecord { id: before.id.wrapping_add(id), place }, 3 + more + last)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn differences_are_read_as_they_were_written(records in prop::collection::vec((any::<u64>(), 0_u32..64, any::<u64>(), 0_u32..64), 1..20)) {
            let mut records: Vec<_> = records.into_iter().map(|(id, few, place, short)| IdRecord { id: id >> few, place: place >> short }).collect();
            records.sort();
            let (mut bytes, mut at, mut before) = (vec![0xff; records.len() * IdRecord::LONGEST], 0, IdRecord::ZERO);
            for record in &records {
                at += record.write(before, bytes[at..].first_chunk_mut().unwrap());
                before = *record;
            }
            bytes.extend([0xff; IdRecord::LONGEST]);
            (at, before) = (0, IdRecord::ZERO);
            for record in records {
                let (read, used) = IdRecord::read(before, bytes[at..].first_chunk().unwrap());
                prop_assert_eq!(read, record);
                (at, before) = (at + used, read);
            }
        }
    }
}
