//! The time in which a tick that a clock showed certainly lasts.

/// A tick, or a range of counts in which the tick certainly lasts. It is one word, so that it is read whole.
///
/// A range is its begin and its length in units of `1 << UNIT` counts. Length 0 marks the number of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Validity(u64);

/// The counts of a validity in two words; empty for the number of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CountRange {
    begin: u64,
    length: u64,
}

impl CountRange {
    pub(crate) const NONE: CountRange = CountRange { begin: 0, length: 0 };

    pub(super) fn are_some(self) -> bool {
        self.length > 0
    }

    /// Does the same as [`Validity::holds`].
    #[inline(always)]
    pub(super) fn hold(self, count: u64) -> bool {
        count.wrapping_sub(self.begin) < self.length
    }
}

impl Validity {
    /// The unit of a range. A millisecond has some 3,000,000 counts on x86-64, and 24,000 to
    /// 1,000,000 on AArch64. It fits into the length, and a unit is a small part of it.
    const UNIT: u32 = if cfg!(target_arch = "x86_64") { 11 } else { 10 };
    const LENGTH: u64 = (1 << Self::UNIT) - 1;
    /// A validity that no clock shows.
    pub(crate) const NONE: Validity = Validity(u64::MAX);

    /// Returns the range from a count on in which certainly fewer than `counts` have passed; `None` below one unit.
    pub(super) fn of_counts(from: u64, counts: u64) -> Option<Self> {
        let begin = from >> Self::UNIT;
        // The length is rounded down, so that the range never ends late.
        let length = (from.saturating_add(counts) >> Self::UNIT) - begin;
        (length > 0).then_some(Validity(begin << Self::UNIT | length.min(Self::LENGTH)))
    }

    /// Returns the validity of a tick whose clock must be read each time. Ticks end with the year 9999, long before they fill the word.
    pub(crate) fn of_tick(tick: u64) -> Self {
        Validity(tick << Self::UNIT)
    }

    /// Returns the number of the tick. It has no meaning for a range of counts.
    pub(crate) fn tick(self) -> u64 {
        self.0 >> Self::UNIT
    }

    #[inline(always)]
    pub(crate) fn is_of_counts(self) -> bool {
        self.0 & Self::LENGTH != 0
    }

    /// Returns whether a count is in the range. False for a count before its begin.
    #[inline(always)]
    pub(super) fn holds(self, count: u64) -> bool {
        (count >> Self::UNIT).wrapping_sub(self.0 >> Self::UNIT) < self.0 & Self::LENGTH
    }

    /// Returns the range in two words. Comparing them takes a fourth of the instructions.
    pub(crate) fn counts(self) -> CountRange {
        CountRange { begin: self.0 & !Self::LENGTH, length: (self.0 & Self::LENGTH) << Self::UNIT }
    }

    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    #[inline(always)]
    pub(crate) fn from_bits(bits: u64) -> Self {
        Validity(bits)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const UNIT: u64 = 1 << Validity::UNIT;

    #[test]
    fn validity_holds_from_its_begin_and_never_beyond_its_end() {
        for (from, counts) in
            [(0, UNIT), (1, UNIT), (5 * UNIT, 3 * UNIT), (7 * UNIT + 1, 40 * UNIT - 1), (u64::MAX >> 2, 3_000_000), (9, u64::MAX)]
        {
            let validity = Validity::of_counts(from, counts).expect("a unit or more");
            assert!(validity.holds(from), "{from} {counts}");
            assert!(!validity.holds(from.saturating_add(counts)), "{from} {counts}");
            assert!(!validity.holds((from & !(UNIT - 1)).wrapping_sub(1)), "{from} {counts}: before");
            let (begin, units) = (validity.0 & !Validity::LENGTH, validity.0 & Validity::LENGTH);
            for count in [begin.wrapping_sub(1), begin, begin + units * UNIT - 1, begin + units * UNIT] {
                assert_eq!(validity.counts().hold(count), validity.holds(count), "{from} {counts}: {count}");
            }
        }
        let validity = Validity::of_counts(1000 * UNIT, 500 * UNIT).expect("500 units");
        assert!([1000, 1001, 1499].iter().all(|units| validity.holds(units * UNIT)));
        assert!([0, 999, 1500, 1 << 40].iter().all(|units| !validity.holds(units * UNIT)));
    }

    #[test]
    fn counts_below_a_unit_give_no_validity() {
        for (from, counts) in [(0, 0), (0, UNIT - 1), (1, UNIT - 2), (u64::MAX, u64::MAX)] {
            assert_eq!(Validity::of_counts(from, counts), None, "{from} {counts}");
        }
    }

    #[test]
    fn tick_is_not_a_validity_of_counts() {
        assert!([0, 1, u64::MAX >> Validity::UNIT].iter().all(|tick| !Validity::of_tick(*tick).is_of_counts()));
        assert!((0..64).all(|shift| !Validity::NONE.holds(1 << shift)) && !Validity::NONE.holds(0) && !Validity::NONE.holds(u64::MAX >> 1));
    }
}
