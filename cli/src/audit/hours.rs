//! The IDs of each period, and of each hour for a plot of at most two days.

use std::collections::BTreeMap;

pub(super) const HOUR_MS: i64 = 3_600_000;
const MOST_HOURS: i64 = 48;

/// The number of IDs of each source by periods since 1970.
pub(super) type Periods = BTreeMap<i64, Vec<u64>>;

/// Counts IDs of one of the sources, and returns whether it is the period's first.
#[inline]
pub(super) fn count(periods: &mut Periods, period: i64, count: u64, source: usize, sources: usize) -> bool {
    // IDs come in order, so most belong to the last period.
    if let Some(mut last) = periods.last_entry()
        && *last.key() == period
    {
        last.get_mut()[source] += count;
        return false;
    }
    let ids = periods.entry(period).or_default();
    let is_first = ids.is_empty();
    ids.resize(sources, 0);
    ids[source] += count;
    is_first
}

/// The IDs by hours; nothing once they cover more than two days.
pub(super) struct Hours(Option<Periods>);

impl Default for Hours {
    fn default() -> Self {
        Hours(Some(Periods::new()))
    }
}

impl Hours {
    #[inline]
    pub(super) fn take(&mut self, unix_ms: i64, ids: u64, source: usize, sources: usize) {
        let Some(hours) = &mut self.0 else { return };
        if count(hours, unix_ms.div_euclid(HOUR_MS), ids, source, sources) {
            let ends = hours.first_key_value().zip(hours.last_key_value());
            if ends.is_some_and(|((first, _), (last, _))| last - first >= MOST_HOURS) {
                self.0 = None;
            }
        }
    }

    /// The hours from the first to the last, also those without an ID.
    pub(super) fn all(&self, sources: usize) -> Option<Vec<(i64, Vec<u64>)>> {
        let hours = self.0.as_ref()?;
        let (first, last) = (*hours.first_key_value()?.0, *hours.last_key_value()?.0);
        Some((first..=last).map(|hour| (hour, hours.get(&hour).cloned().unwrap_or_else(|| vec![0; sources]))).collect())
    }
}
