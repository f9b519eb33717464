//! Statistics of generators and segments, under the same names in every language.

use frazil_base::os::fork::PerProcess;
use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// A value of a [`Stats`]: a row of the one table with the names and help texts for every language
/// and exporter.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Metric {
    /// The field of [`Stats`].
    pub field: &'static str,
    /// The name in Prometheus.
    pub prometheus: &'static str,
    /// The name in OpenTelemetry.
    pub opentelemetry: &'static str,
    /// The unit, as OpenTelemetry writes it (UCUM).
    pub unit: &'static str,
    /// True for a counter, which only grows; false for a gauge.
    pub is_counter: bool,
    /// The help text.
    pub help: &'static str,
    c_texts: [&'static CStr; 5],
    value: fn(&Stats) -> Option<f64>,
}

/// Combines two metrics with the same labels.
trait Merge: Copy {
    fn number(self) -> Option<f64>;
    fn sum(self, other: Self) -> Self;
    fn most(self, other: Self) -> Self;
    fn least(self, other: Self) -> Self;
}

impl Merge for u64 {
    fn number(self) -> Option<f64> {
        Some(self as f64)
    }

    fn sum(self, other: Self) -> Self {
        self.saturating_add(other)
    }

    fn most(self, other: Self) -> Self {
        self.max(other)
    }

    fn least(self, other: Self) -> Self {
        self.min(other)
    }
}

impl Merge for f64 {
    fn number(self) -> Option<f64> {
        Some(self)
    }

    fn sum(self, other: Self) -> Self {
        self + other
    }

    fn most(self, other: Self) -> Self {
        self.max(other)
    }

    fn least(self, other: Self) -> Self {
        self.min(other)
    }
}

fn both<T: Copy>(one: Option<T>, other: Option<T>, merge: fn(T, T) -> T) -> Option<T> {
    one.zip(other).map(|(one, other)| merge(one, other)).or(one).or(other)
}

impl<T: Merge> Merge for Option<T> {
    fn number(self) -> Option<f64> {
        self.and_then(T::number)
    }

    fn sum(self, other: Self) -> Self {
        both(self, other, T::sum)
    }

    fn most(self, other: Self) -> Self {
        both(self, other, T::most)
    }

    fn least(self, other: Self) -> Self {
        both(self, other, T::least)
    }
}

/// Adds the text for C, which ends with a zero byte.
macro_rules! c_text {
    ($text:expr) => {
        match CStr::from_bytes_with_nul(concat!($text, "\0").as_bytes()) {
            Ok(text) => text,
            Err(_) => panic!("a text has no NUL"),
        }
    };
}

macro_rules! metrics {
    ($($field:ident: $type:ty, $kind:literal, $merge:ident, $prometheus:literal, $opentelemetry:literal, $unit:literal, $help:literal;)*) => {
        /// The counts of a generator or a segment in this process:
        /// [`Snowflake::stats`](crate::Snowflake::stats),
        /// [`Numbers::stats`](crate::Numbers::stats), [`stats`]. `None` for a value that does not
        /// apply: a given number has no lease.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct Stats {
            /// `snowflake`, `segment`, `tickets` or `buffered`.
            pub kind: &'static str,
            /// The canonical spec line of the first handle, which shows no secret.
            pub spec: String,
            $(#[doc = $help] pub $field: $type,)*
        }

        impl Metric {
            /// All metrics, in the order of the fields.
            pub const ALL: &'static [Metric] = &[$(Metric {
                field: stringify!($field),
                prometheus: $prometheus,
                opentelemetry: $opentelemetry,
                unit: $unit,
                is_counter: matches!($kind.as_bytes(), b"counter"),
                help: $help,
                c_texts: [
                    c_text!(stringify!($field)),
                    c_text!($prometheus),
                    c_text!($opentelemetry),
                    c_text!($unit),
                    c_text!($help),
                ],
                value: |stats| Merge::number(stats.$field),
            },)*];
        }

        impl Stats {
            pub(crate) fn new(kind: &'static str, spec: String) -> Self {
                Stats { kind, spec, $($field: Default::default(),)* }
            }

            /// Adds the counts of another generator with the same labels.
            #[doc(hidden)]
            pub fn merge(&mut self, other: &Stats) {
                $(self.$field = Merge::$merge(self.$field, other.$field);)*
            }

            /// Returns the counters alone.
            fn counters(self) -> Self {
                let mut counters = Stats::new(self.kind, self.spec);
                $(if $kind == "counter" {
                    counters.$field = self.$field;
                })*
                counters
            }
        }
    };
}

