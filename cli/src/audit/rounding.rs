//! The share of a source's IDs that was rounded, estimated from all of them.
//!
//! An ID alone says little: each exact one has some mark of rounding ([`frazil::admin::foreign::rounding`]) now and then. So the marks of
//! a source are counted, and compared with those that exact IDs of this layout and these times would have. One row more or less changes
//! an estimate little. Two models give the counts of exact IDs:
//! - **Decimal digits** (JavaScript, spreadsheets, two steps, 32-bit floats). The times of some IDs are put together with the lower bits of
//!   others. The results have the source's habits, and no program has rounded them.
//! - **The last bits** (a double in full, which loses k of them). Where the sequence is the lowest field, those with exactly j zeros are about
//!   twice as many as those with j + 1, also where threads take blocks of sequences. So those with fewer than k zeros tell how many may have
//!   k and more. Sequence 0 is apart: where ticks begin at random, it is as frequent as those after it. Where they begin at 0, or nobody
//!   knows, it says nothing, unless nearly all are 0. Where a node number is the lowest field, numbers that end with k zeros are rare, and
//!   seldom lie where others would be rounded to.
//!
//! An excess that chance brings in less than one of 10^7 exact sources is a finding; one in 10^3 cannot be told.

#[cfg(test)]
mod tests;

use super::record::{Record, Sample};
use frazil::admin::foreign::EXACT_IN_A_DOUBLE;
use frazil::admin::foreign::rounding::{digits, is_single_in_full, lost_bits, trailing_zeros};

/// The most bits that an ID of 63 bits loses.
const MOST_LOST: usize = 10;
/// Fewer IDs say nothing.
const FEWEST: u64 = 3;
/// The bound of chance: e^-16 is 10^-7, e^-7 is 10^-3.
const SURELY: f64 = 16.0;
const PERHAPS: f64 = 7.0;
/// Fewer exceptions than one of so many leave it open whether a double has rounded a source.
const EXCEPTIONS: u64 = 200;
/// IDs that are kept for the first model, and what is made of them.
const KEPT: usize = 1 << 14;
const MADE: usize = 1 << 16;
/// Threads take sequences in blocks of so many.
const BLOCK: u64 = 64;

/// The bits of a layout that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    /// The bits below the time.
    pub(super) time_shift: u32,
    /// The width of the sequence, if that is the lowest field; else 0.
    pub(super) sequence: u32,
    /// The bits of the lowest field.
    pub(super) lowest: u64,
    /// So many sequences may begin a tick, each as often, where that is known.
    pub(super) starts: Option<u64>,
}

/// IDs above 2^53 that lose a number of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lost {
    ids: u64,
    /// Those whose lowest field is 0.
    zero: u64,
    /// Those whose lowest field follows 0 and would be rounded to it, and begin a tick.
    early: u64,
    /// Among those whose lowest field is not 0, those with so many zeros, and with exactly as many as a double leaves, or more.
    below: [u64; MOST_LOST],
    exact: u64,
    above: u64,
}

/// The IDs of one tick and node, where the sequence is the lowest field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Group {
    key: u64,
    has: [bool; 2],
    last: u64,
}

/// The IDs of a source above 2^53.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    by_bits: [Lost; MOST_LOST],
    /// Those that are a double.
    pub(super) sample: Sample,
    doubles: u64,
    last: u64,
    /// Rows with the ID of the row before, and those among them whose ID is a double, or the digits of one; and the same of those whose
    /// lowest field is not 0.
    repeats: [[u64; 2]; 2],
    /// Every so many-th ID.
    kept: Vec<u64>,
    stride: u64,
    distinct: u64,
    group: Group,
    /// Groups that go on after sequence 1, with 0 and not 1, and with 1 and not 0.
    only: [u64; 2],
}

/// A source's verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rounding {
    No,
    /// Found: the share, its error, and by what.
    Yes(Share),
    /// Exact IDs may look like this, and so may ones of which this share was rounded.
    Perhaps(Share),
    /// So many IDs are doubles, as those of the source may be: their sequence is 0.
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
    /// e to the power of this is how sure it is.
    surety: f64,
}

