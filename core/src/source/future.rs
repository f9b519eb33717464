//! Calls as futures, for any runtime: the `_async` forms.
//!
//! Each form first makes the call with a wait of zero, because most calls need not wait. If that would block, the thread of [`Pending`]
//! makes the call, and wakes the task at its end. Dropping the future cancels the call.

use crate::counters::numbers::{Numbers, Supply};
use crate::handle::Builder;
use crate::handle::snowflake::{Snowflake, batch_in_pieces};
use crate::id::Id;
use crate::lease;
use crate::spec::Spec;
use crate::wait::Wait;
use crate::wait::pending::Pending;
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
            let mut untaken = Some(untaken);
            let close = move |_: Wait<'_>| {
                drop(untaken.take());
                Ok(())
            };
            let _ = Pending::start(Duration::ZERO, close, drop);
        }
    }
}

impl Pending {
    /// Makes a call as a future, with the arguments of [`start`](Pending::start). The call starts at the first poll, and dropping the
    /// future cancels it. In a forked child, a future that the parent has polled ends with `FORKED`.
    ///
    /// # Errors
    /// Those of the call; `INTERNAL` if no thread can be started; `COPIED` if the machine was copied before the answer was taken, and
    /// `FORKED` if the process was forked.
    ///
    /// # Example
    /// ```
    /// use frazil::{Id, Pending, Result, Snowflake};
    /// use std::time::Duration;
    ///
    /// async fn within_a_second(ids: &Snowflake) -> Result<Id> {
    ///     let ids = ids.clone();
    ///     Pending::future(Duration::from_secs(1), move |wait| ids.next_id_for(wait)).await
    /// }
    /// ```
    pub async fn future<T: Send + 'static>(max_wait: Duration, mut call: impl FnMut(Wait<'_>) -> Result<T> + Send + 'static) -> Result<T> {
        let (answer, process) = (Arc::new(Answer::new()), fork::mark().process());
        let sender = Arc::clone(&answer);
        let pending = Pending::start(max_wait, move |wait| Waiting::of(|| call(wait)), move |result| sender.set(result))?;
        let awaited = Awaited { pending, answer, process };
        poll_fn(|context| awaited.poll(context)).await
    }
}

fn would_block<T>(now: &Result<T>) -> bool {
    now.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// Makes a call at once if it need not wait, and as a future otherwise.
async fn call<T: Send + 'static>(mut call: impl FnMut(Wait<'_>) -> Result<T> + Send + 'static) -> Result<T> {
    let now = call(Duration::ZERO.into());
    if would_block(&now) { Pending::future(Duration::MAX, call).await } else { now }
}

/// The wait of a future, which the closing of its handle ends.
///
/// # Errors
/// `CLOSED`.
fn open_wait<'a>(wait: Wait<'a>, ended: &'a AtomicBool) -> Result<Wait<'a>> {
    let wait = wait.begun().ended_by(ended);
    wait.check_open().map(|()| wait)
}

async fn open(spec: Spec) -> Result<Snowflake> {
    call(move |wait| Snowflake::open_spec(spec.clone(), wait)).await
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
        Pending::future(Duration::MAX, move |wait| shared.slow_id(&open_wait(wait, &ended)?)).await
    }

    /// A batch of ascending IDs, without blocking an event loop. Otherwise as [`batch`](Snowflake::batch).
    ///
    /// # Errors
    /// As [`batch`](Snowflake::batch).
    pub async fn batch_async(&self, count: usize) -> Result<Vec<Id>> {
        let (shared, ended) = self.for_a_future();
        call(batch_in_pieces(count, move |rest: &mut [Id], wait| shared.fill(rest, &open_wait(wait, &ended)?))).await
    }

    /// Releases a leased node number without blocking an event loop. Otherwise as
    /// [`release_node`](Snowflake::release_node).
    ///
    /// # Errors
    /// As [`release_node`](Snowflake::release_node).
    pub async fn release_node_async(&self) -> Result<()> {
        let (shared, ended) = self.for_a_future();
        call(move |wait| lease::release_node(&shared, &open_wait(wait, &ended)?)).await
    }

    /// Closes the handle without blocking an event loop. Otherwise as [`close`](Snowflake::close). If the last handle
    /// is dropped without this, the drop may block its thread for 200 ms.
    pub async fn close_async(&self) {
        // The handle is closed before the first wait, so it is closed even if the future is dropped during the wait.
        if self.close_for(Duration::ZERO).is_err() {
            let (shared, _) = self.for_a_future();
            let _ = Pending::future(Duration::MAX, move |wait| shared.wait_until_left(&wait)).await;
        }
    }
}

impl Numbers {
    /// Opens a segment, tickets or a ring without blocking an event loop.
    ///
    /// # Errors
    /// As [`open`](Numbers::open).
    pub async fn open_async(supply: Supply, spec: Spec) -> Result<Self> {
        call(Numbers::opening(supply, spec, Duration::MAX)).await
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
        Pending::future(Duration::MAX, move |wait| numbers.next_id_for(wait)).await
    }

    /// A batch of numbers, without blocking an event loop. Otherwise as [`batch`](Numbers::batch).
    ///
    /// # Errors
    /// As [`batch`](Numbers::batch).
    pub async fn batch_async(&self, count: usize) -> Result<Vec<Id>> {
        let numbers = self.clone();
        call(batch_in_pieces(count, move |rest: &mut [Id], wait| numbers.fill_for(rest, wait))).await
    }

    /// Drops the prefetched numbers without blocking an event loop. Otherwise as [`discard`](Numbers::discard).
    ///
    /// # Errors
    /// As [`discard`](Numbers::discard).
    pub async fn discard_async(&self) -> Result<()> {
        let numbers = self.clone();
        call(move |wait| numbers.discard_for(wait)).await
    }

    /// Closes all handles of these numbers like [`close`](Numbers::close), as a future.
    pub async fn close_async(&self) {
        let numbers = self.clone();
        let _ = call(move |wait| numbers.close_for(wait)).await;
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
