//! Calls as futures, for any runtime: the `_async` forms.
//!
//! Each form first polls the call on the task's thread, because most calls need not wait. If it has to wait, the thread of [`Pending`]
//! continues it, and wakes the task at its end. Dropping the future cancels the call.

use crate::counters::numbers::{Numbers, Supply};
use crate::handle::Builder;
use crate::handle::snowflake::{Snowflake, batch_of};
use crate::id::Id;
use crate::lease;
use crate::spec::Spec;
use crate::wait::pending::{Pending, caught};
use crate::wait::{Wait, poll_once};
use frazil_base::error::{ErrorKind, Result};
use frazil_base::os::fork::{self, Waiting, awaited_by_parent};
use frazil_base::os::sync::{Mutex, MutexGuard};
use std::future::poll_fn;
use std::mem::needs_drop;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The result of a call. The thread of [`Pending`] stores it and wakes the task, which takes it.
struct Answer<T>(Mutex<(Option<T>, Option<Waker>)>);

impl<T> Answer<T> {
    fn new() -> Self {
        Answer(Mutex::new((None, None)))
    }

    fn lock(&self) -> MutexGuard<'_, (Option<T>, Option<Waker>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<T> {
        self.lock().0.take()
    }

    fn set(&self, result: T) {
        let mut state = self.lock();
        state.0 = Some(result);
        let waker = state.1.take();
        // The waker may poll the task at once, so the lock is released first.
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    fn poll(&self, context: &Context<'_>) -> Poll<T> {
        let (result, waker) = &mut *self.lock();
        // A task may move to another executor, so the last waker counts.
        *waker = Some(context.waker().clone());
        result.take().map_or(Poll::Pending, Poll::Ready)
    }
}

/// A call whose result a future awaits. Dropping it cancels the call.
struct Awaited<T: Send + 'static> {
    pending: Pending,
    answer: Arc<Answer<Result<Waiting<T>>>>,
    process: u64,
}

impl<T: Send + 'static> Awaited<T> {
    /// Returns whether this is a forked child of the process that made the call. Then only the parent may take the result.
    fn is_a_parents(&self) -> bool {
        fork::mark().is_child_of(self.process)
    }

    fn poll(&self, context: &Context<'_>) -> Poll<Result<T>> {
        if self.is_a_parents() {
            return Poll::Ready(Err(awaited_by_parent()));
        }
        self.answer.poll(context).map(|result| result.and_then(Waiting::deliver))
    }
}

impl<T: Send + 'static> Drop for Awaited<T> {
    fn drop(&mut self) {
        self.pending.cancel();
        // Dropping an untaken handle closes it, and may wait for its store. The thread of pending calls does not wait.
        if needs_drop::<T>()
            && !self.is_a_parents()
            && let Some(Ok(untaken)) = self.answer.take()
        {
            let close = async move {
                drop(untaken);
                Ok(())
            };
            let _ = Pending::start(close, drop);
        }
    }
}

impl Pending {
    /// Makes a call of frazil as a future for any runtime: a future of one or several `_within` forms. The call starts at the first poll,
    /// and dropping the future cancels it. It is polled on the task's thread first, and then on the thread that polls all such calls. In a
    /// forked child, the future of a call that waits is `FORKED`.
    ///
    /// # Errors
    /// Those of the call; `INTERNAL` if no thread can be started; `COPIED` if the machine was copied before the answer was taken.
    ///
    /// # Example
    /// ```
    /// use frazil::{Id, Pending, Result, Snowflake};
    /// use std::time::Duration;
    ///
    /// async fn within_a_second(ids: &Snowflake) -> Result<Id> {
    ///     let ids = ids.clone();
    ///     Pending::future(async move { ids.next_id_within(Duration::from_secs(1).into()).await }).await
    /// }
    /// ```
    pub async fn future<T: Send + 'static>(call: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
        let mut call = Box::pin(Waiting::of(caught(call)));
        if let Some(result) = poll_once(call.as_mut()) {
            return result.map(Waiting::at_once);
        }
        let (answer, process) = (Arc::new(Answer::new()), fork::mark().process());
        let sender = Arc::clone(&answer);
        let pending = Pending::start(call, move |result| sender.set(result))?;
        let awaited = Awaited { pending, answer, process };
        poll_fn(|context| awaited.poll(context)).await
    }
}

fn would_block<T>(now: &Result<T>) -> bool {
    now.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// The wait of a future, which the closing of its handle ends.
///
/// # Errors
/// `CLOSED`.
fn open_wait(ended: &AtomicBool) -> Result<Wait<'_>> {
    let wait = Wait::from(Duration::MAX).ended_by(ended);
    wait.check_open().map(|()| wait)
}

async fn open(spec: Spec) -> Result<Snowflake> {
    Pending::future(Snowflake::open_within(spec, Duration::MAX.into())).await
}

impl Builder {
    /// Opens the generator like [`open`](Builder::open), as a future.
    ///
    /// # Errors
    /// As [`open`](Builder::open).
    pub async fn open_async(&self) -> Result<Snowflake> {
        open(self.spec()?).await
    }
}

