//! An estimate of the share of a source's IDs that were rounded.
//!
//! A single ID is weak evidence: some exact IDs have marks of rounding ([`frazil::admin::foreign::rounding`]) by chance. So the marks of
//! a source are counted, and compared with those of exact IDs with this layout and these times. One row more or less changes
//! an estimate little. Two models predict the counts of exact IDs: [`digits`], and [`doubles`] for rounding to a full
//! double.
//!
//! An excess with a probability below 10^-7 is a finding; below 10^-3 it is a note.

mod digits;
mod doubles;
#[cfg(test)]
mod tests;

use super::record::{IdRecord, Sample};
use frazil::admin::foreign::EXACT_IN_A_DOUBLE;
use frazil::admin::foreign::rounding::lost_bits;
use std::collections::HashMap;

/// The fewest IDs for a verdict.
const FEWEST: u64 = 3;
/// The bounds of probability as exponents: e^-16 is 10^-7, e^-7 is 10^-3.
const SURELY: f64 = 16.0;
const PERHAPS: f64 = 7.0;
/// With fewer exceptions than one in this number, a double may have rounded the source.
const EXCEPTIONS: u64 = 200;
/// The most IDs that are kept of a source.
const KEPT: usize = 1 << 14;

/// The bits of a layout that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    /// The bits below the time.
    pub(super) time_shift: u32,
    /// The width of the sequence, if that is the lowest field; else 0.
    pub(super) sequence: u32,
    /// The bits of the lowest field.
    pub(super) lowest: u64,
    /// The number of sequences at which a tick may begin, if known.
    pub(super) starts: Option<u64>,
}

/// The IDs of a source above 2^53.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// The IDs that are doubles.
    pub(super) sample: Sample,
    ids: u64,
    doubles: u64,
    last: u64,
    /// The number of rows that repeat the ID before them, and of those with a mark. The second pair counts only IDs whose lowest field is not 0.
    repeats: [[u64; 2]; 2],
    /// A sample of the IDs, chosen by hash, and the number of times that it was halved.
    kept: Vec<u64>,
    halved: u32,
}

/// A source's verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rounding {
    No,
    /// The IDs were rounded.
    Yes(Share),
    /// The IDs may be exact, or this share of them was rounded.
    Perhaps(Share),
    /// This number of IDs are doubles. Exact IDs may also be doubles, if their sequence is 0.
    SequenceIsZero(u64),
    /// All IDs are doubles, and each number of the lowest node field is a multiple of this.
    NodeIsMultipleOf(u64),
}

/// The estimated share of rounded IDs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    pub(super) share: f64,
    pub(super) error: f64,
    pub(super) by: &'static str,
    /// The negative logarithm of the probability of a count this large by chance.
    surety: f64,
}

pub(super) const BY_DOUBLE: &str = "by a double: a float column, Lua, C# or SQL's DOUBLE";
const BY_SOME: &str = "so that some became equal";

fn is_double(id: u64) -> bool {
    id as f64 as u64 == id
}

/// The exponent of Chernoff's bound on the probability of a count this far above its mean.
fn excess(count: u64, mean: f64) -> f64 {
    let count = count as f64;
    if count <= mean { 0.0 } else { count * (count / mean).ln() - (count - mean) }
}

/// The exponent of Chernoff's bound on the probability of `count` hits in `of` trials with probability `part`.
fn exponent(count: u64, of: u64, part: f64) -> f64 {
    let (have, all) = (count as f64, of as f64);
    let term = |count: f64, part: f64| if count > 0.0 { count * (count / (all * part)).ln() } else { 0.0 };
    if have <= all * part || all == 0.0 { 0.0 } else { term(have, part) + term(all - have, 1.0 - part) }
}

impl Marks {
    /// Adds the next ID of the source in order.
    #[inline]
    pub(super) fn add(&mut self, record: IdRecord, bits: &Bits) {
        let id = record.id;
        if id <= EXACT_IN_A_DOUBLE {
            return;
        }
        let is_double = is_double(id);
        if is_double {
            self.sample.add(record);
        }
        if id == self.last {
            for [repeats, marked] in &mut self.repeats[..if id & bits.lowest == 0 { 1 } else { 2 }] {
                *repeats += 1;
                *marked += u64::from(digits::is_marked(id));
            }
            return;
        }
        self.last = id;
        self.ids += 1;
        self.doubles += u64::from(is_double);
        let is_kept = |id: u64, halved| id.wrapping_mul(0x9e37_79b9_7f4a_7c15).leading_zeros() >= halved;
        if is_kept(id, self.halved) {
            self.kept.push(id);
            if self.kept.len() == KEPT {
                self.halved += 1;
                let halved = self.halved;
                self.kept.retain(|id| is_kept(*id, halved));
            }
        }
    }

