//! The one connection to a store that a process has.

use crate::error::{Error, ErrorKind, Result};
use crate::store::{Address, Store};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// A store as one thread reaches it: connects when it is first asked, and again after an error.
pub(crate) struct Line {
    address: Address,
    /// A connection for each timeout that is asked for.
    stores: Vec<(Duration, Box<dyn Store>)>,
    /// Nothing is asked of a store that did not answer, for a while: many leases would wait in turn.
    down: Option<(Instant, Error)>,
}

impl Line {
    pub(crate) fn new(address: Address) -> Self {
        Line { address, stores: Vec::new(), down: None }
    }

    /// One call of the store, which takes at most `timeout`.
    ///
    /// # Errors
    /// `STORE_*`; `INTERNAL` for a panic, which must not end what else uses the line.
    pub(crate) fn call<T>(&mut self, timeout: Duration, work: impl FnOnce(&mut dyn Store) -> Result<T>) -> Result<T> {
        if let Some((until, error)) = &self.down {
            if Instant::now() < *until {
                return Err(error.clone());
            }
            self.down = None;
        }
        let kept = self.stores.iter().position(|(kept, _)| *kept == timeout);
        let mut store = kept.map(|at| self.stores.swap_remove(at).1);
        let result = catch_unwind(AssertUnwindSafe(|| {
            let store = match &mut store {
                Some(store) => store,
                None => store.insert(self.address.connect(timeout)?),
            };
            work(store.as_mut())
        }));
        let result = result.unwrap_or_else(|panic| {
            let error = Error::from_panic(panic.as_ref());
            Err(Error::new(error.kind(), format!("store={}: {error}", self.address)))
        });
        match (&result, store) {
            (Ok(_), Some(store)) => self.stores.push((timeout, store)),
            // It answers, and others were first.
            (Err(error), Some(store)) if is_busy(error) => self.stores.push((timeout, store)),
            (Err(error), _) if error.kind() == ErrorKind::StoreUnreachable => {
                self.stores.clear();
                self.down = Some((Instant::now() + timeout / 4, error.clone()));
            }
            _ => {}
        }
        result
    }
}

/// Whether a store is only used by many at once: it says when to come back.
pub(super) fn is_busy(error: &Error) -> bool {
    error.kind() == ErrorKind::StoreUnreachable && error.retry_after().is_some()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_a_store_is_an_error_like_any_other() {
        let mut line = Line::new(Address::parse("memory").unwrap());
        let timeout = Duration::from_secs(1);
        assert!(line.call(timeout, |_| Ok(())).is_ok());
        let error = line.call(timeout, |_| -> Result<()> { panic!("no such row") }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(error.to_string().starts_with("store=memory: ") && error.to_string().contains("no such row"), "{error}");
        assert!(line.stores.is_empty(), "what panicked is not used again");
        assert!(line.call(timeout, |_| Ok(())).is_ok());
    }
}
