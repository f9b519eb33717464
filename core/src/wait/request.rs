//! Requests: the calls that wait for a task, and their replies.
//!
//! A call that cannot be answered at once leaves a request with the task that can answer it. The request stays in the task's list, under
//! the lock of the task's worker, until its caller leaves. It is answered once, and only the answer wakes its caller. The reply asks the
//! caller to look again, or is the error that makes this useless. The buffer of a prefetch has its own list and its own lock.
//!
//! | State | Who changes it | To |
//! |---|---|---|
//! | none | the caller [`add`](Requests::add)s it, and looks | waiting |
//! | waiting | the task [`answer`](Requests::answer)s it, and wakes the caller | answered |
//! | waiting | the caller [`remove`](Requests::remove)s it: its limit has ended, it was interrupted, or its handle was closed | gone |
//! | answered | the caller [`take`](Requests::take)s the reply, and then the number or handle that it wanted | gone |
//!
//! - **One lock decides.** The task changes under it, and a caller leaves the list under it. So a request needs no compare-and-swap, and is
//!   never in two states at once. A caller whose limit ends looks once more, and takes any value that is there. A later value stays with
//!   the task, for the next caller.
//! - **A reply holds nothing.** A lease or number that a task has won stays with the task until a caller takes it, on the caller's own
//!   thread. So a caller that has left, or that does not exist in a forked child, holds nothing to release.
//! - **No request is dropped unanswered.** A task stays as long as it has requests. A worker that panics answers those of its tasks.
//! - **A call that may not wait leaves no request.** With a limit of 0, the call looks at the task, and only sets a flag there, which takes
//!   no memory.
//! - **No callback runs under the lock.** A [`Waker`] unparks a thread, or makes the thread of pending calls (`pending.rs`) poll a call.
//!   Neither runs the caller's code, waits, or takes the worker's lock.
//! - **A forked child has none of its parent's requests.** Its thread makes its request again, with the child's own workers. It does not
//!   take the lock of its parent's worker, which another thread may have held at the fork. So the old request stays in that worker's list,
//!   which no thread of the child reads.

use frazil_base::error::Result;
use std::collections::VecDeque;
use std::task::Waker;

/// The requests of a task, in the order in which they came. `W` is what a request wants.
pub(crate) struct Requests<W> {
    /// The requests, ordered by number. It is a `VecDeque`, because thousands may be answered at once, and then leave one by one from
    /// the front.
    list: VecDeque<Request<W>>,
    /// The number of the last request.
    last: u64,
}

struct Request<W> {
    number: u64,
    wish: W,
    waker: Waker,
    /// `None` while the request waits.
    reply: Option<Result<()>>,
}

impl<W> Default for Requests<W> {
    fn default() -> Self {
        Requests { list: VecDeque::new(), last: 0 }
    }
}

impl<W> Requests<W> {
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds a request. Returns the number by which its caller finds it.
    pub(crate) fn add(&mut self, wish: W, waker: Waker) -> u64 {
        self.last += 1;
        self.list.push_back(Request { number: self.last, wish, waker, reply: None });
        self.last
    }

    /// The wishes of the requests that were not answered with an error. Their callers wait, or have not looked again yet.
    pub(crate) fn hopeful(&self) -> impl Iterator<Item = &W> {
        self.list.iter().filter(|request| !matches!(request.reply, Some(Err(_)))).map(|request| &request.wish)
    }

    /// Answers the waiting requests for which there is a reply, and wakes their callers.
    pub(crate) fn answer(&mut self, mut reply: impl FnMut(&W) -> Option<Result<()>>) {
        for request in &mut self.list {
            if request.reply.is_none() {
                request.reply = reply(&request.wish);
                request.reply.iter().for_each(|_| request.waker.wake_by_ref());
            }
        }
    }

    /// Gives a request the waker of its caller's present poll.
    pub(crate) fn renew(&mut self, number: u64, waker: &Waker) {
        if let Some(at) = self.at(number) {
            self.list[at].waker.clone_from(waker);
        }
    }

    /// Takes the reply to a request, if there is one, and removes the request.
    pub(crate) fn take(&mut self, number: u64) -> Option<Result<()>> {
        let at = self.at(number)?;
        let reply = self.list[at].reply.take()?;
        self.list.remove(at);
        Some(reply)
    }

