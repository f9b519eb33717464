//! How all connections learn that the server ends, and how it learns that they have.

use crate::until::Until;
use std::future::Future;
use std::pin::pin;
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

    /// Waits for the end.
    pub async fn told(&mut self) {
        // Who tells has gone: that is the end, too.
        let _ = self.0.wait_for(|told| *told).await;
    }

    /// What some work gives, or `None` if the end comes first.
    pub async fn unless<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let told = pin!(self.told());
        Until::new(told).work(work).await
    }
}
