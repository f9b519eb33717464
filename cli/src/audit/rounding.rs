//! IDs that went through a double and were printed as integers again: by a float column of pandas, by Lua, C#, SQL's `DOUBLE`.
//!
//! A double holds 53 bits. An ID of 53 + k bits loses k: its last k bits are 0 after that. Honest IDs end so as well, where each tick begins
//! at sequence 0 and holds one ID, or where the node number is the lowest field. So an ID alone says nothing; a source does:
//! - Sequences count. In an honest source those with exactly k - 1 zeros are at least as many as those with exactly k, also where threads
//!   take blocks of them. Rounding leaves none of the former, and half of all have exactly k.
//! - Where each tick begins at a random sequence, not all of them are 0.
//! - Node numbers are not all multiples of 2^k, every second one of no higher power of 2.
//!
//! Else nothing can be told, and the report says that.

use super::fields::Fields;
use super::record::{Record, Sample};
use frazil::admin::Start;
use std::collections::HashSet;

/// The most bits that an ID of 63 bits loses.
const MOST_LOST: usize = 10;
/// Fewer IDs say nothing.
const FEWEST: u64 = 3;
/// So many standard deviations are no chance.
const SURELY: u64 = 6;
/// Below a tenth that is rounded, chance is not told from it; half of those have exactly k zeros.
const SHARE: u64 = 20;
/// Coins that all fall on one side, as a measure of how sure it is.
const COINS: u64 = 40;
/// The measure for node numbers, which people choose.
const NODE_COINS: u64 = 24;

/// IDs that lose a number of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lost {
    ids: u64,
    /// Those whose lowest field is 0.
    zero: u64,
    /// Among the others, those that end with as many zeros as a double leaves at least, and those with one less.
    exact: u64,
    below: u64,
}

/// The IDs of a source above 2^53, counted by their last bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Doubles {
    by_bits: [Lost; MOST_LOST],
    /// Those that are a double.
    pub(super) sample: Sample,
}

/// A source's verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    No,
    Yes,
    /// All IDs are doubles, as those of the source may be: each sequence is 0.
    SequenceIsZero,
    /// All IDs are doubles, and each number of the lowest node field is a multiple of this.
    NodeIsMultipleOf(u64),
}

impl Doubles {
    /// An ID above 2^53; `lowest` has the bits of the lowest field.
    #[inline]
    pub(super) fn add(&mut self, record: Record, lowest: u64) {
        let id = record.id;
        let (lost, zeros) = (11 - id.leading_zeros(), id.trailing_zeros());
        let counts = &mut self.by_bits[lost as usize - 1];
        counts.ids += 1;
        counts.zero += u64::from(id & lowest == 0);
        counts.exact += u64::from(id & lowest != 0 && zeros == lost);
        counts.below += u64::from(id & lowest != 0 && zeros + 1 == lost);
        if zeros >= lost {
            self.sample.add(record);
        }
    }

    /// The verdict, with the source's node numbers.
    pub(super) fn says(&self, fields: &Fields, nodes: impl Iterator<Item = u64>) -> Rounding {
        let sum = |of: fn(&Lost) -> u64| self.by_bits.iter().map(of).sum::<u64>();
        let (ids, zero, exact, below) = (sum(|l| l.ids), sum(|l| l.zero), sum(|l| l.exact), sum(|l| l.below));
        let sequence_bits = fields.lowest_sequence_bits();
        if sequence_bits > 0 && exact > below + SURELY * (below + 1).isqrt() && exact * SHARE >= ids - zero {
            return Rounding::Yes;
        }
        if ids < FEWEST || self.sample.count < ids {
            return Rounding::No;
        }
        let most = self.by_bits.iter().enumerate().max_by_key(|(_, lost)| lost.ids).map_or(0, |(at, _)| at as u32 + 1);
        if most <= sequence_bits {
            return match fields.start {
                Some(Start::Random(n)) if zero == ids && n > 1 && ids * u64::from(n.ilog2()) >= COINS => Rounding::Yes,
                _ => Rounding::SequenceIsZero,
            };
        }
        let lost = most - sequence_bits;
        let numbers: HashSet<_> = nodes.map(|node| fields.lowest_node_field(node)).filter(|number| *number > 0).collect();
        let exact = numbers.iter().filter(|number| number.trailing_zeros() == lost).count();
        let is_sure = numbers.len() as u64 * u64::from(lost) >= NODE_COINS;
        if is_sure && exact * 4 >= numbers.len() { Rounding::Yes } else { Rounding::NodeIsMultipleOf(1 << lost) }
    }
}