pub(super) const BY_DOUBLE: &str = "by a double: a float column, Lua, C# or SQL's DOUBLE";

const BY_SOME: &str = "so that some became the same";

/// The marks of the first model.
const DECIMAL: [(&str, fn(u64) -> bool); 7] = [
    ("by JavaScript, or a program that prints the fewest digits of a double", |id| !is_double(id) && id % 10 == 0 && is_shortest(id)),
    ("to 17 digits", |id| has_digits(id, 17)),
    ("to 16 digits", |id| has_digits(id, 16)),
    ("to 15 digits, as by a spreadsheet", |id| has_digits(id, 15)),
    ("to 12 digits or fewer", |id| has_digits(id, 12)),
    ("to 16 digits, and by a double after that", |id| is_double(id) && has_digits(shortest(id), 16)),
    ("to 15 digits, and by a double after that", |id| is_double(id) && has_digits(shortest(id), 15)),
];

fn is_double(id: u64) -> bool {
    id as f64 as u64 == id
}

fn shortest(id: u64) -> u64 {
    format!("{}", id as f64).parse().unwrap_or(u64::MAX)
}

fn is_shortest(id: u64) -> bool {
    shortest(id) == id
}

fn has_digits(id: u64, most: u32) -> bool {
    // The first test is the cheaper one.
    id % 10 == 0 && digits(id) > most && trailing_zeros(id) >= digits(id) - most
}

/// The exponent of Chernoff's bound on the chance that a count of this mean is so large.
fn excess(count: u64, mean: f64) -> f64 {
    let count = count as f64;
    if count <= mean { 0.0 } else { count * (count / mean).ln() - (count - mean) }
}

/// The exponent of Chernoff's bound on the chance that so many of `of` have what a part of all has.
fn exponent(count: u64, of: u64, part: f64) -> f64 {
    let (have, all) = (count as f64, of as f64);
    let term = |count: f64, part: f64| if count > 0.0 { count * (count / (all * part)).ln() } else { 0.0 };
    if have <= all * part || all == 0.0 { 0.0 } else { term(have, part) + term(all - have, 1.0 - part) }
}

/// Returns whether an ID is a double, or the digits of one.
fn is_marked(id: u64) -> bool {
    is_double(id) || id % 10 == 0 && is_shortest(id)
}

impl Marks {
    /// The next ID of the source in order.
    #[inline]
    pub(super) fn add(&mut self, record: Record, bits: &Bits) {
        let id = record.id;
        if id <= EXACT_IN_A_DOUBLE {
            return;
        }
        let is_double = is_double(id);
        if is_double {
            self.sample.add(record);
        }
        if id == self.last {
            let (is_zero, marked) = (id & bits.lowest == 0, is_marked(id));
            self.repeats[0][0] += 1;
            self.repeats[0][1] += u64::from(marked);
            self.repeats[1][0] += u64::from(!is_zero);
            self.repeats[1][1] += u64::from(!is_zero && marked);
            return;
        }
        self.last = id;
        let (lost, zeros, field) = (lost_bits(id), id.trailing_zeros(), id & bits.lowest);
        let counts = &mut self.by_bits[lost as usize - 1];
        counts.ids += 1;
        if field == 0 {
            counts.zero += 1;
        } else {
            let early = bits.starts.unwrap_or(0).min(1 << (lost - 1));
            counts.early += u64::from(field < early);
            match zeros.cmp(&lost) {
                std::cmp::Ordering::Less => counts.below[zeros as usize] += 1,
                std::cmp::Ordering::Equal => counts.exact += 1,
                std::cmp::Ordering::Greater => counts.above += 1,
            }
        }
        self.doubles += u64::from(is_double);
        self.keep(id);
        if bits.sequence > 0 {
            self.in_group(id, field, bits, lost);
        }
    }

    #[inline]
    fn keep(&mut self, id: u64) {
        self.stride = self.stride.max(1);
        if self.distinct.is_multiple_of(self.stride) {
            self.kept.push(id);
            if self.kept.len() == KEPT {
                let mut at = 0;
                self.kept.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.stride *= 2;
            }
        }
        self.distinct += 1;
    }