metrics! {
    issued: u64, "counter", sum, "frazil_issued_total", "frazil.issued", "{id}",
        "IDs issued, or numbers given out";
    waits: u64, "counter", sum, "frazil_waits_total", "frazil.waits", "{wait}",
        "Calls that waited for the clock, for a lease, or for numbers of a store";
    wait_seconds: f64, "counter", sum, "frazil_wait_time_seconds_total", "frazil.wait.time", "s",
        "The total time for which calls waited";
    exhausted: u64, "counter", sum, "frazil_exhausted_total", "frazil.exhausted", "{call}",
        "Calls that found the sequence used up, or no number in time";
    refused: u64, "counter", sum, "frazil_refused_total", "frazil.refused", "{call}",
        "Calls that ended with an error";
    rollbacks: u64, "counter", sum, "frazil_clock_rollbacks_total", "frazil.clock.rollbacks", "{rollback}",
        "Times that the clock went back by a tick or more";
    largest_rollback_seconds: f64, "gauge", most, "frazil_clock_rollback_largest_seconds", "frazil.clock.rollback.largest", "s",
        "The longest time by which the clock went back";
    drift_seconds: f64, "gauge", most, "frazil_clock_drift_seconds", "frazil.clock.drift", "s",
        "The time by which the last ID is stamped ahead of the clock";
    borrowed_ticks: u64, "counter", sum, "frazil_borrowed_ticks_total", "frazil.borrowed.ticks", "{tick}",
        "Ticks that were entered before the clock showed them";
    layout_seconds_left: Option<f64>, "gauge", least, "frazil_layout_left_seconds", "frazil.layout.left", "s",
        "The time until the layout ends";
    lease_node: Option<u64>, "gauge", least, "frazil_lease_node", "frazil.lease.node", "{node}",
        "The leased node number";
    lease_bound: Option<f64>, "gauge", least, "frazil_lease_bound_timestamp_seconds", "frazil.lease.bound.timestamp", "s",
        "The instant up to which the lease covers IDs, in seconds since 1970";
    lease_seconds_left: Option<f64>, "gauge", least, "frazil_lease_left_seconds", "frazil.lease.left", "s",
        "The time for which the lease still covers IDs without its store";
    lease_renewals: Option<u64>, "counter", sum, "frazil_lease_renewals_total", "frazil.lease.renewals", "{renewal}",
        "Extensions of the lease";
    lease_failures: Option<u64>, "counter", sum, "frazil_lease_failures_total", "frazil.lease.failures", "{failure}",
        "Failed calls of the store for the lease";
    lease_failing_seconds: Option<f64>, "gauge", most, "frazil_lease_failing_seconds", "frazil.lease.failing", "s",
        "The time for which calls for the lease have failed; 0 if the last one succeeded";
    leases_lost: Option<u64>, "counter", sum, "frazil_leases_lost_total", "frazil.leases.lost", "{lease}",
        "Node numbers lost to another process";
    range_left: Option<u64>, "gauge", sum, "frazil_range_left", "frazil.range.left", "{id}",
        "Numbers left in the current range";
    range_ready: Option<u64>, "gauge", sum, "frazil_range_ready", "frazil.range.ready", "{id}",
        "Prefetched numbers after the current range";
    range_step: Option<u64>, "gauge", most, "frazil_range_step", "frazil.range.step", "{id}",
        "The size of the next range to fetch";
    hungry: Option<u64>, "counter", sum, "frazil_hungry_total", "frazil.hungry", "{call}",
        "Calls that found no prefetched number";
}

impl Metric {
    /// Returns the value of a generator; `None` if it does not apply.
    pub fn value(&self, stats: &Stats) -> Option<f64> {
        (self.value)(stats)
    }

    /// The field, the names, the unit and the help text, for C.
    #[doc(hidden)]
    pub fn c_texts(&self) -> [&'static CStr; 5] {
        self.c_texts
    }
}

