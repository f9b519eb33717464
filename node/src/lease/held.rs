//! The owners of leased numbers, which release them when objects, environments and the process end.
//!
//! Nothing here may block an event loop: releases continue in the background. Only the end of an environment (the main thread, or a worker)
//! and of the process wait, for a short time.

use crate::error::panic::catch;
use crate::next::mint::Mint;
use frazil::bindings::EXIT_TIMEOUT;
use std::ops::Deref;
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Ends within this time share one `EXIT_TIMEOUT`, because `process.exit()` ends every worker.
const BURST: Duration = Duration::from_secs(1);

/// A handle that V8's garbage collector may drop on the event loop without a wait for the store.
pub struct Held<M: Mint>(M);

impl<M: Mint> Held<M> {
    pub(crate) fn new(ids: M) -> Self {
        Held(ids)
    }
}

impl<M: Mint> Deref for Held<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.0
    }
}

impl<M: Mint> Drop for Held<M> {
    fn drop(&mut self) {
        drop(self.0.close_for(Duration::ZERO));
    }
}

/// A handle that releases a number.
trait Closes: Send + Sync {
    fn close_within(&self, max_wait: Duration);
}

impl<M: Mint> Closes for Held<M> {
    fn close_within(&self, max_wait: Duration) {
        drop(self.0.close_for(max_wait));
    }
}

/// The start of the first of the ends that share a limit.
static BEGUN: Mutex<Option<Instant>> = Mutex::new(None);

/// The owner of a leased number in an environment.
#[derive(Default)]
pub(crate) struct Leased(Vec<Weak<dyn Closes>>);

impl Leased {
    /// Registers an owner of a leased number, so that the number is released when the environment ends.
    pub(crate) fn remember<M: Mint>(&mut self, ids: &Arc<Held<M>>) {
        if ids.is_leased() {
            let ids: Arc<dyn Closes> = Arc::clone(ids) as _;
            self.0.retain(|ids| ids.strong_count() > 0);
            self.0.push(Arc::downgrade(&ids));
        }
    }

    /// Closes all owners. Other environments continue with the same numbers if they have also opened them.
    pub(crate) fn release_all(&mut self) {
        let open: Vec<_> = self.0.drain(..).filter_map(|ids| ids.upgrade()).collect();
        if open.is_empty() {
            return;
        }
        // Starts all releases before it waits for the first.
        open.iter().for_each(|ids| ids.close_within(Duration::ZERO));
        let until = until_end();
        open.iter().for_each(|ids| ids.close_within(until.saturating_duration_since(Instant::now())));
    }
}

/// Registers the release of all numbers at `process.exit()`, which does not end environments. On Windows index.js does it, because functions of
/// `atexit` run there after the other threads have ended.
pub(crate) fn release_at_exit() {
    extern "C" fn at_exit() {
        let _ = catch(close_all);
    }
    static PROCESS: Once = Once::new();
    // SAFETY: the function is static, takes no arguments, and does not unwind.
    PROCESS.call_once(|| unsafe {
        libc::atexit(at_exit);
    });
}

/// Closes all handles with a leased number, in all threads. Releases that take longer than the limit continue in the background.
pub(crate) fn close_all() {
    drop(frazil::close_all(until_end().saturating_duration_since(Instant::now())));
}

/// Returns the deadline of an end that begins now.
fn until_end() -> Instant {
    let mut begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    let first = begun.filter(|begun| now.duration_since(*begun) < BURST).unwrap_or(now);
    *begun = Some(first);
    first + EXIT_TIMEOUT
}
