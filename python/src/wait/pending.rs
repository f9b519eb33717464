//! Calls that an event loop waits for: they go on without a thread of their own, and the loop is told how they ended.
//!
//! What the thread that looks at them holds is Rust's alone; for the interpreter it comes only when it has to wake a loop.

use crate::error::{exception, guard, held};
use crate::wait::LONGER;
use frazil::{ErrorKind, Pending, Source, Wait};
use pyo3::PyTypeCheck;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// The longest wait of the interpreter's end for a loop that is just being woken.
const LAST_WAKE: Duration = Duration::from_millis(100);

/// The result of a call, to be made an object where the interpreter is.
type Value = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;
type Look = Box<dyn FnMut(Wait<'_>) -> frazil::Result<Value> + Send>;

/// A call that may wait: its first look is in place.
#[pyclass(frozen, module = "frazil")]
pub(crate) struct Call {
    max: Duration,
    look: Mutex<Option<Look>>,
    pending: OnceLock<Pending>,
}

/// The ends of a loop's calls, on their way to it.
#[pyclass(frozen, module = "frazil")]
pub(crate) struct Ends(Arc<Queue>);

struct Queue {
    ended: Mutex<Vec<(u64, frazil::Result<Value>)>>,
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
            let (brought, object) = (look(wait)?, object.clone());
            Ok(Box::new(move |py: Python<'_>| object(py, brought)) as Value)
        };
        Call { max: timeout.unwrap_or(Duration::MAX), look: Mutex::new(Some(Box::new(look))), pending: OnceLock::new() }
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
                Ok(value) => Ok(Some((value(py)?,))),
                Err(error) if error.kind() == ErrorKind::WouldBlock && !self.max.is_zero() => Ok(None),
                Err(error) => Err(exception(py, &error.or_use(LONGER))),
            }
        })
    }

    /// Lets it go on, and has its end told under a number.
    fn start(&self, py: Python<'_>, ends: &Bound<'_, Ends>, number: u64) -> PyResult<()> {
        guard(py, || {
            let look = lock(&self.look).take().expect("it was not started");
            let queue = Arc::clone(&ends.get().0);
            let pending = Pending::start(self.max, look, move |result| queue.tell(number, result));
            let _ = self.pending.set(pending.map_err(|error| exception(py, &error))?);
            Ok(())
        })
    }

    /// Gives it up.
    fn cancel(&self) {
        if let Some(pending) = self.pending.get() {
            pending.cancel();
        }
    }
}

#[pymethods]
impl Ends {
    /// `wake` is called on another thread.
    #[new]
    fn new(wake: Py<PyAny>) -> Self {
        Ends(Arc::new(Queue { ended: Mutex::default(), wake, telling: AtomicUsize::new(0), over: AtomicBool::new(false) }))
    }

    /// Settles the futures of the calls that have ended, and takes them out; what nobody waits for any more is dropped.
    fn settle(&self, py: Python<'_>, futures: &Bound<'_, PyDict>) -> PyResult<()> {
        guard(py, || {
            let ended = std::mem::take(&mut *lock(&self.0.ended));
            for (number, result) in ended {
                let Some(future) = futures.get_item(number)? else { continue };
                futures.del_item(number)?;
                if future.call_method0("done")?.is_truthy()? {
                    continue;
                }
                match result.map_err(|error| exception(py, &error.or_use(LONGER))).and_then(|value| value(py)) {
                    Ok(value) => future.call_method1("set_result", (value,))?,
                    Err(error) => future.call_method1("set_exception", (error,))?,
                };
            }
            Ok(())
        })
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
    fn tell(&self, number: u64, result: frazil::Result<Value>) {
        self.telling.fetch_add(1, Ordering::SeqCst);
        if !self.over.load(Ordering::SeqCst) {
            let mut ended = lock(&self.ended);
            ended.push((number, result));
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