/// A generator or a segment that has statistics.
pub(crate) trait Counted: Send + Sync {
    /// `None` if this process has not used the source, because the source is a parent's.
    fn stats(&self) -> Option<Stats>;
}

/// The number of kinds and specs for which the counts of closed generators are kept, because a
/// program may open each generator under a new spec.
const MOST_CLOSED: usize = 1_024;
/// The longest wait for a source that is being dropped.
const LEAVES_WITHIN: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Sources {
    /// The open sources by their addresses, which are unique at any time.
    open: HashMap<usize, Weak<dyn Counted>>,
    /// The counts of dropped sources, with the number of sources that were dropped before the last one of each.
    closed: HashMap<(&'static str, String), (Stats, u64)>,
    gone: u64,
}

static SOURCES: PerProcess<Mutex<Sources>> = PerProcess::new();

fn with_sources<T>(work: impl FnOnce(&mut Sources) -> T) -> T {
    let sources = SOURCES.get(|| Ok(Mutex::default())).expect("nothing here can fail");
    work(&mut sources.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Adds a source to those of this process, until it [leaves](leave).
pub(crate) fn register(source: Weak<dyn Counted>) {
    let place = source.as_ptr().cast::<()>().addr();
    with_sources(|sources| sources.open.insert(place, source));
}

/// Keeps the counts of a dropped source, because the sum of its kind and spec must not fall.
pub(crate) fn leave(source: &impl Counted) {
    let (place, stats) = (std::ptr::from_ref(source).addr(), source.stats());
    with_sources(|sources| {
        if sources.open.remove(&place).is_some()
            && let Some(stats) = stats
        {
            sources.keep(stats);
        }
    });
}

impl Sources {
    fn keep(&mut self, stats: Stats) {
        self.gone += 1;
        let gone = self.gone;
        let (counters, last) =
            self.closed.entry((stats.kind, stats.spec.clone())).or_insert_with(|| (Stats::new(stats.kind, stats.spec.clone()), gone));
        counters.merge(&stats.counters());
        *last = gone;
        if self.closed.len() > MOST_CLOSED {
            let oldest = gone - MOST_CLOSED as u64;
            self.closed.retain(|_, (_, last)| *last > oldest);
        }
    }
}

/// All open sources. A source whose `drop` has begun is neither here nor among the closed ones, so
/// this waits for it.
fn open_sources() -> Vec<Arc<dyn Counted>> {
    let since = Instant::now();
    loop {
        let found = with_sources(|sources| sources.open.values().map(Weak::upgrade).collect::<Vec<_>>());
        if found.iter().all(Option::is_some) || since.elapsed() >= LEAVES_WITHIN {
            return found.into_iter().flatten().collect();
        }
        drop(found);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The counts of every open generator and segment of the process.
///
/// A fixed number stays open as long as the process runs. Counts of the same kind and spec are combined. They include the counts of closed
/// generators, so that no counter falls. This holds for the 1,024 kinds and specs that were closed last. The list is sorted by kind and
/// spec. Calls no store.
///
/// # Example
/// ```
/// let ids = frazil::Snowflake::open("standard node=5")?;
/// ids.next_id()?;
/// for stats in frazil::stats() {
///     for metric in frazil::Metric::ALL {
///         if let Some(value) = metric.value(&stats) {
///             println!("{}{{kind=\"{}\",spec=\"{}\"}} {value}", metric.prometheus, stats.kind, stats.spec);
///         }
///     }
/// }
/// # Ok::<(), frazil::Error>(())
/// ```
pub fn stats() -> Vec<Stats> {
    let sources = open_sources();
    let mut all: Vec<_> = sources.iter().filter_map(|source| source.stats()).collect();
    all.sort_by(|a, b| (a.kind, &a.spec).cmp(&(b.kind, &b.spec)));
    all.dedup_by(|same, first| {
        let is_same = (same.kind, &same.spec) == (first.kind, &first.spec);
        if is_same {
            first.merge(same);
        }
        is_same
    });
    with_sources(|sources| {
        for stats in &mut all {
            if let Some((closed, _)) = sources.closed.get(&(stats.kind, stats.spec.clone())) {
                stats.merge(closed);
            }
        }
    });
    // The sources that were read above could not leave before this line.
    drop(sources);
    all
}
