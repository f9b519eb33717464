//! How all connections learn that the server ends, and how it learns that they have.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use tokio::sync::watch;

/// What each connection holds until it is closed.
#[derive(Clone)]
pub struct Stop(watch::Receiver<bool>);

/// Tells them.
pub struct Stopper(watch::Sender<bool>);

pub fn channel() -> (Stopper, Stop) {
    let (stopper, stop) = watch::channel(false);
    (Stopper(stopper), Stop(stop))
}

impl Stopper {
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Waits until nobody holds a [`Stop`] any more.
    pub async fn all_gone(&self) {
        self.0.closed().await;
    }
}

impl Stop {
    pub fn is_told(&self) -> bool {
        *self.0.borrow()
    }

    /// What some work gives, or `None` if the end comes first.
    pub async fn unless<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut told = pin!(self.0.wait_for(|told| *told));
        let mut work = pin!(work);
        poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(Some(done));
            }
            told.as_mut().poll(context).map(|_| None)
        })
        .await
    }
}
