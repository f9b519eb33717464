//! Converts the core's errors to Python exceptions, one class for each kind, and panics
//! to one of them.

mod end;

pub(crate) use end::held;

use frazil::bindings::Misfits;
use frazil::{Error, ErrorKind};
use pyo3::exceptions::{
    PyConnectionError, PyException, PyLookupError, PyNotImplementedError, PyOSError, PyPermissionError, PyRuntimeError, PyTimeoutError,
    PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The state of the process. The classes of the first import are also raised after every later import.
static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

/// The base of all error classes.
const BASE: &str = "FrazilError";

struct Classes {
    base: Py<PyType>,
    /// In the order of `ErrorKind::ALL`.
    of_kinds: Vec<Py<PyType>>,
}

/// Adds `FrazilError`, a class for each kind, and the table `ERRORS` to the module.
pub(crate) fn export(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let classes = CLASSES.get_or_try_init(py, || Classes::new(py))?;
    module.add(BASE, &classes.base)?;
    for (kind, class) in ErrorKind::ALL.iter().zip(&classes.of_kinds) {
        // Not added with `add`, because `frazil.errors` exports them.
        module.setattr(class_name(kind.name()).as_str(), class)?;
    }
    let rows = ErrorKind::ALL.iter().map(|kind| (kind.code(), kind.name(), kind.meaning()));
    module.add("ERRORS", PyTuple::new(py, rows.collect::<Vec<_>>())?)
}

impl Classes {
    fn new(py: Python<'_>) -> PyResult<Self> {
        let defaults = PyDict::new(py);
        defaults.set_item("code", 0)?;
        defaults.set_item("name", "")?;
        defaults.set_item("retry_after", py.None())?;
        defaults.set_item("written", 0)?;
        let bases = PyTuple::new(py, [py.get_type::<PyException>()])?;
        let base = new_class(py, BASE, doc!(FrazilError), &bases, defaults)?;
        let of_kind = |kind: &ErrorKind| {
            let attributes = PyDict::new(py);
            attributes.set_item("code", kind.code())?;
            attributes.set_item("name", kind.name())?;
            let bases = PyTuple::new(py, [Some(base.clone()), family(py, *kind)].into_iter().flatten().collect::<Vec<_>>())?;
            let doc = format!("{} {}: {}", kind.code(), kind.name(), kind.meaning());
            Ok(new_class(py, &class_name(kind.name()), &doc, &bases, attributes)?.unbind())
        };
        let of_kinds = ErrorKind::ALL.iter().map(of_kind).collect::<PyResult<_>>()?;
        Ok(Classes { base: base.unbind(), of_kinds })
    }
}

/// The builtin class that is also a base of a kind, because Python raises it in similar cases.
///
/// `None` for kinds without a similar builtin: clocks, and node numbers that others hold.
fn family(py: Python<'_>, kind: ErrorKind) -> Option<Bound<'_, PyType>> {
    use ErrorKind as Kind;
    Some(match kind {
        Kind::Spec | Kind::UnknownKey | Kind::OutOfRange | Kind::LayoutInvalid | Kind::IdInvalid => py.get_type::<PyValueError>(),
        Kind::LayoutExpired | Kind::BeforeEpoch | Kind::NodeMissing => py.get_type::<PyValueError>(),
        Kind::LayoutMismatch | Kind::SegmentMismatch => py.get_type::<PyValueError>(),
        Kind::WrongType => py.get_type::<PyTypeError>(),
        Kind::WouldBlock | Kind::SegmentExhausted => py.get_type::<PyTimeoutError>(),
        Kind::StoreUnreachable => py.get_type::<PyConnectionError>(),
        Kind::StoreAuth => py.get_type::<PyPermissionError>(),
        Kind::StoreReadonly | Kind::StoreCorrupt | Kind::StoreChanged | Kind::StoreUnsuitable => py.get_type::<PyOSError>(),
        Kind::StoreNotBuilt => py.get_type::<PyNotImplementedError>(),
        Kind::TagMissing => py.get_type::<PyLookupError>(),
        Kind::Closed | Kind::ClockNotSet | Kind::Forked | Kind::Conflict | Kind::Copied | Kind::Internal => py.get_type::<PyRuntimeError>(),
        _ => return None,
    })
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
    attributes.set_item("__module__", if name == BASE { "frazil" } else { "frazil.errors" })?;
    let class = py.get_type::<PyType>().call1((name, bases, attributes))?;
    Ok(class.cast_into::<PyType>()?)
}

/// The exception of a core error.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let build = || {
        let classes = &CLASSES.get(py).expect("the module is imported").of_kinds;
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
    // Making an exception may run Python code, also by the garbage collector.
    held(build).unwrap_or_else(|error: PyErr| error)
}

/// Refuses values that only this binding sees: wrong types, numbers that do not fit the core's integers.
pub(crate) fn refuse<T>(py: Python<'_>, kind: ErrorKind, why: impl Into<String>) -> PyResult<T> {
    Err(exception(py, &Error::new(kind, why)))
}

/// Returns whether an exception is frazil's.
pub(crate) fn is_refusal(py: Python<'_>, error: &PyErr) -> bool {
    CLASSES.get(py).is_some_and(|classes| error.is_instance(py, classes.base.bind(py)))
}

/// An error of a row, with the number of the bad rows.
pub(crate) fn noted(py: Python<'_>, error: PyErr, misfits: &Misfits) -> PyErr {
    let value = error.value(py);
    match value.str().and_then(|text| value.setattr("args", (format!("{text}{}", misfits.note("ids")),))) {
        Ok(()) => error,
        Err(other) => other,
    }
}

/// Converts a core result to a Python one.
pub(crate) trait OrRaise<T> {
    /// Raises the error's class.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for frazil::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| exception(py, &error))
    }
}

/// Runs the body of an entry; a panic in it is raised as `InternalError`. The interpreter may end during the call.
#[inline(always)]
pub(crate) fn guard<T>(py: Python<'_>, body: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    held(|| guard_short(py, body))
}

/// Guards a body that runs no Python code, or handles that itself: for hot calls, of whose cost the full guard would be a tenth.
#[inline(always)]
pub(crate) fn guard_short<T>(py: Python<'_>, body: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    // A panic cannot break the core's state, which is atomic words, and a poisoned lock
    // of a store panics again.
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