    #[inline]
    fn in_group(&mut self, id: u64, field: u64, bits: &Bits, lost: u32) {
        let key = id >> bits.sequence;
        if key != self.group.key {
            self.end_group(lost);
            self.group = Group { key, ..Group::default() };
        }
        if let Some(has) = self.group.has.get_mut(field as usize) {
            *has = true;
        }
        self.group.last = field;
    }

    #[inline]
    fn end_group(&mut self, lost: u32) {
        let Group { has, last, .. } = self.group;
        if (2..BLOCK.min(1 << (lost - 1))).contains(&last) && has[0] != has[1] {
            self.only[usize::from(has[1])] += 1;
        }
    }

    /// The verdict, with the numbers of the lowest node field and how many IDs each has.
    pub(super) fn says(&self, bits: &Bits, nodes: &[(u64, u64)]) -> Rounding {
        let ids: u64 = self.by_bits.iter().map(|lost| lost.ids).sum();
        let (at, most) =
            self.by_bits.iter().enumerate().max_by_key(|(_, lost)| lost.ids).map_or((0, Lost::default()), |(at, lost)| (at, *lost));
        let lost = at as u32 + 1;
        let mut best = self.decimal(bits);
        let mut better = |other: Option<Share>| {
            if let Some(other) = other.filter(|other| best.is_none_or(|best| other.surety > best.surety)) {
                best = Some(other);
            }
        };
        if bits.sequence > 0 {
            better(most.lattice(bits, lost));
            better(most.starts(bits, lost));
        }
        // Another table may have the IDs that are missing: that is never sure.
        let [zero, one] = self.only;
        better((exponent(zero, zero + one, 0.5) >= PERHAPS).then(|| Share::new(zero - one, ids, zero, PERHAPS, BY_DOUBLE)));
        // A row that was copied has any ID. Rounding makes several IDs one, which has its mark.
        for ([repeats, marked], is_zero_too) in self.repeats.into_iter().zip([true, false]) {
            let kept = || self.kept.iter().filter(|id| is_zero_too || **id & bits.lowest != 0);
            let usual = (kept().filter(|id| is_marked(**id)).count() + 1) as f64 / (kept().count() + 1) as f64;
            // Of sequences that are not 0, fewer than half have marks.
            let surety = exponent(marked, repeats, if is_zero_too { usual } else { usual.min(0.5) });
            better((surety >= PERHAPS).then(|| Share::new(marked, ids + self.repeats[0][0], marked, surety, BY_SOME)));
        }
        if lost > bits.sequence {
            better(of_nodes(lost - bits.sequence, nodes));
        }
        match best {
            Some(share) if share.surety >= SURELY => return Rounding::Yes(share),
            Some(share) if self.doubles < ids || most.exact + most.above > 0 => return Rounding::Perhaps(share),
            _ => {}
        }
        let others = ids - self.doubles;
        if ids < FEWEST || others * EXCEPTIONS > ids {
            return Rounding::No;
        }
        if lost <= bits.sequence { Rounding::SequenceIsZero(self.doubles) } else { Rounding::NodeIsMultipleOf(1 << (lost - bits.sequence)) }
    }

