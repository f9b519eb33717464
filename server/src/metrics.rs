//! The metrics: the core's own table for each name, and those of the server.

use crate::names::Name;
use crate::process_metrics::OfProcess;
use frazil::{Metric, Stats};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::{self, Registry};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

type Labels = [(&'static str, String); 2];
type PortLabels = [(&'static str, &'static str); 1];

/// The metrics of a port. Handles are looked up once, so an answer costs one atomic addition.
pub struct Port {
    protocol: &'static str,
    answered: Counter,
    refused: Family<Labels, Counter>,
    seconds: Times,
    pub open: Gauge,
    pub turned_away: Counter,
    pub handshakes_failed: Counter,
}

impl Port {
    pub fn answered(&self) {
        self.answered.inc();
    }

    pub fn refused(&self, code: &str) {
        self.refused.get_or_create(&[("protocol", self.protocol.to_owned()), ("code", code.to_owned())]).inc();
    }

    /// Records the time of an answer, or of the answers to a pipeline.
    pub fn took(&self, since: Instant) {
        self.seconds.observe(since.elapsed());
    }
}

pub struct Metrics {
    registry: Registry,
    /// The metrics without the server's prefix.
    of_process: Registry,
    pub panics: Counter,
    pub log_lines_lost: Counter,
    /// 1, or 0 after a reload that kept the old files.
    pub last_reload: Gauge,
    /// [`Tls::expires`](crate::tls::Tls::expires).
    pub certificate_expires: Gauge,
    pub http: Arc<Port>,
    pub resp: Arc<Port>,
    pub admin: Arc<Port>,
}

impl Metrics {
    /// `certificate_expires` is `None` without TLS.
    pub fn new(certificate_expires: Option<i64>) -> Self {
        let mut registry = Registry::with_prefix("frazil_server");
        let requests: Family<Labels, Counter> = registered(&mut registry, "requests", "Requests by the code of their error, or OK");
        let help = "Time of an answer; with RESP, of the answers to one pipeline";
        let seconds: Family<PortLabels, Times> = registered(&mut registry, "request_seconds", help);
        let open: Family<PortLabels, Gauge> = registered(&mut registry, "connections", "Open connections");
        let help = "Connections beyond the limits, closed at once";
        let turned_away: Family<PortLabels, Counter> = registered(&mut registry, "connections_turned_away", help);
        let help = "Connections whose TLS handshake failed";
        let handshakes_failed: Family<PortLabels, Counter> = registered(&mut registry, "handshakes_failed", help);
        let help = "Panics, which are defects of the server; each ended a request or a connection";
        let panics = registered(&mut registry, "panics", help);
        let help = "Lines of the log that were not read in time, or could not be written";
        let log_lines_lost = registered(&mut registry, "log_lines_lost", help);
        let help = "1, or 0 if the last reload found an invalid file and the old files stay in use";
        let last_reload: Gauge = registered(&mut registry, "last_reload_successful", help);
        last_reload.set(1);
        let help = "Unix time at which the first certificate of the chain expires, 0 if one cannot be read";
        let expires = "certificate_expires_timestamp_seconds";
        let certificate_expires = certificate_expires.map_or_else(Gauge::default, |at| {
            let gauge: Gauge = registered(&mut registry, expires, help);
            gauge.set(at);
            gauge
        });
        registry.register("build", "The version of the server", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        let port = |protocol: &'static str| {
            let labels = [("protocol", protocol)];
            Arc::new(Port {
                protocol,
                answered: requests.get_or_create(&[("protocol", protocol.to_owned()), ("code", "OK".to_owned())]).clone(),
                refused: requests.clone(),
                seconds: seconds.get_or_create(&labels).clone(),
                open: open.get_or_create(&labels).clone(),
                turned_away: turned_away.get_or_create(&labels).clone(),
                handshakes_failed: handshakes_failed.get_or_create(&labels).clone(),
            })
        };
        let (http, resp, admin) = (port("http"), port("resp"), port("admin"));
        let mut of_process = Registry::default();
        of_process.register_collector(Box::new(OfProcess::now()));
        Metrics { registry, of_process, panics, log_lines_lost, last_reload, certificate_expires, http, resp, admin }
    }

    /// Returns all metrics as OpenMetrics text, which Prometheus reads.
    pub fn text(&self, names: &[Arc<Name>]) -> Result<String, fmt::Error> {
        let mut of_names = Registry::default();
        let all = names.iter().flat_map(|name| name.stats().into_iter().map(|stats| (name.name.clone(), stats))).collect();
        of_names.register_collector(Box::new(OfNames(all)));
        let mut text = String::new();
        prometheus_client::encoding::text::encode_registry(&mut text, &of_names)?;
        prometheus_client::encoding::text::encode_registry(&mut text, &self.of_process)?;
        prometheus_client::encoding::text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

fn registered<M: registry::Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// The first of the buckets' bounds, which double from 10 µs to 5 s. Shorter times need no attention, and few clients wait longer.
const FIRST_BUCKET: Duration = Duration::from_micros(10);
const BUCKETS: usize = 20;

/// A histogram of times. The library's own takes a lock for every request on every thread.
#[derive(Clone, Debug, Default)]
struct Times(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    nanoseconds: AtomicU64,
    /// The last bucket has the times above all bounds.
    buckets: [AtomicU64; BUCKETS + 1],
}

impl Times {
    fn observe(&self, time: Duration) {
        let nanoseconds = time.as_nanos() as u64;
        self.0.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        self.0.buckets[bucket(nanoseconds)].fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns the first bucket whose bound is not below the time.
fn bucket(nanoseconds: u64) -> usize {
    let widths = nanoseconds.div_ceil(FIRST_BUCKET.as_nanos() as u64);
    let doublings = u64::BITS - widths.saturating_sub(1).leading_zeros();
    (doublings as usize).min(BUCKETS)
}

fn bound(bucket: usize) -> f64 {
    if bucket < BUCKETS { (FIRST_BUCKET * (1 << bucket)).as_secs_f64() } else { f64::INFINITY }
}

impl EncodeMetric for Times {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        let buckets: Vec<_> = self.0.buckets.iter().enumerate().map(|(n, count)| (bound(n), count.load(Ordering::Relaxed))).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let seconds = Duration::from_nanos(self.0.nanoseconds.load(Ordering::Relaxed)).as_secs_f64();
        encoder.encode_histogram::<NoLabelSet>(seconds, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for Times {
    const TYPE: MetricType = MetricType::Histogram;
}

/// The core's table, with the name as a label.
#[derive(Debug)]
struct OfNames(Vec<(String, Stats)>);

impl Collector for OfNames {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for metric in Metric::ALL {
            let kind = if metric.is_counter { MetricType::Counter } else { MetricType::Gauge };
            // The format adds its own suffix.
            let name = metric.prometheus.strip_suffix("_total").unwrap_or(metric.prometheus);
            let mut family = encoder.encode_descriptor(name, metric.help, None, kind)?;
            for (name, stats) in &self.0 {
                let Some(value) = metric.value(stats) else { continue };
                let labels = [("name", name.as_str()), ("kind", stats.kind), ("spec", stats.spec.as_str())];
                Sample { value, kind }.encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

struct Sample {
    value: f64,
    kind: MetricType,
}

impl EncodeMetric for Sample {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        match self.kind {
            MetricType::Counter => encoder.encode_counter::<NoLabelSet, _, u64>(&self.value, None),
            _ => encoder.encode_gauge(&self.value),
        }
    }

    fn metric_type(&self) -> MetricType {
        self.kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_first_bucket_with_room_for_it() {
        for nanoseconds in [0, 1, 9_999, 10_000, 10_001, 20_000, 20_001, 40_000, 5_242_880_000, 5_242_880_001, u64::MAX] {
            let its = bucket(nanoseconds);
            let seconds = Duration::from_nanos(nanoseconds).as_secs_f64();
            assert!(seconds <= bound(its) && (its == 0 || seconds > bound(its - 1)), "{nanoseconds} is in {its}");
        }
    }
}
