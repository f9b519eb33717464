//! A lease that ended because its record no longer stands in the store.
//!
//! A lease is used only while its own record stands. The protocol lets another process replace the record once its bound has passed; then the
//! words of both are disjoint. A record that is gone or replaced *before* that was removed or changed from outside. A process that takes the
//! number meanwhile knows nothing of the bound, so words from the last confirmed write on may be issued twice. The generator is frozen at once.

use super::super::record::Slot;
use super::{Held, Holder, Now, State};

/// The end of a lease that was not released.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Loss {
    pub(crate) node: u64,
    pub(crate) token: u64,
    /// The record that stands in its place, if there is one.
    pub(crate) by: Option<Slot>,
    /// The first word that another process may have issued, too.
    pub(crate) from: u64,
    /// True where the bound had passed, so that the protocol allowed another process to take the number.
    pub(crate) orderly: bool,
}

impl Loss {
    fn new(held: &Held, by: Option<Slot>, now: Now, bits: u32) -> Self {
        Loss {
            node: held.grant.node,
            token: held.grant.token,
            orderly: by.is_some() && now.tick > held.grant.bound >> bits,
            by,
            from: held.grant.first.max(held.at.0 << bits),
        }
    }
}

impl Holder {
    /// Ends the lease, because its record was replaced by another one or is gone.
    pub(super) fn lose(&mut self, by: Option<Slot>, now: Now) {
        if let Some(held) = self.held.take() {
            self.loss = Some(Loss::new(&held, by, now, self.terms.layout.sequence().bits()));
            self.avoided = Some(held.grant.node).filter(|_| self.terms.candidates.count() > 1);
        }
        self.state = State::Seek;
    }

    /// Ends the lease, because its bound passed before it could be confirmed in a store that had lost writes.
    pub(super) fn expire(&mut self, now: Now) {
        self.lose(None, now);
        if let Some(loss) = &mut self.loss {
            loss.orderly = true;
        }
    }

    /// The last loss, once.
    pub(crate) fn take_loss(&mut self) -> Option<Loss> {
        self.loss.take()
    }
}
