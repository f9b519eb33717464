//! Statistics of generators and segments: `ids.stats()`, `stats()`, `metrics`.

use crate::error::guard;
use frazil::{Metric, Stats};
use napi::bindgen_prelude::*;
use napi_derive::napi;

/// A value by its name in the core's table, which `index.js` writes as JavaScript does.
pub(crate) fn shown<'a>(env: &'a Env, stats: &Stats) -> Result<Object<'a>> {
    let mut object = Object::new(env)?;
    object.set("kind", stats.kind)?;
    object.set("spec", &stats.spec)?;
    for metric in Metric::ALL {
        object.set(metric.field, metric.value(stats).map_or(Either::B(()), Either::A))?;
    }
    Ok(object)
}

/// The counts of every open generator and segment of the process.
#[napi]
pub fn stats(env: &Env) -> Result<Vec<Object<'_>>> {
    guard(env, || frazil::stats().iter().map(|stats| shown(env, stats)).collect())
}

/// A row of the table from which exporters take names.
#[napi(object, object_from_js = false)]
pub struct MetricRow {
    /// The core's name of the property.
    pub field: &'static str,
    /// The name in Prometheus.
    pub prometheus: &'static str,
    /// The name in OpenTelemetry.
    pub opentelemetry: &'static str,
    /// The unit in OpenTelemetry.
    pub unit: &'static str,
    /// True for a counter, which only grows.
    pub is_counter: bool,
    /// The help text.
    pub help: &'static str,
}

/// The table.
#[napi]
pub fn metric_table() -> Vec<MetricRow> {
    let row = |metric: &Metric| {
        let Metric { field, prometheus, opentelemetry, unit, is_counter, help, .. } = *metric;
        MetricRow { field, prometheus, opentelemetry, unit, is_counter, help }
    };
    Metric::ALL.iter().map(row).collect()
}
