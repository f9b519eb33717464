//! Statistics of generators and segments: `ids.stats()`, `frazil.stats()`, `frazil.METRICS`.

use crate::error::guard;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

macro_rules! stats {
    ($($field:ident: $type:ty,)*) => {
        #[doc = doc!(Stats)]
        #[pyclass(frozen, eq, get_all, module = "frazil")]
        #[derive(PartialEq)]
        pub(crate) struct Stats {
            #[doc = doc!(Stats kind)]
            kind: &'static str,
            #[doc = doc!(Stats spec)]
            spec: String,
            $(#[doc = doc!(Stats $field)] $field: $type,)*
        }

        impl From<frazil::Stats> for Stats {
            fn from(stats: frazil::Stats) -> Self {
                let frazil::Stats { kind, spec, $($field,)* .. } = stats;
                Stats { kind, spec, $($field,)* }
            }
        }

        impl Stats {
            fn fields<'py>(&self, py: Python<'py>) -> PyResult<Vec<(&'static str, Bound<'py, PyAny>)>> {
                Ok(vec![$((stringify!($field), (&self.$field).into_pyobject(py)?.into_any()),)*])
            }
        }
    };
}

stats! {
    issued: u64,
    waits: u64,
    wait_seconds: f64,
    exhausted: u64,
    refused: u64,
    rollbacks: u64,
    largest_rollback_seconds: f64,
    drift_seconds: f64,
    borrowed_ticks: u64,
    layout_seconds_left: Option<f64>,
    lease_node: Option<u64>,
    lease_bound: Option<f64>,
    lease_seconds_left: Option<f64>,
    lease_renewals: Option<u64>,
    lease_failures: Option<u64>,
    lease_failing_seconds: Option<f64>,
    leases_lost: Option<u64>,
    range_left: Option<u64>,
    range_ready: Option<u64>,
    range_step: Option<u64>,
    hungry: Option<u64>,
}

#[pymethods]
impl Stats {
    #[doc = doc!(Stats as_dict)]
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guard(py, || {
            let values = PyDict::new(py);
            for (name, value) in self.fields(py)? {
                if !value.is_none() {
                    values.set_item(name, value)?;
                }
            }
            Ok(values)
        })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        guard(py, || {
            let shown = self.fields(py)?.into_iter().filter(|(_, value)| !value.is_none());
            let shown: PyResult<Vec<_>> = shown.map(|(name, value)| Ok(format!("{name}={}", value.repr()?))).collect();
            Ok(format!("Stats(kind={:?}, spec={:?}, {})", self.kind, self.spec, shown?.join(", ")))
        })
    }
}

#[doc = doc!(Metric)]
#[pyclass(frozen, get_all, module = "frazil")]
pub(crate) struct Metric {
    #[doc = doc!(Metric field)]
    field: &'static str,
    #[doc = doc!(Metric prometheus)]
    prometheus: &'static str,
    #[doc = doc!(Metric opentelemetry)]
    opentelemetry: &'static str,
    #[doc = doc!(Metric unit)]
    unit: &'static str,
    #[doc = doc!(Metric is_counter)]
    is_counter: bool,
    #[doc = doc!(Metric help)]
    help: &'static str,
}

#[pymethods]
impl Metric {
    fn __repr__(&self) -> String {
        format!("Metric(field={:?}, prometheus={:?}, opentelemetry={:?})", self.field, self.prometheus, self.opentelemetry)
    }
}

/// `METRICS`.
pub(crate) fn metrics(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    let rows = frazil::Metric::ALL.iter().map(|metric| {
        let frazil::Metric { field, prometheus, opentelemetry, unit, is_counter, help, .. } = *metric;
        Py::new(py, Metric { field, prometheus, opentelemetry, unit, is_counter, help })
    });
    PyTuple::new(py, rows.collect::<PyResult<Vec<_>>>()?)
}

#[doc = doc!(stats)]
#[pyfunction]
pub(crate) fn stats(py: Python<'_>) -> PyResult<Vec<Stats>> {
    // A generator whose last handle is dropped during the call is closed here.
    guard(py, || Ok(py.detach(frazil::stats).into_iter().map(Stats::from).collect()))
}