    /// Removes the request of a caller that leaves, unless it was removed already. Returns the reply, if there was one.
    pub(crate) fn remove(&mut self, number: u64) -> Option<Result<()>> {
        self.at(number).and_then(|at| self.list.remove(at))?.reply
    }

    fn at(&self, number: u64) -> Option<usize> {
        self.list.binary_search_by_key(&number, |request| request.number).ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use frazil_base::error::{Error, ErrorKind};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn request_is_answered_once_and_wakes_its_caller_once() {
        let (one, other) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
        let woken = || [&one, &other].map(|woken| woken.0.load(Ordering::Relaxed));
        let mut requests = Requests::default();
        let first = requests.add("one", Waker::from(Arc::clone(&one)));
        let second = requests.add("other", Waker::from(Arc::clone(&other)));
        requests.answer(|wish| (*wish == "other").then_some(Ok(())));
        assert_eq!((woken(), requests.take(first)), ([0, 1], None));
        requests.answer(|_| Some(Err(Error::new(ErrorKind::Internal, "a failure"))));
        assert_eq!(woken(), [1, 1]);
        assert_eq!(requests.hopeful().collect::<Vec<_>>(), [&"other"], "a request with an error is not among them");
        assert_eq!(requests.take(second), Some(Ok(())), "the first reply stays");
        assert!(requests.take(first).unwrap().is_err());
        assert!(requests.is_empty() && requests.take(first).is_none());
    }

    #[test]
    fn leaving_caller_leaves_no_request() {
        let mut requests = Requests::default();
        let request = requests.add((), Waker::noop().clone());
        requests.remove(request);
        assert!(requests.is_empty());
        let next = requests.add((), Waker::noop().clone());
        requests.remove(request);
        assert!(next != request && !requests.is_empty(), "it is another's");
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::{Arc, Mutex};
    use loom::thread;

    /// A task that wins a value, and its requests.
    struct Task {
        requests: Requests<()>,
        won: Option<u32>,
    }

    fn task() -> Arc<Mutex<Task>> {
        Arc::new(Mutex::new(Task { requests: Requests::default(), won: None }))
    }

    /// A worker's thread that wins a value.
    fn worker(task: &Arc<Mutex<Task>>) -> thread::JoinHandle<()> {
        let task = Arc::clone(task);
        thread::spawn(move || {
            let mut task = task.lock().expect("no panic");
            task.won = Some(7);
            task.requests.answer(|()| Some(Ok(())));
        })
    }

    /// A call that looks, leaves a request, and waits until it is answered.
    fn call(task: &Mutex<Task>) -> u32 {
        let mut locked = task.lock().expect("no panic");
        if let Some(won) = locked.won.take() {
            return won;
        }
        let request = locked.requests.add((), frazil_base::os::thread::waker());
        drop(locked);
        loop {
            frazil_base::os::thread::park(None);
            let mut locked = task.lock().expect("no panic");
            if locked.requests.take(request).is_some() {
                return locked.won.take().expect("nobody else takes it");
            }
        }
    }

    #[test]
    fn loom_request_is_answered_at_any_moment() {
        loom::model(|| {
            let task = task();
            let worker = worker(&task);
            assert_eq!(call(&task), 7);
            worker.join().unwrap();
            assert!(task.lock().expect("no panic").requests.is_empty());
        });
    }

    #[test]
    fn loom_value_after_a_limit_goes_to_the_next_caller() {
        loom::model(|| {
            let task = task();
            let request = task.lock().expect("no panic").requests.add((), Waker::noop().clone());
            let worker = worker(&task);
            // The limit of the first call ends. It looks once more, and leaves.
            let mut locked = task.lock().expect("no panic");
            let first = locked.requests.take(request).and_then(|_| locked.won.take());
            locked.requests.remove(request);
            drop(locked);
            let second = first.is_none().then(|| call(&task));
            worker.join().unwrap();
            assert_eq!(first.xor(second), Some(7));
            let task = task.lock().expect("no panic");
            assert!(task.requests.is_empty() && task.won.is_none());
        });
    }
}