    /// The first model.
    fn decimal(&self, bits: &Bits) -> Option<Share> {
        let kept = &self.kept;
        let low = (1_u64 << bits.time_shift) - 1;
        let rounds = (MADE / kept.len().max(1)).max(1);
        let made = (1..=rounds).flat_map(|round| {
            let with = move |at: usize| kept[(at + round * 7919) % kept.len()] & low;
            kept.iter().enumerate().map(move |(at, id)| id & !low | with(at))
        });
        let mut expected = [0_u64; DECIMAL.len()];
        for id in made.filter(|id| id % 10 == 0 || is_double(*id)) {
            expected.iter_mut().zip(DECIMAL).for_each(|(count, (_, has))| *count += u64::from(has(id)));
        }
        let count = |has: &dyn Fn(u64) -> bool| kept.iter().filter(|id| has(**id)).count() as u64;
        let of = |(by, has): (&'static str, fn(u64) -> bool), expected: u64| {
            let expected = (expected as f64 + (expected as f64).sqrt()) / rounds as f64 + 0.01;
            let count = count(&has);
            // A few lines that all look so need no statistics.
            let is_most = count >= FEWEST && count * 2 > kept.len() as u64;
            let surety = excess(count, expected);
            let surety = if is_most && surety >= PERHAPS { surety.max(SURELY) } else { surety };
            (surety >= PERHAPS).then(|| Share::new(count.saturating_sub(expected as u64), kept.len() as u64, count, surety, by))
        };
        // A float keeps no bit below the time, and few of the time: scheduled times have some zeros too, but not so many.
        let zero = count(&|id| id & low == 0) as f64;
        let needed = kept.iter().map(|id| u64::BITS - id.leading_zeros() - 24).min().unwrap_or(0).saturating_sub(bits.time_shift);
        let singles = count(&is_single_in_full);
        let surety = excess(singles, zero / f64::from(1_u32 << needed.min(31)) + 0.01);
        let single = (surety >= PERHAPS).then(|| Share::new(singles, kept.len() as u64, singles, surety, "by a 32-bit float"));
        DECIMAL
            .into_iter()
            .zip(expected)
            .filter_map(|(mark, expected)| of(mark, expected))
            .chain(single)
            .max_by(|a, b| a.surety.total_cmp(&b.surety))
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

    fn new(excess: u64, ids: u64, count: u64, surety: f64, by: &'static str) -> Self {
        let ids = ids.max(1) as f64;
        Share { share: excess as f64 / ids, error: 2.0 * (count as f64).sqrt() / ids, by, surety }
    }
}

impl Lost {
    /// Sequences that end with the zeros of a double, and are not 0 unless ticks begin anywhere.
    fn lattice(&self, bits: &Bits, lost: u32) -> Option<Share> {
        // Each class of zeros says how many end with at least `lost`: half as many as the class before that.
        let of_class = |(zeros, count): (usize, &u64)| *count as f64 / f64::from(1_u32 << (lost as usize - 1 - zeros));
        let expected = self.below[..lost as usize].iter().enumerate().map(of_class).fold(0.0, f64::max);
        let zero = if bits.starts.is_some_and(|starts| starts >= 1 << lost) { self.zero } else { 0 };
        let all = self.exact + self.above + zero;
        // Blocks of sequences begin with more zeros than that.
        let is_block = excess(self.exact, expected / 2.0 + 0.5) < SURELY / 4.0 && zero == 0;
        let surety = if is_block { 0.0 } else { excess(all, expected + 1.0) };
        (surety >= PERHAPS).then(|| Share::new(all.saturating_sub(expected as u64), self.ids, all, surety, BY_DOUBLE))
    }

    /// Sequence 0, where ticks begin with any of several.
    fn starts(&self, bits: &Bits, lost: u32) -> Option<Share> {
        let others = bits.starts?.min(1 << (lost - 1)).checked_sub(1).filter(|others| *others > 0)? as f64;
        let early = self.early as f64;
        let expected = (early + 2.0 * (early + 1.0).sqrt()) / others + 0.5;
        let surety = excess(self.zero, expected);
        (surety >= PERHAPS).then(|| Share::new(self.zero.saturating_sub((early / others) as u64), self.ids, self.zero, surety, BY_DOUBLE))
    }
}

/// Node numbers that end with zeros, in the lowest field.
fn of_nodes(lost: u32, nodes: &[(u64, u64)]) -> Option<Share> {
    let (unit, half) = (1_u64 << lost, 1_u64 << (lost - 1));
    let ids: u64 = nodes.iter().map(|(_, ids)| ids).sum();
    let (round, others): (Vec<_>, Vec<_>) = nodes.iter().partition(|(number, _)| number.is_multiple_of(unit));
    let share = |count: u64, surety| Some(Share::new(count, ids, count, surety, BY_DOUBLE));
    let all = |numbers: &[(u64, u64)]| numbers.iter().map(|(_, ids)| ids).sum::<u64>();
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
    if surety < 2.0 || count * 50 < ids { None } else { share(count, surety) }
}
