//! The second model, of the last bits: a double in full loses k of them. Where the sequence is the lowest field, those with exactly j zeros
//! are about twice as many as those with j + 1, also where threads take blocks of sequences. So those with fewer than k zeros tell how many
//! may have k and more. Sequence 0 is apart: where ticks begin at random, it is as frequent as those after it. Where they begin at 0, or
//! nobody knows, it says nothing, unless nearly all are 0. Where a node number is the lowest field, numbers that end with k zeros are rare,
//! and seldom lie where others would be rounded to.

use super::{BY_DOUBLE, Bits, PERHAPS, SURELY, Share, excess};

/// The lowest fields of IDs, where they are sequences.
pub(super) struct Sequences {
    lost: u32,
    ids: u64,
    /// Those that are 0.
    zero: u64,
    /// Those that follow 0 and would be rounded to it, and begin a tick.
    early: u64,
    /// The others, by their zeros.
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

    /// Returns whether some end with the zeros of a double, and are not 0.
    pub(super) fn has_lattice(&self) -> bool {
        self.by_zeros[self.lost as usize..].iter().any(|count| *count > 0)
    }

    /// Sequences that end with the zeros of a double, and are not 0 unless ticks begin anywhere.
    pub(super) fn lattice(&self, bits: &Bits) -> Option<Share> {
        let (below, lattice) = self.by_zeros.split_at(self.lost as usize);
        // Each class of zeros says how many end with at least `lost`: half as many as the class before that.
        let of_class = |(zeros, count): (usize, &u64)| *count as f64 / f64::from(1_u32 << (below.len() - 1 - zeros));
        let expected = below.iter().enumerate().map(of_class).fold(0.0, f64::max);
        let zero = if bits.starts.is_some_and(|starts| starts >= 1 << self.lost) { self.zero } else { 0 };
        let all = lattice.iter().sum::<u64>() + zero;
        // Blocks of sequences begin with more zeros than that.
        let is_block = excess(lattice[0], expected / 2.0 + 0.5) < SURELY / 4.0 && zero == 0;
        if bits.sequence == 0 || is_block {
            return None;
        }
        Share::found(all, expected, self.ids, excess(all, expected + 1.0), BY_DOUBLE)
    }

    /// Sequence 0, where ticks begin with any of several.
    pub(super) fn starts(&self, bits: &Bits) -> Option<Share> {
        let starts = bits.starts.filter(|_| bits.sequence > 0)?;
        let others = starts.min(1 << (self.lost - 1)).checked_sub(1).filter(|others| *others > 0)? as f64;
        let early = self.early as f64;
        let surety = excess(self.zero, (early + 2.0 * (early + 1.0).sqrt()) / others + 0.5);
        Share::found(self.zero, early / others, self.ids, surety, BY_DOUBLE)
    }
}

/// Node numbers that end with zeros, in the lowest field.
pub(super) fn of_nodes(lost: u32, nodes: &[(u64, u64)]) -> Option<Share> {
    let (unit, half) = (1_u64 << lost, 1_u64 << (lost - 1));
    let all = |numbers: &[(u64, u64)]| numbers.iter().map(|(_, ids)| ids).sum::<u64>();
    let share = |count: u64, surety| Share::found(count, 0.0, all(nodes), surety, BY_DOUBLE);
    let (round, others): (Vec<_>, Vec<_>) = nodes.iter().partition(|(number, _)| number.is_multiple_of(unit));
    if others.len() * 20 <= round.len() {
        let numbers: Vec<_> = round.iter().filter(|(number, _)| *number > 0).collect();
        let exact = numbers.iter().filter(|(number, _)| number.trailing_zeros() == lost).count();
        // Round numbers that people choose have more zeros, or are few.
        let is_sure = numbers.len() as u64 * u64::from(lost) >= 24 && exact * 4 >= numbers.len();
        return if is_sure { share(all(&round), SURELY) } else { None };
    }
    // Others become a number by rounding: by chance, as seldom as two others are as near.
    let near = |a: u64, b: u64| a.abs_diff(b) <= half;
    let explained: Vec<_> = round.iter().copied().filter(|(number, _)| others.iter().any(|(other, _)| near(*other, *number))).collect();
    // Sorted: only neighbours can be near.
    let pairs =
        others.iter().enumerate().map(|(at, (a, _))| others[at + 1..].iter().take_while(|(b, _)| near(*a, *b)).count()).sum::<usize>();
    let surety = excess(explained.len() as u64, 0.05 + pairs as f64 * 2.0 / (unit - 1) as f64);
    let count = all(&explained);
    // Any such number is a sign; few IDs of it are none.
    if surety < 2.0 || count * 50 < all(nodes) { None } else { share(count, surety.max(PERHAPS)) }
}
