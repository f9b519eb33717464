//! UUIDs, as the standard library's `uuid.UUID`.

use crate::convert::{self, unix_ms, wrong_type};
use crate::error::{OrRaise, guard, guard_short, held};
use frazil::ErrorKind;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyInt, PyString, PyType};
use std::ffi::{CStr, c_int, c_void};
use std::ptr::NonNull;

#[doc = doc!(uuid4)]
#[pyfunction]
pub(crate) fn uuid4(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    guard_short(py, || object(py, frazil::uuid4().or_raise(py)?))
}

#[doc = doc!(uuid7)]
#[pyfunction]
#[pyo3(signature = (time=None, /))]
pub(crate) fn uuid7<'py>(py: Python<'py>, time: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    guard_short(py, || {
        let id = match time {
            None => frazil::uuid7(),
            Some(time) => frazil::uuid7_at(held(|| unix_ms("time", time))?),
        };
        object(py, id.or_raise(py)?)
    })
}

#[doc = doc!(uuid7_min)]
#[pyfunction]
#[pyo3(signature = (time, /))]
pub(crate) fn uuid7_min<'py>(time: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = time.py();
    guard(py, || object(py, frazil::uuid7_min(unix_ms("time", time)?).or_raise(py)?))
}

#[doc = doc!(uuid7_max)]
#[pyfunction]
#[pyo3(signature = (time, /))]
pub(crate) fn uuid7_max<'py>(time: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = time.py();
    guard(py, || object(py, frazil::uuid7_max(unix_ms("time", time)?).or_raise(py)?))
}

#[doc = doc!(uuid_time)]
#[pyfunction]
#[pyo3(signature = (id, /))]
pub(crate) fn uuid_time<'py>(id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = id.py();
    guard(py, || convert::datetime(py, frazil::uuid_unix_ms(uuid_in(id)?).or_raise(py)?))
}

fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = convert::once(py, &CLASS, || Ok(py.import("uuid")?.getattr("UUID")?.cast_into::<PyType>()?.unbind()))?;
    Ok(class.bind(py))
}

/// Makes a `uuid.UUID` without its constructor, whose Python code takes seven times as long as everything else.
fn object(py: Python<'_>, id: frazil::Uuid) -> PyResult<Bound<'_, PyAny>> {
    static MAKER: PyOnceLock<Option<Maker>> = PyOnceLock::new();
    // Importing the module, and the constructor, run Python code.
    match convert::once(py, &MAKER, || held(|| Maker::new(py)))? {
        Some(maker) => maker.object(py, id),
        None => held(|| class(py)?.call1((py.None(), PyBytes::new(py, id.as_bytes())))),
    }
}

/// A slot of a class that has `__slots__`.
struct Slot {
    descriptor: Py<PyAny>,
    set: ffi::descrsetfunc,
}

/// Makes objects of `uuid.UUID`: allocates them and fills their two slots, as `object.__new__` and `object.__setattr__` would.
struct Maker {
    class: Py<PyType>,
    allocate: ffi::allocfunc,
    int: Slot,
    is_safe: Slot,
    unknown: Py<PyAny>,
    ints: Ints,
}

impl Maker {
    /// `None` if the class is built differently from CPython 3.11 to 3.14.
    fn new(py: Python<'_>) -> PyResult<Option<Self>> {
        let class = class(py)?;
        let slots = class.getattr_opt("__slots__")?.and_then(|slots| slots.extract::<Vec<String>>().ok());
        // Objects with another base need more than an allocation.
        let is_plain = class.bases().eq((py.get_type::<PyAny>(),))?;
        if !is_plain || slots.is_none_or(|slots| slots != ["int", "is_safe", "__weakref__"]) {
            return Ok(None);
        }
        // SAFETY: the class is a type object, and this slot contains a function of this type, or null.
        let allocate = unsafe {
            let slot = ffi::PyType_GetSlot(class.as_type_ptr(), ffi::Py_tp_alloc);
            std::mem::transmute::<*mut c_void, Option<ffi::allocfunc>>(slot)
        };
        let (int, is_safe) = (Slot::of(class, "int")?, Slot::of(class, "is_safe")?);
        let (Some(allocate), Some(int), Some(is_safe)) = (allocate, int, is_safe) else {
            return Ok(None);
        };
        let unknown = py.import("uuid")?.getattr("SafeUUID")?.getattr("unknown")?.unbind();
        Ok(Some(Maker { class: class.clone().unbind(), allocate, int, is_safe, unknown, ints: Ints::new(py)? }))
    }

    fn object<'py>(&self, py: Python<'py>, id: frazil::Uuid) -> PyResult<Bound<'py, PyAny>> {
        let int = self.ints.of(py, id.as_u128())?;
        // SAFETY: the function belongs to the class; the result is a new reference, or null with an exception set.
        let object = unsafe { Bound::from_owned_ptr_or_err(py, (self.allocate)(self.class.bind(py).as_type_ptr(), 0))? };
        self.int.set(&object, &int)?;
        self.is_safe.set(&object, self.unknown.bind(py))?;
        Ok(object)
    }
}

