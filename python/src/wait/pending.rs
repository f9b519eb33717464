//! Calls that an event loop waits for: they go on without a thread of their own, and the loop is told how they ended.
//!
//! What the thread that looks at them holds is Rust's alone; for the interpreter it comes only when it has to wake a loop.
//!
//! An answer stays in its call, as a [`Waiting`], until the task that awaits it runs again: the loop's queue and its futures have only the
//! news that there is one. So a process that has become a copy, or a child, while the loop was busy is noticed as late as can be.

use crate::error::{OrRaise, exception, guard, held};
use crate::wait::LONGER;
use frazil::bindings::{Waiting, awaited_by_parent};
use frazil::{ErrorKind, Pending, Source, Wait};
use pyo3::PyTypeCheck;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// The longest wait of the interpreter's end for a loop that is just being woken.
const LAST_WAKE: Duration = Duration::from_millis(100);

/// The result of a call, to be made an object where the interpreter is; `true` where its caller has waited for it.
type Value = Box<dyn FnOnce(Python<'_>, bool) -> PyResult<Py<PyAny>> + Send>;
/// Set once by the thread that looks at the call: a forked child reads it without that thread's locks.
type Answer = Arc<OnceLock<Mutex<Option<frazil::Result<Value>>>>>;
type Look = Box<dyn FnMut(Wait<'_>) -> frazil::Result<Value> + Send>;

/// A call that may wait: its first look is in place.
#[pyclass(frozen, module = "frazil")]
pub(crate) struct Call {
    max: Duration,
    look: Mutex<Option<Look>>,
    pending: OnceLock<Pending>,
    answer: Answer,
}

/// The ends of a loop's calls, on their way to it.
#[pyclass(frozen, module = "frazil")]
pub(crate) struct Ends(Arc<Queue>);

struct Queue {
    ended: Mutex<Vec<u64>>,
    /// Has the loop settle them.
    wake: Py<PyAny>,
    /// The number of calls that are reporting their end right now.
    telling: AtomicUsize,
    /// The interpreter ends, and would not let go of a thread that comes now.
    over: AtomicBool,
}

impl Call {
    /// `look` is as [`Pending::start`] takes it; `object` makes what it brings an object.
    pub(crate) fn new<T: Send + 'static>(
        timeout: Option<Duration>,
        mut look: impl FnMut(Wait<'_>) -> frazil::Result<T> + Send + 'static,
        object: impl Fn(Python<'_>, T) -> PyResult<Py<PyAny>> + Clone + Send + 'static,
    ) -> Self {
        let look = move |wait: Wait<'_>| {
            let (brought, object) = (Waiting::of(|| look(wait))?, object.clone());
            let value = |waited| if waited { brought.deliver() } else { Ok(brought.at_once()) };
            Ok(Box::new(move |py: Python<'_>, waited| object(py, value(waited).or_raise(py)?)) as Value)
        };
        let (look, pending): (Look, _) = (Box::new(look), OnceLock::new());
        Call { max: timeout.unwrap_or(Duration::MAX), look: Mutex::new(Some(look)), pending, answer: Answer::default() }
    }
}

#[pymethods]
impl Call {
    /// A tuple of what the call brings, if it need not wait.
    fn look(&self, py: Python<'_>) -> PyResult<Option<(Py<PyAny>,)>> {
        guard(py, || {
            let mut look = lock(&self.look);
            let look = look.as_mut().expect("it was not started");
            match look(Duration::ZERO.into()) {
                Ok(value) => Ok(Some((value(py, false)?,))),
                Err(error) if error.kind() == ErrorKind::WouldBlock && !self.max.is_zero() => Ok(None),
                Err(error) => Err(exception(py, &error.or_use(LONGER))),
            }
        })
    }

    /// Lets it go on, and has its end told under a number.
    fn start(&self, py: Python<'_>, ends: &Bound<'_, Ends>, number: u64) -> PyResult<()> {
        guard(py, || {
            let look = lock(&self.look).take().expect("it was not started");
            let (queue, answer) = (Arc::clone(&ends.get().0), Arc::clone(&self.answer));
            let done = move |result| {
                let _ = answer.set(Mutex::new(Some(result)));
                queue.tell(number);
            };
            let pending = Pending::start(self.max, look, done);
            let _ = self.pending.set(pending.map_err(|error| exception(py, &error))?);
            Ok(())
        })
    }

    /// Takes what it has brought, for the task that has waited for it.
    fn take(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(py, || {
            let answer = self.answer.get().and_then(|answer| lock(answer).take());
            // A forked child need not wait until there is one.
            let value = answer.unwrap_or_else(|| Err(awaited_by_parent()));
            value.map_err(|error| exception(py, &error.or_use(LONGER)))?(py, true)
        })
    }

    /// Gives it up, with what it has brought.
    fn cancel(&self) {
        if let Some(pending) = self.pending.get() {
            pending.cancel();
        }
        drop(self.answer.get().map(|answer| lock(answer).take()));
    }
}

#[pymethods]
impl Ends {
    /// `wake` is called on another thread.
    #[new]
    fn new(wake: Py<PyAny>) -> Self {
        Ends(Arc::new(Queue { ended: Mutex::default(), wake, telling: AtomicUsize::new(0), over: AtomicBool::new(false) }))
    }

    /// The numbers of the calls that have ended.
    fn take(&self) -> Vec<u64> {
        std::mem::take(&mut *lock(&self.0.ended))
    }

    /// Tells no further end, for the interpreter's.
    fn end(&self, py: Python<'_>) {
        self.0.over.store(true, Ordering::SeqCst);
        py.detach(|| {
            let piece = Duration::from_millis(1);
            let mut left = LAST_WAKE;
            while self.0.telling.load(Ordering::SeqCst) > 0 && !left.is_zero() {
                std::thread::sleep(piece);
                left -= piece;
            }
        });
    }
}

impl Queue {
    fn tell(&self, number: u64) {
        self.telling.fetch_add(1, Ordering::SeqCst);
        if !self.over.load(Ordering::SeqCst) {
            let mut ended = lock(&self.ended);
            ended.push(number);
            let is_first = ended.len() == 1;
            drop(ended);
            // The loop takes all that are there when it comes to it.
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
        self.telling.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A coroutine of what a call brings, which keeps `of` meanwhile.
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

/// A handle that is closed without a wait if nobody takes it.
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
