//! Waiting calls that occupy no thread, and their ends.

use frazil::{Pending, Result, Wait};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Far longer than any call here may take, even on a busy machine.
pub const LONG: Duration = Duration::from_secs(60);

/// Starts a call. Returns a receiver of its result and its duration.
pub fn start<T: Send + 'static, F: Future<Output = Result<T>> + Send + 'static>(
    max_wait: Duration,
    call: impl FnOnce(Wait<'static>) -> F,
) -> (Pending, Receiver<(Result<T>, Duration)>) {
    let (sender, receiver) = channel();
    let since = Instant::now();
    let done = move |result| drop(sender.send((result, since.elapsed())));
    (Pending::start(call(Wait::from(max_wait).begun()), done).expect("a thread"), receiver)
}

pub fn result_of<T>(call: &Receiver<(Result<T>, Duration)>) -> (Result<T>, Duration) {
    call.recv_timeout(LONG).expect("the call ends")
}