    /// Returns the verdict. `nodes` has the values of the lowest node field, each with its number of IDs.
    pub(super) fn says(&self, bits: &Bits, nodes: &[(u64, u64)]) -> Rounding {
        // Most IDs lose as many bits as the median.
        let lost = self.kept.get(self.kept.len() / 2).map_or(1, |id| lost_bits(*id));
        let sequences = doubles::Sequences::new(&self.kept, bits, lost);
        let best = [
            digits::find(&self.kept, bits),
            self.of_rare_nodes(bits),
            sequences.lattice(bits),
            sequences.starts(bits),
            self.repeated(0, |_| true, 1.0),
            // Fewer than half of these IDs have marks.
            self.repeated(1, |id| id & bits.lowest != 0, 0.5),
            if lost > bits.sequence { doubles::of_nodes(lost - bits.sequence, nodes) } else { None },
        ];
        match best.into_iter().flatten().max_by(|a, b| a.surety.total_cmp(&b.surety)) {
            Some(share) if share.surety >= SURELY => return Rounding::Yes(share),
            Some(share) if self.doubles < self.ids || sequences.has_lattice() => return Rounding::Perhaps(share),
            _ => {}
        }
        let others = self.ids - self.doubles;
        if self.ids < FEWEST || others * EXCEPTIONS > self.ids {
            return Rounding::No;
        }
        if lost <= bits.sequence { Rounding::SequenceIsZero(self.doubles) } else { Rounding::NodeIsMultipleOf(1 << (lost - bits.sequence)) }
    }

    /// Looks for marks among IDs with rare node numbers. In the lowest field, rounding creates such numbers.
    fn of_rare_nodes(&self, bits: &Bits) -> Option<Share> {
        let mut ids: HashMap<u64, usize> = HashMap::new();
        self.kept.iter().filter(|_| bits.sequence == 0).for_each(|id| *ids.entry(id & bits.lowest).or_default() += 1);
        let is_rare = |id: &u64| ids.get(&(id & bits.lowest)).is_some_and(|ids| ids * 100 < self.kept.len());
        let rare: Vec<_> = self.kept.iter().copied().filter(is_rare).collect();
        let part = rare.len() as f64 / self.kept.len().max(1) as f64;
        digits::find(&rare, bits).map(|share| Share { share: share.share * part, error: share.error * part, ..share })
    }

    /// Looks for marks among repeated IDs. Copied rows have any ID; rounding makes several IDs equal, and leaves its mark.
    fn repeated(&self, of: usize, is_one: impl Fn(u64) -> bool, most: f64) -> Option<Share> {
        let [repeats, marked] = self.repeats[of];
        let (mut all, mut usual) = (1.0, 1.0_f64);
        for id in self.kept.iter().filter(|id| is_one(**id)) {
            all += 1.0;
            usual += f64::from(u8::from(digits::is_marked(*id)));
        }
        Share::found(marked, 0.0, self.ids + self.repeats[0][0], exponent(marked, repeats, (usual / all).min(most)), BY_SOME)
    }
}

impl Share {
    /// `20 % (18 to 22 %)`.
    pub(super) fn shown(&self) -> String {
        let percent = |share: f64| {
            let percent = share.clamp(0.0, 1.0) * 100.0;
            if percent > 99.0 && percent < 100.0 || percent < 10.0 { format!("{percent:.1}") } else { format!("{percent:.0}") }
        };
        format!("{} % ({} to {} %)", percent(self.share), percent(self.share - self.error), percent(self.share + self.error))
    }

    /// Returns the share of rounded IDs, if `count` look rounded and chance would give about `expected`.
    fn found(count: u64, expected: f64, ids: u64, surety: f64, by: &'static str) -> Option<Self> {
        let (count, ids) = (count as f64, ids.max(1) as f64);
        let share = (count - expected) / (ids - expected).max(1.0);
        (surety >= PERHAPS).then(|| Share { share: share.clamp(0.0, 1.0), error: 2.0 * count.sqrt() / ids, by, surety })
    }
}
