//! A stable sort of records by ID, which passes them on in parts.
//!
//! A radix sort of many records misses the caches with each record in each pass. So the highest bits in which the IDs differ divide
//! them into parts that fit a core's cache. Only these parts are sorted by the other bits, and only by those that differ.

use super::failure::AuditResult;
use super::record::IdRecord;

/// The number of records of a part, and of those that are sorted by comparisons.
const PART: usize = 1 << 16;
const FEW: usize = 1 << 7;
/// The number of parts into which many records are divided, and the radix of a part's sort.
const PARTS: usize = 1 << 9;
const RADIX: usize = 1 << 8;

type Take<'t> = &'t mut dyn FnMut(&[IdRecord]) -> AuditResult<()>;

/// Passes records to `take` in order of their IDs. Those with the same ID keep their order. `spare` is as long as `records`; both are
/// used up.
pub(super) fn by_id<'r>(mut records: &'r mut [IdRecord], mut spare: &'r mut [IdRecord], take: Take<'_>) -> AuditResult<()> {
    debug_assert_eq!(records.len(), spare.len());
    let first = records.first().map_or(0, |record| record.id);
    let mut differing = records.iter().fold(0, |bits, record| bits | (record.id ^ first));
    if records.len() > PART && differing != 0 {
        let highest = (u64::BITS - differing.leading_zeros()).saturating_sub(PARTS.ilog2());
        let mut from = 0;
        for to in divide::<PARTS>(records, spare, highest) {
            by_id(&mut spare[from..to], &mut records[from..to], take)?;
            from = to;
        }
        return Ok(());
    }
    if records.len() <= FEW {
        records.sort_by_key(|record| record.id);
        differing = 0;
    }
    while differing != 0 {
        let lowest = differing.trailing_zeros();
        divide::<RADIX>(records, spare, lowest);
        (records, spare) = (spare, records);
        differing &= !((RADIX as u64 - 1) << lowest);
    }
    take(records)
}

/// Copies records to `spare` in order of the bits from `shift` on, and returns the ends of the parts with equal bits.
fn divide<const N: usize>(records: &[IdRecord], spare: &mut [IdRecord], shift: u32) -> [usize; N] {
    let part = |record: &IdRecord| (record.id >> shift) as usize % N;
    let mut ends = [0; N];
    records.iter().for_each(|record| ends[part(record)] += 1);
    let mut from = 0;
    for end in &mut ends {
        (*end, from) = (from, from + *end);
    }
    for record in records {
        let end = &mut ends[part(record)];
        spare[*end] = *record;
        *end += 1;
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn parts_are_those_of_a_stable_sort(
            ids in prop::collection::vec(any::<u64>(), 1..200), times in 1_usize..600, kept in any::<u64>(), outliers in any::<bool>(),
        ) {
            // Many equal IDs, whose lines show their order; an outlier makes one part of nearly all others.
            let ids = ids.iter().map(|id| id & kept).cycle().take(ids.len() * times);
            let mut records: Vec<_> = ids.enumerate().map(|(line, id)| IdRecord::new(id >> 1, 3, line as u64 + 1)).collect();
            if outliers {
                records.iter_mut().skip(1).for_each(|record| record.id &= 0xffff);
            }
            let mut expected = records.clone();
            expected.sort_by_key(|record| record.id);
            let (mut spare, mut got) = (records.clone(), Vec::new());
            by_id(&mut records, &mut spare, &mut |part| { got.extend_from_slice(part); Ok(()) }).unwrap();
            prop_assert!(got == expected);
        }
    }
}
