//! The signal that the server stops, and the wait until all connections have ended.

use crate::cancel_on::CancelOn;
use std::future::Future;
use std::pin::pin;
use tokio::sync::watch;

/// The receiving end that each connection holds until it is closed.
#[derive(Clone)]
pub struct Stop(watch::Receiver<bool>);

/// The sending end.
pub struct Stopper(watch::Sender<bool>);

pub fn channel() -> (Stopper, Stop) {
    let (stopper, stop) = watch::channel(false);
    (Stopper(stopper), Stop(stop))
}

impl Stopper {
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Waits until every [`Stop`] is dropped.
    pub async fn all_gone(&self) {
        self.0.closed().await;
    }
}

impl Stop {
    pub fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the stop.
    pub async fn wait(&mut self) {
        // A dropped sender counts as a stop.
        let _ = self.0.wait_for(|stops| *stops).await;
    }

    /// Returns the result of some work, or `None` if the stop comes first.
    pub async fn unless<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        CancelOn::new(pin!(self.wait())).work(work).await
    }
}
