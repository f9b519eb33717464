//! Calls that an event loop awaits. They continue without a separate thread, and the loop is notified when they end.
//!
//! The thread that polls them holds only Rust values, and attaches to the interpreter only to wake a loop.
//!
//! A result stays in its call, a [`Waiting`], until the awaiting task runs again; the loop's queue and futures only have the notification.
//! So a copy or a fork that happens while the loop is busy is still noticed.

use crate::error::{OrRaise, exception, guard, held};
use crate::wait::LONGER;
use frazil::bindings::{Waiting, awaited_by_parent, poll_once};
use frazil::{Pending, Source};
use pyo3::PyTypeCheck;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// The longest wait of the interpreter's end for a notification in progress.
const LAST_WAKE: Duration = Duration::from_millis(100);

/// Converts the result of a call to an object; the argument is `true` if the caller has waited for it.
type Value = Box<dyn FnOnce(Python<'_>, bool) -> PyResult<Py<PyAny>> + Send>;
/// The result, set once by the polling thread. A forked child reads it without that thread's locks.
type Answer = Arc<OnceLock<Mutex<Option<frazil::Result<Value>>>>>;
type Waited = Pin<Box<dyn Future<Output = frazil::Result<Value>> + Send>>;

/// A call that may wait. Its first poll is synchronous.
#[pyclass(frozen, module = "frazil")]
pub(crate) struct Call {
    /// `None` once the call has ended, or has been started.
    future: Mutex<Option<Waited>>,
    pending: OnceLock<Pending>,
    answer: Answer,
}

/// The notifications of ended calls for a loop.
#[pyclass(frozen, module = "frazil")]
pub(crate) struct Ends(Arc<Queue>);

struct Queue {
    ended: Mutex<Vec<u64>>,
    /// Makes the loop settle the ended calls.
    wake: Py<PyAny>,
    /// The number of calls that are reporting their end right now.
    notifying: AtomicUsize,
    /// True when the interpreter ends, because it would block a thread that attaches.
    over: AtomicBool,
}

impl Call {
    /// A call that has not begun. `object` converts its result.
    pub(crate) fn new<T: Send + 'static>(
        call: impl Future<Output = frazil::Result<T>> + Send + 'static,
        object: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        let future = async move {
            let brought = Waiting::of(call).await?;
            let value = |waited| if waited { brought.deliver() } else { Ok(brought.at_once()) };
            Ok(Box::new(move |py: Python<'_>, waited| object(py, value(waited).or_raise(py)?)) as Value)
        };
        let (future, pending): (Waited, _) = (Box::pin(future), OnceLock::new());
        Call { future: Mutex::new(Some(future)), pending, answer: Answer::default() }
    }
}

#[pymethods]
impl Call {
    /// A tuple of the result, if the call need not wait.
    fn look(&self, py: Python<'_>) -> PyResult<Option<(Py<PyAny>,)>> {
        guard(py, || {
            let mut future = lock(&self.future);
            let Some(result) = poll_once(future.as_mut().expect("it was not started").as_mut()) else { return Ok(None) };
            *future = None;
            match result {
                Ok(value) => Ok(Some((value(py, false)?,))),
                Err(error) => Err(exception(py, &error.or_use(LONGER))),
            }
        })
    }

    /// Continues the call in the background, and notifies the loop of its end under a number.
    fn start(&self, py: Python<'_>, ends: &Bound<'_, Ends>, number: u64) -> PyResult<()> {
        guard(py, || {
            let future = lock(&self.future).take().expect("it was not started");
            let (queue, answer) = (Arc::clone(&ends.get().0), Arc::clone(&self.answer));
            let done = move |result| {
                let _ = answer.set(Mutex::new(Some(result)));
                queue.notify(number);
            };
            let pending = Pending::start(future, done);
            let _ = self.pending.set(pending.map_err(|error| exception(py, &error))?);
            Ok(())
        })
    }

    /// Takes the result, for the task that has waited for it.
    fn take(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(py, || {
            let answer = self.answer.get().and_then(|answer| lock(answer).take());
            // A forked child does not wait for the result.
            let value = answer.unwrap_or_else(|| Err(awaited_by_parent()));
            value.map_err(|error| exception(py, &error.or_use(LONGER)))?(py, true)
        })
    }

    /// Abandons the call and its result.
    fn cancel(&self) {
        if let Some(pending) = self.pending.get() {
            pending.cancel();
        }
        drop(lock(&self.future).take());
        drop(self.answer.get().map(|answer| lock(answer).take()));
    }
}

#[pymethods]
impl Ends {
    /// Makes the queue of a loop. `wake` is called on another thread.
    #[new]
    fn new(wake: Py<PyAny>) -> Self {
        Ends(Arc::new(Queue { ended: Mutex::default(), wake, notifying: AtomicUsize::new(0), over: AtomicBool::new(false) }))
    }

    /// The numbers of the calls that have ended.
    fn take(&self) -> Vec<u64> {
        std::mem::take(&mut *lock(&self.0.ended))
    }

    /// Stops notifications, before the interpreter ends.
    fn end(&self, py: Python<'_>) {
        self.0.over.store(true, Ordering::SeqCst);
        py.detach(|| {
            let piece = Duration::from_millis(1);
            let mut left = LAST_WAKE;
            while self.0.notifying.load(Ordering::SeqCst) > 0 && !left.is_zero() {
                std::thread::sleep(piece);
                left -= piece;
            }
        });
    }
}

impl Queue {
    fn notify(&self, number: u64) {
        self.notifying.fetch_add(1, Ordering::SeqCst);
        if !self.over.load(Ordering::SeqCst) {
            let mut ended = lock(&self.ended);
            ended.push(number);
            let is_first = ended.len() == 1;
            drop(ended);
            // The loop takes all numbers in the queue at once.
            if is_first {
                held(|| {
                    Python::try_attach(|py| {
                        if let Err(error) = self.wake.call0(py) {
                            error.write_unraisable(py, None);
                        }
                    })
                });
            }
        }
        self.notifying.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A coroutine of a call's result, which keeps `of` alive.
pub(crate) fn finish<'py, T: PyTypeCheck>(call: Call, of: &Bound<'py, T>, method: &str) -> PyResult<Bound<'py, PyAny>> {
    named(of.py().import("frazil._async")?.call_method1("finish", (call, of))?, of, method)
}

/// Names a coroutine after the method that the program called, for the warning that it was never awaited.
pub(crate) fn named<'py, T: PyTypeCheck>(coroutine: Bound<'py, PyAny>, of: &Bound<'py, T>, method: &str) -> PyResult<Bound<'py, PyAny>> {
    let class = of.as_any().cast::<PyType>().map_or_else(|_| of.as_any().get_type(), Clone::clone);
    coroutine.setattr("__name__", method)?;
    coroutine.setattr("__qualname__", format!("{}.{method}", class.name()?))?;
    Ok(coroutine)
}

/// A handle that is closed without a wait if no caller takes it.
pub(crate) struct Opened<I: Source>(Option<I>);

impl<I: Source> Opened<I> {
    pub(crate) fn new(ids: I) -> Self {
        Opened(Some(ids))
    }

    pub(crate) fn take(mut self) -> I {
        self.0.take().expect("it is taken once")
    }
}

impl<I: Source> Drop for Opened<I> {
    fn drop(&mut self) {
        if let Some(ids) = &self.0 {
            drop(ids.close_for(Duration::ZERO));
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
