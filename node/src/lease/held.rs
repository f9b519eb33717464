//! The holders of leased numbers, which give them back when objects, environments and the process end.
//!
//! Nothing here may hold up an event loop: what its thread cannot wait for goes on in the background. At the end of an environment
//! (the main thread, or a worker) and of the process there is no later, so they wait, but not for long.

use crate::error::panic::catch;
use crate::next::mint::Mint;
use frazil::bindings::EXIT_TIMEOUT;
use std::ops::Deref;
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Ends that follow each other within this share one `EXIT_TIMEOUT`: `process.exit()` ends every worker.
const BURST: Duration = Duration::from_secs(1);

/// A handle that V8's collector, which runs on the event loop, may drop: it does not wait for the store.
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

/// The handle that gives a number back.
trait Closes: Send + Sync {
    fn close_within(&self, max_wait: Duration);
}

impl<M: Mint> Closes for Held<M> {
    fn close_within(&self, max_wait: Duration) {
        drop(self.0.close_for(max_wait));
    }
}

/// The beginning of the ends that share their limit.
static BEGUN: Mutex<Option<Instant>> = Mutex::new(None);

/// The owner of a leased number in an environment.
#[derive(Default)]
pub(crate) struct Leased(Vec<Weak<dyn Closes>>);

impl Leased {
    /// Remembers what holds a leased number, so that it is given back when the environment ends.
    pub(crate) fn remember<M: Mint>(&mut self, ids: &Arc<Held<M>>) {
        if ids.is_leased() {
            let ids: Arc<dyn Closes> = Arc::clone(ids) as _;
            self.0.retain(|ids| ids.strong_count() > 0);
            self.0.push(Arc::downgrade(&ids));
        }
    }

    /// Closes all of it. Other environments go on with the same numbers where they have opened them too.
    pub(crate) fn give_back(&mut self) {
        let open: Vec<_> = self.0.drain(..).filter_map(|ids| ids.upgrade()).collect();
        if open.is_empty() {
            return;
        }
        // All are under way before the first is waited for.
        open.iter().for_each(|ids| ids.close_within(Duration::ZERO));
        let until = until_end();
        open.iter().for_each(|ids| ids.close_within(until.saturating_duration_since(Instant::now())));
    }
}

/// Has the process give its numbers back at `process.exit()`, which ends no environment. On Windows index.js does: there the functions of
/// `atexit` run when the other threads are gone.
pub(crate) fn give_back_at_exit() {
    extern "C" fn at_exit() {
        let _ = catch(close_all);
    }
    static PROCESS: Once = Once::new();
    // SAFETY: the function takes nothing, lets no panic out, and stays where it is.
    PROCESS.call_once(|| unsafe {
        libc::atexit(at_exit);
    });
}

/// Closes what leases a number, in all threads. What the stores are not told in time goes on in the background, if there is any.
pub(crate) fn close_all() {
    drop(frazil::close_all(until_end().saturating_duration_since(Instant::now())));
}

/// Returns until when an end may wait that begins now.
fn until_end() -> Instant {
    let mut begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    let first = begun.filter(|begun| now.duration_since(*begun) < BURST).unwrap_or(now);
    *begun = Some(first);
    first + EXIT_TIMEOUT
}