impl Snowflake {
    /// Opens a generator without blocking an event loop. Otherwise as [`open`](Snowflake::open).
    ///
    /// # Errors
    /// As [`open`](Snowflake::open).
    ///
    /// # Example
    /// ```
    /// async fn mint() -> frazil::Result<frazil::Id> {
    ///     let ids = frazil::Snowflake::open_async("standard store=local").await?;
    ///     let id = ids.next_id_async().await?;
    ///     ids.close_async().await;
    ///     Ok(id)
    /// }
    /// ```
    pub async fn open_async(line: &str) -> Result<Self> {
        open(Spec::parse(line)?).await
    }

    /// The next ID, without blocking an event loop. Otherwise as [`next_id`](Snowflake::next_id).
    ///
    /// # Errors
    /// As [`next_id`](Snowflake::next_id).
    pub async fn next_id_async(&self) -> Result<Id> {
        let now = self.next_id_for(Duration::ZERO);
        if !would_block(&now) {
            return now;
        }
        let (shared, ended) = self.for_a_future();
        Pending::future(async move { shared.slow_id_async(&open_wait(&ended)?).await }).await
    }

    /// A batch of ascending IDs, without blocking an event loop. Otherwise as [`batch`](Snowflake::batch).
    ///
    /// # Errors
    /// As [`batch`](Snowflake::batch).
    pub async fn batch_async(&self, count: usize) -> Result<Vec<Id>> {
        let (shared, ended) = self.for_a_future();
        Pending::future(async move { batch_of(&shared, count, &open_wait(&ended)?).await }).await
    }

    /// Releases a leased node number without blocking an event loop. Otherwise as
    /// [`release_node`](Snowflake::release_node).
    ///
    /// # Errors
    /// As [`release_node`](Snowflake::release_node).
    pub async fn release_node_async(&self) -> Result<()> {
        let (shared, ended) = self.for_a_future();
        Pending::future(async move { lease::release_node(&shared, &open_wait(&ended)?).await }).await
    }

    /// Closes the handle without blocking an event loop. Otherwise as [`close`](Snowflake::close). If the last handle
    /// is dropped without this, the drop may block its thread for 200 ms.
    pub async fn close_async(&self) {
        // The handle is closed before the first wait, so it is closed even if the future is dropped during the wait.
        if self.close_for(Duration::ZERO).is_err() {
            let (shared, _) = self.for_a_future();
            let _ = Pending::future(async move { shared.wait_until_left(&Wait::from(Duration::MAX)).await }).await;
        }
    }
}

impl Numbers {
    /// Opens a segment, tickets or a ring without blocking an event loop.
    ///
    /// # Errors
    /// As [`open`](Numbers::open).
    pub async fn open_async(supply: Supply, spec: Spec) -> Result<Self> {
        Pending::future(Numbers::open_within(supply, spec, Duration::MAX.into())).await
    }

    /// The next number, without blocking an event loop. Otherwise as [`next_id`](Numbers::next_id).
    ///
    /// # Errors
    /// As [`next_id`](Numbers::next_id).
    pub async fn next_id_async(&self) -> Result<Id> {
        let now = self.next_id_for(Duration::ZERO);
        if !would_block(&now) {
            return now;
        }
        let numbers = self.clone();
        Pending::future(async move { numbers.next_id_within(Duration::MAX.into()).await }).await
    }

    /// A batch of numbers, without blocking an event loop. Otherwise as [`batch`](Numbers::batch).
    ///
    /// # Errors
    /// As [`batch`](Numbers::batch).
    pub async fn batch_async(&self, count: usize) -> Result<Vec<Id>> {
        let numbers = self.clone();
        Pending::future(async move { numbers.batch_within(count, Duration::MAX.into()).await }).await
    }

    /// Drops the prefetched numbers without blocking an event loop. Otherwise as [`discard`](Numbers::discard).
    ///
    /// # Errors
    /// As [`discard`](Numbers::discard).
    pub async fn discard_async(&self) -> Result<()> {
        let numbers = self.clone();
        Pending::future(async move { numbers.discard_within(Duration::MAX.into()).await }).await
    }

    /// Closes all handles of these numbers like [`close`](Numbers::close), as a future.
    pub async fn close_async(&self) {
        let numbers = self.clone();
        let _ = Pending::future(async move { numbers.close_within(Duration::MAX.into()).await }).await;
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::thread;
    use std::sync::atomic::Ordering;
    use std::task::Wake;

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Release);
        }
    }

    #[test]
    fn loom_task_is_woken_for_each_answer_that_it_did_not_find() {
        loom::model(|| {
            let answer = Arc::new(Answer::new());
            let sender = Arc::clone(&answer);
            let teller = thread::spawn(move || sender.set(7));
            // One waker polls the answer, and then another.
            let wakers = [(); 2].map(|()| Arc::new(Woken::default()));
            let polls = wakers.clone().map(|woken| answer.poll(&Context::from_waker(&Waker::from(woken))));
            teller.join().unwrap();
            match polls {
                [Poll::Ready(7), Poll::Pending] | [Poll::Pending, Poll::Ready(7)] => {}
                [Poll::Pending, Poll::Pending] => {
                    assert!(wakers[1].0.load(Ordering::Acquire), "the last one");
                    assert_eq!(answer.poll(&Context::from_waker(Waker::noop())), Poll::Ready(7));
                }
                polls => panic!("{polls:?}"),
            }
        });
    }
}
