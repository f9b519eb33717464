//! What an operator says after a store was restored, wiped or replaced: that it counts from now on.

use super::contract::Purpose;
use super::holder::BEGINNING_MS;
use super::record::Meta;
use crate::error::{Error, ErrorKind, Result};
use crate::store::{Loaded, Swap};

/// The write that begins a new incarnation in a namespace as it stands, and the record that it writes.
///
/// It takes over the layout, W and A, and says since when something may have been lost. So every lease
/// that is taken later begins above all bounds of the store before (the *floor*), and processes that
/// hold one lease anew. `now_ms` is this machine's time, which counts where the store has none.
///
/// # Errors
/// `STORE_CORRUPT` for a record that cannot be read; `STORE_UNSUITABLE` for disposable numbers, which a
/// floor does not keep apart.
pub(crate) fn accept(meta: &str, loaded: &Loaded, now_ms: i64, nonce: u64) -> Result<(Meta, Swap)> {
    let before = Meta::parse(meta)?;
    if Purpose::parse(&before.layout).is_ok_and(|purpose| purpose.disposable.is_some()) {
        let why = "its numbers are disposable, and the store may have forgotten which were given out: use another namespace";
        return Err(Error::new(ErrorKind::StoreUnsuitable, why));
    }
    // As for any record that begins an incarnation: written before `since`, so that `since` lies after
    // the loss whenever the write arrives.
    let since_ms = loaded.time_ms.unwrap_or(now_ms).max(1) + BEGINNING_MS;
    let after = Meta { nonce, server: loaded.server.clone(), since_ms, ..before };
    let swap = Swap::of_meta(loaded.server.clone(), Some(meta.to_owned()), after.to_string(), since_ms);
    Ok((after, swap))
}

#[cfg(test)]
mod tests {
    use super::super::holder::CLOCK_ERROR_MS;
    use super::*;
    use crate::store::Key;

    fn meta(layout: &str) -> String {
        format!("1 nonce=0000000000000001 server=old since=0 window=3001 allowance=3000 layout={layout}")
    }

    #[test]
    fn a_new_incarnation_keeps_the_times_and_the_layout() {
        let text = meta("time:41@1ms node:10 sequence:12 epoch:0");
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
    fn what_no_floor_helps_is_refused() {
        let kind = |text: &str| accept(text, &Loaded::default(), 1, 7).unwrap_err().kind();
        assert_eq!(kind(&meta("time:41@1ms node:10 sequence:12 epoch:0 lease=disposable given=")), ErrorKind::StoreUnsuitable);
        assert_eq!(kind("2 whatever"), ErrorKind::StoreCorrupt);
    }
}
