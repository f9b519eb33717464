//! The methods that generators and prefetched numbers share.

/// Defines the methods of a class: its own, and those of every source of IDs.
macro_rules! source {
    ($class:ident, { $($own:tt)* }) => {
        #[pymethods]
        impl $class {
            $($own)*

            #[doc = doc!($class anext)]
            #[pyo3(signature = (*, timeout=None))]
            fn anext<'py>(ids: &Bound<'py, Self>, timeout: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
                guard(ids.py(), || next::anext(ids, timeout))
            }

            #[doc = doc!($class batch)]
            #[pyo3(signature = (count, /, *, timeout=None))]
            fn batch<'py>(&self, count: &Bound<'py, PyAny>, timeout: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyList>> {
                guard(count.py(), || next::batch(&*self.0, count, timeout))
            }

            #[doc = doc!($class abatch)]
            #[pyo3(signature = (count, /, *, timeout=None))]
            fn abatch<'py>(ids: &Bound<'py, Self>, count: &Bound<'py, PyAny>, timeout: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
                guard(ids.py(), || next::abatch(ids, count, timeout))
            }

            #[doc = doc!($class array)]
            #[pyo3(signature = (count, /, *, timeout=None))]
            fn array<'py>(&self, count: &Bound<'py, PyAny>, timeout: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
                guard(count.py(), || next::array(&*self.0, count, timeout))
            }

            #[doc = doc!($class fill)]
            #[pyo3(signature = (buffer, /, *, timeout=None))]
            fn fill(&self, buffer: &Bound<'_, PyAny>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
                guard(buffer.py(), || next::fill_buffer(&*self.0, buffer, timeout))
            }

            #[doc = doc!($class close)]
            #[pyo3(signature = (*, timeout=None))]
            fn close(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
                guard(py, || lease::close(py, &*self.0, timeout))
            }

            #[doc = doc!($class aclose)]
            #[pyo3(signature = (*, timeout=None))]
            fn aclose<'py>(ids: &Bound<'py, Self>, timeout: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
                guard(ids.py(), || lease::close_async(ids, timeout))
            }

            #[doc = doc!($class stats)]
            fn stats(&self, py: Python<'_>) -> PyResult<Stats> {
                guard(py, || Ok(self.0.stats().into()))
            }

            #[doc = doc!($class spec)]
            #[getter]
            fn spec(&self, py: Python<'_>) -> PyResult<String> {
                guard(py, || Ok(self.0.spec()))
            }

            /// A pickle holds the spec.
            fn __reduce__<'py>(ids: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
                let inner = &ids.get().0;
                guard(ids.py(), || crate::snowflake::reduce(ids.get_type(), inner.portable_spec(), inner.is_for_one_process()))
            }

            /// A copy is the same object.
            fn __copy__<'py>(ids: &Bound<'py, Self>) -> Bound<'py, Self> {
                ids.clone()
            }

            /// A copy is the same object.
            #[pyo3(signature = (_memo, /))]
            fn __deepcopy__<'py>(ids: &Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
                ids.clone()
            }

            fn __call__(&self, py: Python<'_>) -> PyResult<i64> {
                guard_short(py, || Ok(next_id(py, &*self.0)?.get()))
            }

            fn __iter__<'py>(ids: &Bound<'py, Self>) -> Bound<'py, Self> {
                ids.clone()
            }

            fn __next__(&self, py: Python<'_>) -> PyResult<i64> {
                self.__call__(py)
            }

            fn __enter__<'py>(ids: &Bound<'py, Self>) -> Bound<'py, Self> {
                ids.clone()
            }

            #[pyo3(signature = (*_exception))]
            fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
                self.close(py, None)
            }

            fn __aenter__<'py>(ids: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
                guard(ids.py(), || lease::enter_async(ids))
            }

            #[pyo3(signature = (*_exception))]
            fn __aexit__<'py>(ids: &Bound<'py, Self>, _exception: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
                guard(ids.py(), || lease::close_async(ids, None))
            }
        }

        impl Drop for $class {
            fn drop(&mut self) {
                lease::release_on_drop(&*self.0);
            }
        }
    };
}

pub(crate) use source;
