//! The model of decimal digits: JavaScript, spreadsheets, two steps, 32-bit floats. It combines the times of some IDs with the
//! lower bits of others. These combinations follow the patterns of the source, and no program has rounded them.

use super::{Bits, FEWEST, PERHAPS, SURELY, Share, excess, is_double};
use frazil::admin::foreign::rounding::{Mark, is_single_in_full, mark};

/// The number of combined IDs.
const MADE: usize = 1 << 15;

/// A program, and a test for numbers that it has rounded, given their mark and whether they are doubles.
type Signature = (&'static str, fn(Mark, bool) -> bool);

const MARKS: [Signature; 6] = [
    ("by JavaScript, or a program that prints the fewest digits of a double", |mark, _| matches!(mark, Mark::Shortest | Mark::Digits(_))),
    ("to 16 digits", |mark, _| matches!(mark, Mark::Digits(..=16))),
    ("to 15 digits, as by a spreadsheet", |mark, _| matches!(mark, Mark::Digits(..=15))),
    ("to 12 digits or fewer", |mark, _| matches!(mark, Mark::Digits(..=12))),
    ("to 16 digits, and by a double after that", |mark, double| double && matches!(mark, Mark::DoubleOfDigits(_) | Mark::Digits(_))),
    ("to 15 digits, and by a double after that", |mark, double| {
        double && matches!(mark, Mark::DoubleOfDigits(..=15) | Mark::Digits(..=15))
    }),
];

/// Excludes most IDs by cheap tests.
fn may_be_marked(id: u64) -> bool {
    id.is_multiple_of(10) || is_double(id)
}

/// Returns whether an ID is a double, or the digits of one.
pub(super) fn is_marked(id: u64) -> bool {
    may_be_marked(id) && mark(id).is_some()
}

fn counts(ids: impl Iterator<Item = u64>) -> [u64; MARKS.len()] {
    let mut counts = [0; MARKS.len()];
    for (mark, id) in ids.filter(|id| may_be_marked(*id)).filter_map(|id| Some((mark(id)?, id))) {
        counts.iter_mut().zip(MARKS).for_each(|(count, (_, has))| *count += u64::from(has(mark, is_double(id))));
    }
    counts
}

/// Finds the most certain excess of a mark, among those that explain the most IDs.
pub(super) fn find(kept: &[u64], bits: &Bits) -> Option<Share> {
    let low = (1_u64 << bits.time_shift) - 1;
    let (ids, rounds) = (kept.len() as u64, MADE.div_ceil(kept.len().max(1)));
    let made = (1..=rounds).flat_map(|round| {
        let with = move |at: usize| kept[(at + round * 7919) % kept.len()] & low;
        kept.iter().enumerate().map(move |(at, id)| id & !low | with(at))
    });
    let of = |((count, made), (by, _)): ((u64, u64), Signature)| {
        let expected = (made as f64 + (made as f64).sqrt()) / rounds as f64 + 0.01;
        let surety = excess(count, expected);
        // If most of a few lines look rounded, no statistics are needed.
        let is_most = count >= FEWEST && count * 2 > ids && surety >= PERHAPS;
        Share::found(count, expected, ids, if is_most { surety.max(SURELY) } else { surety }, by)
    };
    // A 32-bit float keeps few bits of the time and none below it. Scheduled times have fewer zeros.
    let zero = kept.iter().filter(|id| **id & low == 0).count() as f64;
    let needed = kept.iter().map(|id| u64::BITS - id.leading_zeros() - 24).min().unwrap_or(0).saturating_sub(bits.time_shift);
    let singles = kept.iter().filter(|id| is_single_in_full(**id)).count() as u64;
    let single = Share::found(singles, 0.0, ids, excess(singles, zero / f64::from(1_u32 << needed.min(31)) + 0.01), "by a 32-bit float");
    let counts = counts(kept.iter().copied()).into_iter().zip(counts(made)).zip(MARKS);
    let found: Vec<_> = counts.filter_map(of).chain(single).collect();
    let most = |of: fn(&Share) -> f64, found: &[Share]| found.iter().map(of).fold(0.0, f64::max);
    let sure = most(|share| share.surety, &found).min(SURELY);
    let sure: Vec<_> = found.into_iter().filter(|share| share.surety >= sure).collect();
    // Rounding in two steps leaves the marks of the first step in some IDs.
    let least = 0.8 * most(|share| share.share, &sure);
    sure.into_iter().filter(|share| share.share >= least).max_by(|a, b| a.surety.total_cmp(&b.surety))
}
