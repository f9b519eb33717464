//! Waiting calls that occupy no thread: one thread of the process polls all of them.
//!
//! An event loop starts such a call, and a callback receives its result. The thread polls a call when its request is answered, and when
//! its next ID is due. It also polls at least every 20 ms, because the call may have been ended or the clock set.

use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::os::fork::{self, PerProcess};
use frazil_base::os::sync::{AtomicBool, Condvar, Mutex, MutexGuard, Ordering};
use frazil_base::os::thread;
use std::cell::Cell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::{Arc, PoisonError};
use std::task::{Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// The time for which the thread waits for another call. Zero under loom, where no time passes.
const LINGER: Duration = if cfg!(loom) { Duration::ZERO } else { Duration::from_secs(1) };

/// A call that continues without a thread that waits for it.
///
/// # Example
/// ```
/// use frazil::{Pending, Snowflake};
/// use std::sync::mpsc::channel;
/// use std::time::Duration;
///
/// let ids = Snowflake::open("standard node=8")?;
/// let (sender, receiver) = channel();
/// let call = async move { ids.next_id_within(Duration::from_secs(1).into()).await };
/// let _pending = Pending::start(call, move |id| sender.send(id).unwrap())?;
/// assert!(receiver.recv().unwrap()?.get() > 0);
/// # Ok::<(), frazil::Error>(())
/// ```
pub struct Pending(Arc<CallWaker>);

/// The waker of a call: it makes the thread poll the call.
struct CallWaker {
    calls: &'static Calls,
    /// The process of the thread.
    process: u64,
    rung: AtomicBool,
    cancelled: AtomicBool,
}

struct Call {
    at: Instant,
    bell: Arc<CallWaker>,
    waker: Waker,
    /// Ends once the call is over and its callback has run.
    future: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// The calls of a process.
#[derive(Default)]
struct Calls {
    state: Mutex<PendingState>,
    /// Notified when the thread may have something to do.
    work: Condvar,
}

#[derive(Default)]
struct PendingState {
    calls: Vec<Call>,
    /// True while the thread runs.
    staffed: bool,
}

static CALLS: PerProcess<Calls> = PerProcess::new();

thread_local! {
    static IS_ITS_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this is the thread that polls the calls.
pub(crate) fn is_its_thread() -> bool {
    IS_ITS_THREAD.try_with(Cell::get).unwrap_or(false)
}

impl Pending {
    /// Starts a call of frazil: a future of one or several `_within` forms. `done` gets its result. Both run on the thread that polls all
    /// such calls, and must not block it.
    ///
    /// A forked child has none of its parent's calls.
    ///
    /// # Errors
    /// `INTERNAL` if no thread can be started.
    pub fn start<T>(
        call: impl Future<Output = Result<T>> + Send + 'static,
        done: impl FnOnce(Result<T>) + Send + 'static,
    ) -> Result<Pending> {
        CALLS.get(|| Ok(Calls::default()))?.start(call, done)
    }

    /// Cancels the call. `done` is not called, unless it has already begun.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Release);
        Arc::clone(&self.0).wake();
    }
}

impl Wake for CallWaker {
    fn wake(self: Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        // A forked child has none of its parent's calls, and must not take a lock that a thread of the parent may have held at the fork.
        if !fork::mark().is_child_of(self.process) {
            // Taking the lock orders this call with the thread's look. Either the thread waits already, or it looks after this.
            drop(self.calls.lock());
            self.calls.work.notify_one();
        }
    }
}

impl Calls {
    fn lock(&self) -> MutexGuard<'_, PendingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start<T>(
        &'static self,
        call: impl Future<Output = Result<T>> + Send + 'static,
        done: impl FnOnce(Result<T>) + Send + 'static,
    ) -> Result<Pending> {
        let (rung, cancelled) = (AtomicBool::new(false), AtomicBool::new(false));
        let bell = Arc::new(CallWaker { calls: self, process: fork::mark().process(), rung, cancelled });
        let future = Box::pin(async move { done(caught(call).await) });
        self.add(Call { at: Instant::now(), bell: Arc::clone(&bell), waker: Waker::from(Arc::clone(&bell)), future })?;
        Ok(Pending(bell))
    }

    fn add(&'static self, call: Call) -> Result<()> {
        let mut state = self.lock();
        if !state.staffed {
            let why = |error| Error::new(ErrorKind::Internal, format!("the thread for waiting calls cannot be started: {error}"));
            thread::spawn("frazil-waits", Box::new(|| self.run())).map_err(why)?;
            state.staffed = true;
        }
        state.calls.push(call);
        self.work.notify_one();
        Ok(())
    }

    fn run(&self) {
        IS_ITS_THREAD.set(true);
        let process = fork::mark().process();
        let mut state = self.lock();
        let mut idle_since = Instant::now();
        loop {
            let now = Instant::now();
            let (due, rest): (Vec<_>, Vec<_>) =
                state.calls.drain(..).partition(|call| call.at <= now || call.bell.rung.load(Ordering::Acquire));
            state.calls = rest;
            if !due.is_empty() {
                drop(state);
                // A callback, or the drop of a call, may panic. The other calls must go on.
                let poll = |call: Call| catch_unwind(AssertUnwindSafe(|| call.polled())).unwrap_or(None);
                let (mut due, mut again) = (due.into_iter(), Vec::new());
                while let Some(call) = due.next() {
                    again.extend(poll(call));
                    if fork::mark().is_child_of(process) {
                        // The callback has forked, and this is the child. The other calls, and all that they hold, belong to the parent.
                        std::mem::forget((due, again));
                        return;
                    }
                }
                idle_since = Instant::now();
                state = self.lock();
                state.calls.extend(again);
                continue;
            }
            let until = state.calls.iter().map(|call| call.at).min().unwrap_or(idle_since + LINGER);
            if state.calls.is_empty() && until <= now {
                state.staffed = false;
                return;
            }
            state = self.work.wait_timeout(state, until.saturating_duration_since(now)).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Call {
    /// Polls the call; returns it if it is not over.
    fn polled(mut self) -> Option<Self> {
        // Reset before the poll, because the poll may miss a wake from now on.
        self.bell.rung.store(false, Ordering::Release);
        if self.bell.cancelled.load(Ordering::Acquire) {
            return None;
        }
        let next = super::poll(self.future.as_mut(), &self.waker).err()?;
        self.at = Instant::now() + next;
        Some(self)
    }
}

/// Makes a panic of a call the call's error.
pub(crate) async fn caught<T>(call: impl Future<Output = Result<T>>) -> Result<T> {
    let mut call = pin!(call);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context)));
        polled.unwrap_or_else(|panic| Poll::Ready(Err(Error::from_panic(panic.as_ref()))))
    })
    .await
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::wait::request::Requests;
    use crate::wait::{Wait, waker};
    use loom::sync::mpsc::channel;
    use loom::thread;

    const FOR_EVER: Duration = Duration::MAX;

    fn calls() -> &'static Calls {
        Box::leak(Box::new(Calls::default()))
    }

    #[test]
    fn loom_call_added_as_the_thread_ends_is_polled() {
        loom::model(|| {
            let calls = calls();
            let (sender, receiver) = channel();
            for number in [1, 2] {
                let sender = sender.clone();
                let _pending = calls.start(async { Ok(()) }, move |_| sender.send(number).expect("somebody listens"));
            }
            let mut numbers = [receiver.recv().unwrap(), receiver.recv().unwrap()];
            numbers.sort_unstable();
            assert_eq!(numbers, [1, 2]);
        });
    }

    /// The lock of a task: its requests, and its value once there is one.
    type Task = Arc<loom::sync::Mutex<(Requests<()>, Option<u32>)>>;

    /// A call that leaves a request.
    async fn request(task: Task) -> Result<u32> {
        let (wait, mut request) = (Wait::from(FOR_EVER), None);
        loop {
            let waker = waker().await;
            {
                let (requests, won) = &mut *task.lock().expect("no panic");
                if let Some(won) = won.take() {
                    request.and_then(|request| requests.remove(request));
                    return Ok(won);
                }
                match request {
                    Some(request) => requests.renew(request, &waker),
                    None => request = Some(requests.add((), waker)),
                }
            }
            wait.pause(FOR_EVER).await?;
        }
    }

    fn answer(task: &Task) {
        let (requests, won) = &mut *task.lock().expect("no panic");
        *won = Some(7);
        requests.answer(|()| Some(Ok(())));
    }

    #[test]
    fn loom_answered_request_wakes_its_call() {
        loom::model(|| {
            let task = Task::new(loom::sync::Mutex::new((Requests::default(), None)));
            let (sender, receiver) = channel();
            let _pending = calls().start(request(Arc::clone(&task)), move |won| sender.send(won).expect("somebody listens"));
            answer(&task);
            assert_eq!(receiver.recv().unwrap().unwrap(), 7);
        });
    }

    #[test]
    fn loom_cancelled_call_is_no_longer_polled() {
        loom::model(|| {
            let later = async {
                loop {
                    thread::yield_now();
                    Wait::from(FOR_EVER).give_way().await?;
                }
            };
            let pending = calls().start(later, |_: Result<()>| panic!("it was never over")).unwrap();
            pending.cancel();
        });
    }
}
