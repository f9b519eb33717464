//! The limit on requests that wait for IDs, such that one name's never use up what another's need.
//!
//! A name may have as many of them as places are free: alone half of all, with one other a third each. This is the dynamic threshold
//! of switches that share their memory between ports (Choudhury and Hahne, 1998), with a factor of 1.

use frazil::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The places of all names; the core's thread polls all waiting calls.
const PLACES: usize = 32_768;

static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// The waiting requests of a name.
#[derive(Default)]
pub struct Waiters(AtomicUsize);

impl Waiters {
    /// Takes a place until the guard is dropped.
    ///
    /// # Errors
    /// `WOULD_BLOCK` where the name has its share.
    pub fn enter(&self) -> Result<Waiter<'_>> {
        self.enter_of(&TAKEN, PLACES)
    }

    fn enter_of<'a>(&'a self, taken: &'a AtomicUsize, places: usize) -> Result<Waiter<'a>> {
        // Threads that enter at once may each take one place too many, and no more.
        let (own, all) = (self.0.fetch_add(1, Ordering::Relaxed), taken.fetch_add(1, Ordering::Relaxed));
        let waiter = Waiter { own: &self.0, all: taken };
        if own >= places.saturating_sub(all) {
            return Err(Error::new(ErrorKind::WouldBlock, format!("{own} requests wait for IDs of this name already")));
        }
        Ok(waiter)
    }
}

/// A place among the waiting requests.
pub struct Waiter<'a> {
    own: &'a AtomicUsize,
    all: &'a AtomicUsize,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.own.fetch_sub(1, Ordering::Relaxed);
        self.all.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crowd<'a>(name: &'a Waiters, taken: &'a AtomicUsize) -> Vec<Waiter<'a>> {
        std::iter::from_fn(|| name.enter_of(taken, 3000).ok()).collect()
    }

    #[test]
    fn a_crowd_before_one_name_leaves_room_for_others() {
        let (taken, names) = (AtomicUsize::new(0), [(); 3].map(|()| Waiters::default()));
        let first = crowd(&names[0], &taken);
        let second = crowd(&names[1], &taken);
        let third = crowd(&names[2], &taken);
        assert_eq!([first.len(), second.len(), third.len()], [1500, 750, 375]);
        // Who leaves makes room for all.
        drop(first);
        let more = crowd(&names[2], &taken);
        assert_eq!(third.len() + more.len(), (3000 - 750) / 2);
        drop((second, third, more));
        assert_eq!(taken.into_inner(), 0);
    }
}
