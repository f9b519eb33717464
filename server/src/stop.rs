//! The signal that the server stops, and the wait until all connections have ended. The end of some work, and of a connection.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;
use tokio::time::timeout;

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

/// The event that may end some work. It is polled only after its own wake-up, not each time that a socket wakes the task, because polling a
/// timer and a channel takes locks for every request.
pub struct CancelOn<F> {
    end: F,
    wakeup: Option<Arc<Wakeup>>,
}

/// The event's own waker.
struct Wakeup {
    was_woken: AtomicBool,
    task: Waker,
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.was_woken.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}

impl<F: Future<Output = ()> + Unpin> CancelOn<F> {
    pub fn new(end: F) -> Self {
        CancelOn { end, wakeup: None }
    }

    /// Returns the result of some work, or `None` if the event comes first; no further work may follow.
    pub async fn work<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(Some(done));
            }
            self.poll_end(context).map(|()| None)
        })
        .await
    }

    fn poll_end(&mut self, context: &Context<'_>) -> Poll<()> {
        let wakeup = match &self.wakeup {
            Some(wakeup) if wakeup.task.will_wake(context.waker()) => wakeup,
            _ => self.wakeup.insert(Arc::new(Wakeup { was_woken: AtomicBool::new(true), task: context.waker().clone() })),
        };
        // Fast path: not woken, one load. A wake after the swap polls the task again.
        if !wakeup.was_woken.load(Ordering::Relaxed) || !wakeup.was_woken.swap(false, Ordering::Acquire) {
            return Poll::Pending;
        }
        let waker = Waker::from(Arc::clone(wakeup));
        Pin::new(&mut self.end).poll(&mut Context::from_waker(&waker))
    }
}

// The end of a connection whose client may still be sending.
//
// An immediate close resets the connection, which discards answers that the client has received but not read yet (RFC 9112, section
// 9.6).

/// The longest time for which input is read and discarded until the client closes its side.
const LONGEST: Duration = Duration::from_secs(5);

/// Discards input until the client closes its side; called after our side is shut down.
pub async fn lingering_close(stream: &mut (impl AsyncRead + Unpin)) {
    let mut room = vec![0; 4096];
    let read = async { while matches!(stream.read(&mut room).await, Ok(1..)) {} };
    // A client that continues for longer gets the reset.
    let _ = timeout(LONGEST, read).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use tokio::sync::Notify;

    #[test]
    fn end_is_polled_only_after_its_wake() {
        let (over, again) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let polls = Arc::new(AtomicUsize::new(0));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut notified = Box::pin(over.notified());
            let end = poll_fn(|context| {
                polls.fetch_add(1, Ordering::Relaxed);
                notified.as_mut().poll(context)
            });
            let mut until = CancelOn::new(Box::pin(end));
            // Each is pending at first, and wakes the task itself.
            for _ in 0..10 {
                assert_eq!(until.work(tokio::task::yield_now()).await, Some(()));
            }
            assert_eq!(polls.load(Ordering::Relaxed), 1);
            over.notify_one();
            assert_eq!(until.work(again.notified()).await, None);
            assert_eq!(polls.load(Ordering::Relaxed), 2);
        });
    }

    #[test]
    fn another_task_continues_the_wait() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        let mut until = CancelOn::new(Box::pin(async { drop(receiver.await) }));
        runtime.block_on(async {
            let first = tokio::spawn(async move {
                assert_eq!(until.work(tokio::task::yield_now()).await, Some(()));
                until
            });
            let mut until = first.await.unwrap();
            let second = tokio::spawn(async move { until.work(std::future::pending::<()>()).await });
            tokio::task::yield_now().await;
            drop(sender);
            assert_eq!(second.await.unwrap(), None);
        });
    }
}
