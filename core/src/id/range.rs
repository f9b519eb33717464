//! The IDs of a range of time, for queries.

use crate::id::Id;
use crate::id::layout::Layout;
use frazil_base::error::Result;
use frazil_base::error::spec_error;
use frazil_base::time::show_instant;

/// The first and the last ID of a range of time, in Unix ms: from one instant up to, but not including, another. Without the first
/// instant, the range begins with the smallest ID. Without the second, it ends with the largest. Errors name the instants by their keys.
///
/// # Errors
/// `SPEC` if the first is not before the second, or no ID of the layout has such a time; `LAYOUT_EXPIRED` if the layout ended before the
/// first.
pub fn id_range(layout: &Layout, keys: [&str; 2], from_ms: Option<i64>, to_ms: Option<i64>) -> Result<(Id, Id)> {
    check_order(keys, from_ms, to_ms)?;
    let (epoch_ms, last_ms) = (layout.epoch_ms(), layout.tick_start_ms(layout.last_tick()));
    // The first ID of the tick that holds the instant. Before the epoch, IDs do not exist.
    let first = from_ms.filter(|&from| from > epoch_ms).map_or(Ok(Id::from_bits(0)), |from| layout.min_id(from))?;
    // The last ID of the last tick that begins before the end.
    let last = match to_ms {
        Some(to) if to <= epoch_ms => None,
        Some(to) if to <= last_ms => Some(layout.max_id(to - 1)?),
        _ => Some(layout.max_id(last_ms)?),
    };
    last.filter(|&last| last >= first).map(|last| (first, last)).ok_or_else(|| {
        let (from, to) = (show_instant(epoch_ms), show_instant(last_ms));
        spec_error(format!("no ID of the layout has such a time: its time goes from {from} to {to}"))
    })
}

/// # Errors
/// `SPEC` if the first is not before the second.
pub fn check_order([from_key, to_key]: [&str; 2], from_ms: Option<i64>, to_ms: Option<i64>) -> Result<()> {
    match from_ms.zip(to_ms) {
        Some((from, to)) if from >= to => {
            Err(spec_error(format!("{from_key}={} is not before {to_key}={}", show_instant(from), show_instant(to))))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_goes_from_its_first_instant_to_the_millisecond_before_its_second() {
        let (layout, from) = (Layout::parse("standard").unwrap(), 1_767_225_600_000);
        let (first, last) = id_range(&layout, ["from", "to"], Some(from), Some(from + 10)).unwrap();
        assert_eq!((first, last), (layout.min_id(from).unwrap(), layout.max_id(from + 9).unwrap()));
        let (_, last) = id_range(&layout, ["from", "to"], Some(from), Some(from + 1)).unwrap();
        assert_eq!(last, layout.max_id(from).unwrap());
    }
}