impl Slot {
    fn of(class: &Bound<'_, PyType>, name: &str) -> PyResult<Option<Self>> {
        let descriptor = class.getattr(name)?;
        // SAFETY: this slot of a type object contains a function of this type, or null.
        let set = unsafe {
            let slot = ffi::PyType_GetSlot(descriptor.get_type().as_type_ptr(), ffi::Py_tp_descr_set);
            std::mem::transmute::<*mut c_void, Option<ffi::descrsetfunc>>(slot)
        };
        Ok(set.map(|set| Slot { descriptor: descriptor.unbind(), set }))
    }

    fn set(&self, object: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        // SAFETY: the function belongs to the descriptor, and checks the object's class; all three objects are alive.
        let status = unsafe { (self.set)(self.descriptor.as_ptr(), object.as_ptr(), value.as_ptr()) };
        if status == 0 { Ok(()) } else { Err(PyErr::fetch(object.py())) }
    }
}

/// Makes an `int` of 128 bits.
///
/// The stable ABI of CPython 3.11 has no function for it, and `int.from_bytes` takes twice as long as the function that it calls. So the
/// inner function is looked up by its name: the public one of 3.13 and later, or the private one of 3.11 and 3.12, which do not change any
/// more.
enum Ints {
    Public(FromNativeBytes),
    Private(FromByteArray),
    /// `int.from_bytes`.
    Called(Py<PyAny>),
}

/// `PyLong_FromUnsignedNativeBytes`, with memory, its size, and flags, of which -1 is the machine's byte order.
type FromNativeBytes = unsafe extern "C" fn(*const u8, usize, c_int) -> *mut ffi::PyObject;
/// `_PyLong_FromByteArray`, with memory, its size, whether it is little-endian, and whether it is signed.
type FromByteArray = unsafe extern "C" fn(*const u8, usize, c_int, c_int) -> *mut ffi::PyObject;

impl Ints {
    fn new(py: Python<'_>) -> PyResult<Self> {
        if let Some(found) = symbol(c"PyLong_FromUnsignedNativeBytes") {
            // SAFETY: a function of this name has this type in every version.
            return Ok(Ints::Public(unsafe { std::mem::transmute::<NonNull<c_void>, FromNativeBytes>(found) }));
        }
        match symbol(c"_PyLong_FromByteArray").filter(|_| py.version_info() < (3, 13)) {
            // SAFETY: in these versions a function of this name has this type.
            Some(found) => Ok(Ints::Private(unsafe { std::mem::transmute::<NonNull<c_void>, FromByteArray>(found) })),
            None => Ok(Ints::Called(py.get_type::<PyInt>().getattr("from_bytes")?.unbind())),
        }
    }

    fn of<'py>(&self, py: Python<'py>, number: u128) -> PyResult<Bound<'py, PyAny>> {
        let bytes = number.to_ne_bytes();
        let int = match self {
            // SAFETY: the memory has this size.
            Ints::Public(make) => unsafe { make(bytes.as_ptr(), bytes.len(), -1) },
            // SAFETY: the memory has this size.
            Ints::Private(make) => unsafe { make(bytes.as_ptr(), bytes.len(), cfg!(target_endian = "little").into(), 0) },
            Ints::Called(from_bytes) => return from_bytes.bind(py).call1((PyBytes::new(py, &number.to_be_bytes()), "big")),
        };
        // SAFETY: the result is a new reference, or null with an exception set.
        unsafe { Bound::from_owned_ptr_or_err(py, int) }
    }
}

/// Returns CPython's symbol of a name.
#[cfg(unix)]
fn symbol(name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: the name ends in a NUL.
    NonNull::new(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })
}

#[cfg(not(unix))]
fn symbol(_name: &CStr) -> Option<NonNull<c_void>> {
    None
}

fn uuid_in(id: &Bound<'_, PyAny>) -> PyResult<frazil::Uuid> {
    let py = id.py();
    if id.is_instance(class(py)?)? {
        return Ok(frazil::Uuid::from_bytes(id.getattr("bytes")?.extract()?));
    }
    if id.is_instance_of::<PyString>() {
        return frazil::parse_uuid(convert::string("id", id, ErrorKind::IdInvalid)?).or_raise(py);
    }
    wrong_type("id", id, "a uuid.UUID or a str")
}
