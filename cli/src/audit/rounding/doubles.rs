//! The model of the last k bits, which an ID loses when it is rounded to a double.
//!
//! If the sequence is the lowest field, sequences that end with exactly j zeros are about twice as frequent as those with j + 1, even if
//! threads take blocks of sequences. So the sequences with fewer than k zeros predict how many have k or more. Sequence 0 is counted
//! separately: if ticks begin at random, it is as frequent as the next ones. Otherwise it is not evidence, unless nearly all are 0. If a node
//! number is the lowest field, numbers that end with k zeros are rare, and rarely the nearest such number to others.

use super::{BY_DOUBLE, Bits, PERHAPS, SURELY, Share, excess};

/// The sequences of IDs, if they are the lowest field.
pub(super) struct Sequences {
    lost: u32,
    ids: u64,
    /// The number of sequences that are 0.
    zero: u64,
    /// The number of sequences that can begin a tick, and would be rounded to 0.
    early: u64,
    /// The number of other sequences, by trailing zeros.
    by_zeros: [u64; 64],
}

impl Sequences {
    pub(super) fn new(ids: &[u64], bits: &Bits, lost: u32) -> Self {
        let mut found = Sequences { lost, ids: ids.len() as u64, zero: 0, early: 0, by_zeros: [0; 64] };
        let early = bits.starts.unwrap_or(0).min(1 << (lost - 1));
        for sequence in ids.iter().map(|id| id & bits.lowest) {
            match sequence {
                0 => found.zero += 1,
                _ => found.by_zeros[sequence.trailing_zeros() as usize] += 1,
            }
            found.early += u64::from((1..early).contains(&sequence));
        }
        found
    }

    /// Returns whether some sequences other than 0 end with the zeros of a double.
    pub(super) fn has_lattice(&self) -> bool {
        self.by_zeros[self.lost as usize..].iter().any(|count| *count > 0)
    }

    /// Looks for sequences that end with the zeros of a double. Counts 0 only if ticks begin at random.
    pub(super) fn lattice(&self, bits: &Bits) -> Option<Share> {
        let (below, lattice) = self.by_zeros.split_at(self.lost as usize);
        // Each class of zeros predicts the number with at least `lost` zeros: half of the class before.
        let of_class = |(zeros, count): (usize, &u64)| *count as f64 / f64::from(1_u32 << (below.len() - 1 - zeros));
        let expected = below.iter().enumerate().map(of_class).fold(0.0, f64::max);
        let zero = if bits.starts.is_some_and(|starts| starts >= 1 << self.lost) { self.zero } else { 0 };
        let all = lattice.iter().sum::<u64>() + zero;
        // Blocks of sequences begin with more zeros.
        let is_block = excess(lattice[0], expected / 2.0 + 0.5) < SURELY / 4.0 && zero == 0;
        if bits.sequence == 0 || is_block {
            return None;
        }
        Share::found(all, expected, self.ids, excess(all, expected + 1.0), BY_DOUBLE)
    }

    /// Looks for an excess of sequence 0, if ticks begin at one of several.
    pub(super) fn starts(&self, bits: &Bits) -> Option<Share> {
        let starts = bits.starts.filter(|_| bits.sequence > 0)?;
        let others = starts.min(1 << (self.lost - 1)).checked_sub(1).filter(|others| *others > 0)? as f64;
        let early = self.early as f64;
        let surety = excess(self.zero, (early + 2.0 * (early + 1.0).sqrt()) / others + 0.5);
        Share::found(self.zero, early / others, self.ids, surety, BY_DOUBLE)
    }
}

/// Looks for node numbers that end with zeros, in the lowest field.
pub(super) fn of_nodes(lost: u32, nodes: &[(u64, u64)]) -> Option<Share> {
    let (unit, half) = (1_u64 << lost, 1_u64 << (lost - 1));
    let all = |numbers: &[(u64, u64)]| numbers.iter().map(|(_, ids)| ids).sum::<u64>();
    let share = |count: u64, surety| Share::found(count, 0.0, all(nodes), surety, BY_DOUBLE);
    let (round, others): (Vec<_>, Vec<_>) = nodes.iter().partition(|(number, _)| number.is_multiple_of(unit));
    if others.len() * 20 <= round.len() {
        let numbers: Vec<_> = round.iter().filter(|(number, _)| *number > 0).collect();
        let exact = numbers.iter().filter(|(number, _)| number.trailing_zeros() == lost).count();
        // Round numbers that people choose have more zeros, or are rare.
        let is_sure = numbers.len() as u64 * u64::from(lost) >= 24 && exact * 4 >= numbers.len();
        return if is_sure { share(all(&round), SURELY) } else { None };
    }
    // The expected number of near pairs by chance follows from pairs among the other numbers.
    let near = |a: u64, b: u64| a.abs_diff(b) <= half;
    let explained: Vec<_> = round.iter().copied().filter(|(number, _)| others.iter().any(|(other, _)| near(*other, *number))).collect();
    // The numbers are sorted, so only neighbours can be near.
    let pairs =
        others.iter().enumerate().map(|(at, (a, _))| others[at + 1..].iter().take_while(|(b, _)| near(*a, *b)).count()).sum::<usize>();
    let surety = excess(explained.len() as u64, 0.05 + pairs as f64 * 2.0 / (unit - 1) as f64);
    let count = all(&explained);
    // Such a number is evidence only if it has enough IDs.
    if surety < 2.0 || count * 50 < all(nodes) { None } else { share(count, surety.max(PERHAPS)) }
}
