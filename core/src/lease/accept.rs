//! An operator's statements: that no ID was issued yet, or that a restored, wiped or replaced store may be used again.

use super::contract::{Contract, Purpose};
use super::protocol::{BEGINNING_MS, Protocol};
use super::record::{ERA_KEYS, Meta, Slot, Tenure, version_after};
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_store::{Key, LEAVE, Loaded, Swap};
use std::time::Duration;

/// The write that begins a new incarnation in a namespace, and the record that it writes.
///
/// The record takes over the layout, W and A, and holds the time before which writes may have been lost. So every later lease begins above
/// all bounds of the store before (the *floor*). Processes that hold a lease have to confirm it again. `now_ms` is this machine's time, for
/// stores without a clock.
///
/// # Errors
/// `STORE_CORRUPT` for a record that cannot be read; `STORE_UNSUITABLE` for disposable numbers, which a floor does not keep apart.
pub fn accept(meta: &str, loaded: &Loaded, now_ms: i64, nonce: u64) -> Result<(Meta, Swap)> {
    let before = Meta::parse(meta)?;
    if Purpose::parse(&before.layout).is_ok_and(|purpose| purpose.disposable.is_some()) {
        let why = format!("its numbers are disposable, and the store may have forgotten which were given out: {LEAVE}");
        return Err(Error::new(ErrorKind::StoreUnsuitable, why));
    }
    // Like any record that begins an incarnation, it must be written before `since`. So `since` is after the loss, whenever the write
    // arrives.
    let since_ms = loaded.time_ms.unwrap_or(now_ms).max(1) + BEGINNING_MS;
    let after = Meta { nonce, server: loaded.server.clone(), since_ms, ..before };
    let swap = Swap::of_meta(loaded.server.clone(), Some(meta.to_owned()), after.to_string(), since_ms);
    Ok((after, swap))
}

/// The write that begins a namespace for programs that open this lease. An operator states that no ID of the namespace was ever issued. So
/// no start has to wait for IDs that the store may have forgotten.
///
/// # Errors
/// `CONFLICT` for a namespace that exists.
pub fn begin(contract: &Contract, loaded: &Loaded) -> Result<Option<Swap>> {
    if loaded.meta.is_some() || !loaded.slots.is_empty() {
        let why = "it was begun before, and IDs of it may have been issued: wait until its first leases begin";
        return Err(Error::new(ErrorKind::Conflict, why));
    }
    Protocol::beginning(contract.terms.clone(), loaded)
}

/// The time for which the first start of a namespace waits, because the store may have forgotten issued IDs. `None` if it does not wait.
pub fn first_wait(contract: &Contract, loaded: &Loaded) -> Option<Duration> {
    let first = Protocol::first(contract.terms.clone(), loaded).ok().flatten().filter(|_| loaded.meta.is_none())?;
    let begins_ms = Meta::parse(&first.new).ok()?.begins_ms()?;
    u64::try_from(begins_ms - loaded.time_ms?).ok().map(Duration::from_millis)
}

/// A bound that has to be set back, and the write that does it.
pub struct SetBack {
    pub node: u64,
    pub holder: String,
    /// The time at which the bound would have passed (Unix ms).
    pub end_ms: i64,
    pub swap: Swap,
}

/// The bounds above the floor of an incarnation that was just begun. Only a clock that was ahead can have confirmed them. Their numbers
/// would be held until the bounds have passed.
///
/// Each number is released with the floor as its bound, and with a version that its holder takes for a loss. IDs with later stamps that
/// were issued under the number may be issued again when their time comes. So only an operator can decide this.
pub fn set_back(meta: &Meta, loaded: &Loaded) -> Vec<SetBack> {
    std::iter::once(meta.clone()).chain(meta.next()).flat_map(|era| set_back_in(&era, meta, loaded)).collect()
}

/// Those of an era, which is that of the record or the next one.
fn set_back_in(era: &Meta, meta: &Meta, loaded: &Loaded) -> Vec<SetBack> {
    let (Ok(Purpose { layout, .. }), Some(floor_ms)) = (Purpose::parse(&era.layout), meta.begins_ms()) else { return Vec::new() };
    let Ok(floor) = layout.tick_of(floor_ms) else { return Vec::new() };
    let bits = layout.sequence().bits();
    let far = era.slots(&loaded.slots).into_iter().filter_map(|(node, text)| {
        let slot = Slot::parse(node, &text).ok().filter(|slot| slot.tenure != Tenure::Count && slot.bound >> bits > floor)?;
        let end_ms = layout.stamp_end_ms(slot.bound);
        let back =
            Slot { tenure: Tenure::Free, version: version_after(slot.version, 1), bound: floor << bits | layout.sequence().max(), ..slot };
        let key = Key::Slot(era.eras().number * ERA_KEYS + node);
        let swap = Swap::at_any_time(Some(meta.to_string()), loaded.server.clone(), key, Some(text), back.to_string());
        Some(SetBack { node, holder: back.holder, end_ms, swap })
    });
    far.collect()
}

