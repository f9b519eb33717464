//! The core's errors as Python exceptions, one class for each kind, and the guard that turns a panic
//! into one of them.

use frazil::{Error, ErrorKind};
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The class of each kind, in the order of `ErrorKind::ALL`.
static CLASSES: PyOnceLock<Vec<Py<PyType>>> = PyOnceLock::new();

/// Adds `FrazilError`, a class for each kind, and the table `ERRORS` to the module.
pub(crate) fn export(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let defaults = PyDict::new(py);
    defaults.set_item("code", 0)?;
    defaults.set_item("name", "")?;
    defaults.set_item("retry_after", py.None())?;
    defaults.set_item("written", 0)?;
    let bases = PyTuple::new(py, [py.get_type::<PyException>()])?;
    let base = new_class(py, "FrazilError", "Any refusal of frazil: the base of a class for each kind.", &bases, defaults)?;
    module.add("FrazilError", &base)?;

    let mut classes = Vec::new();
    for kind in ErrorKind::ALL {
        let attributes = PyDict::new(py);
        attributes.set_item("code", kind.code())?;
        attributes.set_item("name", kind.name())?;
        let bases = match kind {
            ErrorKind::WrongType => PyTuple::new(py, [base.clone(), py.get_type::<PyTypeError>()])?,
            ErrorKind::OutOfRange => PyTuple::new(py, [base.clone(), py.get_type::<PyValueError>()])?,
            _ => PyTuple::new(py, [base.clone()])?,
        };
        let name = class_name(kind.name());
        let class = new_class(py, &name, kind.meaning(), &bases, attributes)?;
        module.add(name.as_str(), &class)?;
        classes.push(class.unbind());
    }
    // A second import of the module in the same interpreter keeps the first one's classes.
    let _ = CLASSES.set(py, classes);

    let rows = ErrorKind::ALL.iter().map(|kind| (kind.code(), kind.name(), kind.meaning()));
    module.add("ERRORS", PyTuple::new(py, rows.collect::<Vec<_>>())?)
}

/// `CLOCK_BACK` is raised as `ClockBackError`.
fn class_name(kind: &str) -> String {
    let words = kind.split('_').map(|word| word[..1].to_owned() + &word[1..].to_ascii_lowercase());
    words.collect::<String>() + "Error"
}

fn new_class<'py>(
    py: Python<'py>,
    name: &str,
    doc: &str,
    bases: &Bound<'py, PyTuple>,
    attributes: Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyType>> {
    attributes.set_item("__doc__", doc)?;
    attributes.set_item("__module__", "frazil")?;
    let class = py.get_type::<PyType>().call1((name, bases, attributes))?;
    Ok(class.cast_into::<PyType>()?)
}

/// The exception of a core error.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let build = || {
        let classes = CLASSES.get(py).expect("the module is imported");
        let at = ErrorKind::ALL.iter().position(|kind| *kind == error.kind()).expect("ALL has every kind");
        let exception = classes[at].bind(py).call1((error.to_string(),))?;
        if let Some(wait) = error.retry_after() {
            exception.setattr("retry_after", wait.as_secs_f64())?;
        }
        if error.written() > 0 {
            exception.setattr("written", error.written())?;
        }
        Ok(PyErr::from_value(exception))
    };
    build().unwrap_or_else(|error: PyErr| error)
}

/// Refuses what only this binding can see: a wrong type, a number that no integer of the core holds.
pub(crate) fn refuse<T>(py: Python<'_>, kind: ErrorKind, why: impl Into<String>) -> PyResult<T> {
    Err(exception(py, &Error::new(kind, why)))
}

/// Turns a core result into a Python one.
pub(crate) trait OrRaise<T> {
    /// Raises the error's class.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for frazil::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| exception(py, &error))
    }
}

/// Runs the body of an entry; a panic in it is raised as `InternalError`.
#[inline(always)]
pub(crate) fn guard<T>(py: Python<'_>, body: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    // A panic cannot leave a broken state behind: the core's state is atomic words, and a poisoned lock
    // of its store panics again.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(panicked(py, &*panic)))
}

#[cold]
#[inline(never)]
fn panicked(py: Python<'_>, panic: &(dyn Any + Send)) -> PyErr {
    exception(py, &Error::from_panic(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_raised() {
        Python::initialize();
        Python::attach(|py| {
            export(&PyModule::new(py, "frazil")?)?;
            let raised = guard::<()>(py, || panic!("seven")).expect_err("the body panics");
            assert_eq!(raised.value(py).getattr("code")?.extract::<i32>()?, ErrorKind::Internal.code());
            assert!(raised.to_string().ends_with("please report it: seven"));
            Ok::<(), PyErr>(())
        })
        .expect("the exception is built");
    }
}
