//! A namespace that holds node numbers for another layout or kind of lease.
//!
//! Numbers that are leased from two namespaces, or for two layouts, may be equal, and their IDs as well. The IDs of both differ only if one
//! side has ended and the other begins above its highest ID. For that, the second layout must have reached that ID.

use super::super::record::Meta;
use super::Terms;
use crate::id::layout::Layout;
use frazil_base::error::{Error, ErrorKind, shell_word};
use frazil_base::time::show_instant;

/// The text between the layout and the names of the given fields, where numbers are disposable.
pub(crate) const DISPOSABLE: &str = " lease=disposable given=";
const FOLLOW: &str = "stop all processes that use the namespace, let queues and offline clients write what they hold, and start each with \
    another namespace=NAME and after= the highest ID of all that";
const CHANGED: &str = "the layout was changed, so start the program with the first one; or, ";

impl Terms {
    /// `LAYOUT_MISMATCH`.
    pub(super) fn mismatch(&self, meta: &Meta, now_ms: i64) -> Error {
        let (what, remedy) = self.other_use(meta, now_ms);
        Error::new(ErrorKind::LayoutMismatch, format!("{what}: {remedy}"))
    }

    /// Describes the use of a namespace that is not for these terms, or not any more, and the remedy.
    pub(crate) fn other_use(&self, meta: &Meta, now_ms: i64) -> (String, String) {
        let (ours, eras) = (&self.purpose, meta.eras());
        let has_next = !eras.next.is_empty() && (meta.layout == *ours || eras.is_open && eras.at_ms <= now_ms);
        let theirs = if has_next { eras.next } else { &meta.layout };
        let what = format!("the namespace holds node numbers for \"{theirs}\", not for \"{ours}\"");
        let changed = if has_next || eras.number > 0 { CHANGED } else { "" };
        let how = match self.cannot_follow(theirs, now_ms) {
            Some(why) => why,
            None if self.disposable => FOLLOW.to_owned(),
            None => {
                let change = self.command(&format!("--change-layout {}", shell_word(ours)));
                format!("run {change}, which changes the layout while processes run; if it refuses, {FOLLOW}")
            }
        };
        (what, format!("{changed}if IDs of both fill one table, {how}; for other tables, give another namespace=NAME"))
    }

    /// Explains that this layout cannot follow, if it does not reach the highest ID that the layout of `theirs` is about to make.
    fn cannot_follow(&self, theirs: &str, now_ms: i64) -> Option<String> {
        let old = Layout::parse(theirs.split(DISPOSABLE).next()?).ok()?;
        let id = old.max_id(old.expires_at_ms().map_or(now_ms, |end_ms| now_ms.min(end_ms - 1))).ok()?;
        let reached = match self.layout.time_of(id) {
            Ok((_, at_ms)) if at_ms.saturating_sub(now_ms) <= self.allowance_ms as i64 => return None,
            Ok((_, at_ms)) => format!("before {}", show_instant(at_ms)),
            Err(_) => "at any time".to_owned(),
        };
        Some(format!(
            "this layout cannot follow: it makes no ID above those of now, such as {id}, {reached}, and refuses after={id}. Keep the old \
             layout there, or use one with larger IDs (an earlier epoch, shorter ticks, or more bits below the time)"
        ))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::super::record::Eras;
    use super::*;

    const NOW_MS: i64 = 1_800_000_000_000;
    const OLD: &str = "time:41@1ms node:10 sequence:12 epoch:2025-01-01";

    fn remedy(old: &str, new: &str) -> String {
        let layout = Layout::parse(old).map(|old| old.to_string()).unwrap_or_default();
        Terms::of_a_test(new, false).other_use(&of(&layout), NOW_MS).1
    }

    fn of(layout: &str) -> Meta {
        Meta::parse(&format!("1 nonce=0 server= since=0 window=0 allowance=0 layout={layout}")).expect("a record")
    }

    #[test]
    fn layout_mismatch_says_whether_the_layout_can_follow() {
        for new in ["time:41@1ms node:8 sequence:14 epoch:2025-01-01", "time:41@1ms worker:10 sequence:12 epoch:2025-01-01"] {
            let (text, layout) = (remedy(OLD, new), Layout::parse(new).unwrap());
            assert!(
                text.contains(&format!("--namespace default --change-layout '{layout}'`")) && !text.contains("cannot"),
                "{new}: {text}"
            );
        }
        for new in [
            "time:41@1ms node:2 sequence:20 epoch:2024-01-01",
            "time:40@1ms node:10 sequence:13 epoch:2025-01-01",
            // An ID made now is at most a tick ahead.
            "time:40@2ms node:10 sequence:13 epoch:2025-01-01",
        ] {
            let text = remedy(OLD, new);
            assert!(text.contains("after= the highest ID") && !text.contains("cannot"), "{new}: {text}");
        }
        let id = Layout::parse(OLD).unwrap().max_id(NOW_MS).unwrap();
        for (new, at) in [
            ("time:41@1ms node:10 sequence:12 epoch:2026-01-01", "before 2028-01-15"),
            ("time:40@10ms node:10 sequence:12 epoch:2025-01-01", "before 20"),
            ("time:41@1ms node:8 sequence:12 epoch:2025-01-01", "before 20"),
            ("time:35@1s node:8 sequence:8 epoch:2025-01-01", "at any time"),
        ] {
            let text = remedy(OLD, new);
            assert!(text.contains("cannot follow") && text.contains(at) && text.contains(&format!("after={id}")), "{new}: {text}");
            let back = remedy(new, OLD);
            assert!(back.contains("after= the highest ID"), "the other way round it can: {new}");
        }
        // Its last IDs reach 2^63 - 1.
        let text = remedy("baidu", "time:28@1s worker:22 sequence:13 epoch:2026-01-01");
        assert!(text.contains("cannot follow") && text.contains("9223372036854775807"), "{text}");
    }

    #[test]
    fn layout_mismatch_concerns_the_kind_of_lease_too() {
        let terms = Terms::of_a_test(OLD, false);
        let (what, remedy) = terms.other_use(&of(&format!("{}{DISPOSABLE}", terms.purpose)), NOW_MS);
        assert!(what.contains("lease=disposable") && remedy.contains("after= the highest ID"), "{what}: {remedy}");
    }

    #[test]
    fn layout_mismatch_after_a_change_names_the_new_layout() {
        let terms = Terms::of_a_test(OLD, false);
        let new = Layout::parse("time:41@1ms node:8 sequence:14 epoch:2025-01-01").unwrap().to_string();
        let eras = Eras { at_ms: NOW_MS, is_open: true, next: &new, ..Eras::default() };
        let changed = Meta { changes: eras.text(1), ..of(&terms.purpose) };
        let other = Terms::of_a_test("time:41@1ms other:10 sequence:12 epoch:2025-01-01", false);
        for (terms, meta) in [(&terms, &changed), (&terms, &changed.next().unwrap()), (&other, &changed)] {
            let (what, remedy) = terms.other_use(meta, NOW_MS);
            assert!(what.starts_with(&format!("the namespace holds node numbers for \"{new}\", not")), "{what}");
            assert!(remedy.starts_with("the layout was changed, so start the program with the first one; or, if IDs"), "{remedy}");
        }
        let (what, remedy) = other.other_use(&changed, NOW_MS - 1);
        assert!(what.contains(&format!("for \"{}\", not", terms.purpose)) && remedy.starts_with("if IDs of both"), "{what}: {remedy}");
    }
}
