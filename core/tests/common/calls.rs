//! Calls without a thread of their own, and how they end.

use frazil::{Pending, Result, Wait};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Far longer than anything here may take, also on a busy machine.
pub const LONG: Duration = Duration::from_secs(60);

/// Starts a call, and returns what tells how it ended, and after how long.
pub fn start<T: Send + 'static>(
    max_wait: Duration,
    call: impl FnMut(Wait<'_>) -> Result<T> + Send + 'static,
) -> (Pending, Receiver<(Result<T>, Duration)>) {
    let (tell, told) = channel();
    let since = Instant::now();
    let done = move |result| drop(tell.send((result, since.elapsed())));
    (Pending::start(max_wait, call, done).expect("a thread"), told)
}

pub fn told<T>(told: &Receiver<(Result<T>, Duration)>) -> (Result<T>, Duration) {
    told.recv_timeout(LONG).expect("it is told")
}