#[cfg(test)]
mod tests {
    use super::super::record::CLOCK_ERROR_MS;
    use super::*;
    use frazil_store::Key;

    fn meta(layout: &str) -> String {
        format!("1 nonce=0000000000000001 server=old since=0 window=3001 allowance=3000 layout={layout}")
    }

    #[test]
    fn new_incarnation_keeps_the_times_and_the_layout() {
        let text = meta("time:41@1ms node:10 sequence:12 epoch:1970-01-01");
        let clock = Loaded { server: "new".to_owned(), time_ms: Some(5_000), ..Loaded::default() };
        let (after, swap) = accept(&text, &clock, 9_000, 7).unwrap();
        assert_eq!(after, Meta { nonce: 7, server: "new".to_owned(), since_ms: 7_000, ..Meta::parse(&text).unwrap() });
        assert_eq!((swap.meta, swap.old, swap.latest_ms), (Some(text.clone()), Some(text.clone()), 7_000));
        assert_eq!((swap.server.as_str(), swap.key, swap.new), ("new", Key::Meta, after.to_string()));
        assert_eq!(after.begins_ms(), Some(7_000 + 3_001 + 3_000 + CLOCK_ERROR_MS));
        let (after, _) = accept(&text, &Loaded { time_ms: None, ..clock }, 9_000, 7).unwrap();
        assert_eq!(after.since_ms, 11_000, "this machine's time");
    }

    #[test]
    fn bounds_that_only_a_wrong_clock_confirmed_are_set_back_to_the_floor() {
        let meta = Meta::parse(&meta("time:41@1ms node:10 sequence:12 epoch:1970-01-01").replace("since=0", "since=10000")).unwrap();
        let floor_ms = meta.begins_ms().unwrap() as u64;
        let record = |tenure, end_ms: u64| Slot { tenure, token: 7, version: 3, bound: end_ms << 12 | 4095, holder: "h:1".to_owned() };
        let years = floor_ms + 5 * 365 * 86_400_000;
        let slots = [(1, Tenure::Held, floor_ms), (2, Tenure::Held, years), (3, Tenure::Free, years), (4, Tenure::Count, years)];
        let slots = slots.map(|(node, tenure, end_ms)| (node, record(tenure, end_ms).to_string()));
        let loaded = Loaded { server: "s".to_owned(), slots: slots.to_vec(), ..Loaded::default() };
        let back = set_back(&meta, &loaded);
        assert_eq!(back.iter().map(|back| back.node).collect::<Vec<_>>(), [2, 3]);
        let written = Slot::parse(2, &back[0].swap.new).unwrap();
        assert_eq!(written, Slot { tenure: Tenure::Free, version: 4, bound: floor_ms << 12 | 4095, ..record(Tenure::Held, years) });
        assert_eq!((back[0].swap.old.as_ref(), back[0].swap.meta.clone()), (Some(&slots[1].1), Some(meta.to_string())));
        assert_eq!((back[0].end_ms, back[0].holder.as_str()), (years as i64 + 1, "h:1"));
        // A version that leaves no room for a later one, which an outsider may have written.
        let last = Slot { version: u64::MAX - 1, ..record(Tenure::Held, years) };
        let back = set_back(&meta, &Loaded { slots: vec![(2, last.to_string())], ..loaded.clone() });
        assert!(Slot::parse(2, &back[0].swap.new).is_ok_and(|slot| slot.tenure == Tenure::Free));
        // Without a floor, no bound counts as above it.
        assert!(set_back(&Meta { since_ms: 0, ..meta }, &loaded).is_empty());
    }

    #[test]
    fn accept_refuses_disposable_and_unreadable_records() {
        let kind = |text: &str| accept(text, &Loaded::default(), 1, 7).unwrap_err().kind();
        assert_eq!(kind(&meta("time:41@1ms node:10 sequence:12 epoch:1970-01-01 lease=disposable given=")), ErrorKind::StoreUnsuitable);
        assert_eq!(kind("2 whatever"), ErrorKind::StoreCorrupt);
    }
}
