//! A lost lease: its event in the log, with the IDs that may be duplicates, and its note in the store.

use super::{LeaseTask, Stage};
use crate::lease::environment::Process;
use crate::lease::overlap::Overlap;
use crate::lease::protocol::Loss;
use crate::observe::event::{self, Level};
use frazil_base::time::show_instant;

impl LeaseTask {
    /// Freezes the generator of a lease whose record was replaced or removed, and logs what that means for its IDs.
    pub(super) fn lose(&mut self, loss: &Loss) {
        let next = match &self.stage {
            Stage::Serving { shared, owner, token, .. } if *token == loss.token => shared.generator.lease.freeze(owner),
            // Nothing was issued under the lease.
            _ => None,
        };
        let (node, token) = (loss.node, loss.token);
        let mut fields = vec![("node", node.to_string()), ("token", format!("{token:016x}"))];
        let by = match &loss.by {
            Some(slot) => {
                fields.extend([("other_token", format!("{:016x}", slot.token)), ("other_holder", slot.holder.clone())]);
                format!("was taken by {}", slot.holder)
            }
            None if loss.orderly => "cannot be renewed, because the layout changed or the store lost writes".to_owned(),
            None => "has no valid record in the store".to_owned(),
        };
        if loss.orderly {
            let when = if loss.by.is_some() { " after its bound had passed" } else { "" };
            let text = format!("node number {node} {by}{when}: it makes no more IDs");
            return self.log(Level::Warning, event::LEASE_LOST, |_| (text, fields));
        }
        let layout = &self.contract.terms.layout;
        let start_ms = |stamp: u64| layout.tick_start_ms(stamp >> layout.sequence().bits());
        let last = next.and_then(|next| next.checked_sub(1)).filter(|last| *last >= loss.from);
        let repeated = match last.map(|last| (start_ms(loss.from), start_ms(last))) {
            Some((from_ms, to_ms)) => {
                let (from, to) = (show_instant(from_ms), show_instant(to_ms));
                let text = format!("IDs of {from} to {to} may have been issued twice");
                fields.extend([("from", from), ("to", to)]);
                let (other, by) = loss.by.as_ref().map_or((0, String::new()), |slot| (slot.token, slot.holder.clone()));
                let holder = self.protocol.name().to_owned();
                self.note = Some((Overlap { node, token, other, from_ms, to_ms, holder, by }, 0));
                text
            }
            None => "no ID was issued under it since its record was last confirmed".to_owned(),
        };
        let text = format!(
            "node number {node} {by} before its bound had passed: its record was removed or changed from outside, or the store was restored \
             from a backup; it makes no more IDs; {repeated}"
        );
        self.log(Level::Error, event::LEASE_LOST, |_| (text, fields));
    }

    /// Takes the outcome of writing a note. A failed note is written again later, while the generator is open.
    pub(in crate::lease) fn noted(&mut self, written: bool, process: &Process) {
        let due = process.environment.mono_ms() + self.contract.terms.renew_ms;
        self.note = self.note.take().filter(|_| !written && !self.is_leaving()).map(|(overlap, _)| (overlap, due));
    }
}
