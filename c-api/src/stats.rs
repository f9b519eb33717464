//! Statistics of generators and segments.
#![allow(non_camel_case_types)]

use crate::convert::{SizedOut, filled, null, reference};
use crate::error::{c_string, frazil_status, guard};
use crate::numbers::frazil_numbers;
use crate::snowflake::frazil_snowflake;
use frazil_core::bindings::Uncancelled;
use frazil_core::{Error, ErrorKind, Metric, Stats};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};

/// The counts of a generator or a segment in this process. Fields that begin with lease_ belong to a
/// leased number, and those that begin with range_ to a segment, tickets or a ring; elsewhere they are 0.
#[repr(C)]
pub struct frazil_stats {
    /// "snowflake", "segment", "tickets" or "buffered".
    pub kind: *const c_char,
    /// The canonical spec line of the first opening, without secrets. Valid until this thread's next call that returns
    /// a frazil_stats, or until the visitor returns.
    pub spec: *const c_char,
    /// IDs issued, or numbers handed out: exact when no call is in progress, except for the blocks of frazil_local handles.
    pub issued: u64,
    /// Calls that waited: for the clock, for a lease, for numbers of a store.
    pub waits: u64,
    /// The time that calls waited, in total.
    pub wait_seconds: f64,
    /// Calls that found the sequence used up, or no number in time.
    pub exhausted: u64,
    /// Calls that ended with an error in place of IDs.
    pub refused: u64,
    /// The number of times that the clock went back by a tick or more.
    pub rollbacks: u64,
    /// The largest step back.
    pub largest_rollback_seconds: f64,
    /// The time by which the last ID is ahead of the clock.
    pub drift_seconds: f64,
    /// Ticks that were entered before the clock showed them.
    pub borrowed_ticks: u64,
    /// The time until the layout ends; infinite where dates end first, and for numbers.
    pub layout_seconds_left: f64,
    /// True if there is a lease.
    pub is_leased: bool,
    /// True if numbers are prefetched.
    pub has_ranges: bool,
    /// The node number that is leased.
    pub lease_node: u64,
    /// The end of what the lease covers, in seconds since 1970; infinite for a disposable number.
    pub lease_bound: f64,
    /// The time until that end.
    pub lease_seconds_left: f64,
    /// The number of times that the lease was extended.
    pub lease_renewals: u64,
    /// Calls of the store for the lease that failed.
    pub lease_failures: u64,
    /// The time for which these have failed; 0 when all is well.
    pub lease_failing_seconds: f64,
    /// Node numbers that another process had taken.
    pub leases_lost: u64,
    /// Numbers left in the range being used.
    pub range_left: u64,
    /// Numbers that are prepared after that range.
    pub range_ready: u64,
    /// The size of the next range that is fetched; 0 for a ring and for tickets.
    pub range_step: u64,
    /// Calls that found no prefetched number.
    pub hungry: u64,
}

filled!(frazil_stats, hungry: u64);

thread_local! {
    static SPEC: RefCell<CString> = RefCell::default();
}

fn to_c(stats: &Stats, spec: *const c_char) -> frazil_stats {
    let kind: &CStr = match stats.kind {
        "snowflake" => c"snowflake",
        "segment" => c"segment",
        "tickets" => c"tickets",
        _ => c"buffered",
    };
    let (count, seconds) = (|count: Option<u64>| count.unwrap_or(0), |seconds: Option<f64>| seconds.unwrap_or(0.0));
    let no_end = |seconds: Option<f64>| seconds.unwrap_or(f64::INFINITY);
    let is_leased = stats.lease_node.is_some();
    frazil_stats {
        kind: kind.as_ptr(),
        spec,
        issued: stats.issued,
        waits: stats.waits,
        wait_seconds: stats.wait_seconds,
        exhausted: stats.exhausted,
        refused: stats.refused,
        rollbacks: stats.rollbacks,
        largest_rollback_seconds: stats.largest_rollback_seconds,
        drift_seconds: stats.drift_seconds,
        borrowed_ticks: stats.borrowed_ticks,
        layout_seconds_left: no_end(stats.layout_seconds_left),
        is_leased,
        has_ranges: stats.hungry.is_some(),
        lease_node: count(stats.lease_node),
        lease_bound: if is_leased { no_end(stats.lease_bound) } else { 0.0 },
        lease_seconds_left: if is_leased { no_end(stats.lease_seconds_left) } else { 0.0 },
        lease_renewals: count(stats.lease_renewals),
        lease_failures: count(stats.lease_failures),
        lease_failing_seconds: seconds(stats.lease_failing_seconds),
        leases_lost: count(stats.leases_lost),
        range_left: count(stats.range_left),
        range_ready: count(stats.range_ready),
        range_step: count(stats.range_step),
        hungry: count(stats.hungry),
    }
}

fn give(out: SizedOut<frazil_stats>, stats: &Stats) {
    let spec = c_string(stats.spec.clone());
    // An ending thread has no storage for the spec; the counts are still returned.
    let kept = SPEC.try_with(|place| {
        place.replace(spec);
        place.borrow().as_ptr()
    });
    out.write(to_c(stats, kept.unwrap_or(c"".as_ptr())));
}

/// The counts of this process, over all handles. Call `frazil_snowflake_stats(ids, &stats, sizeof stats)`. Asks no
/// store.
///
/// FRAZIL_OUT_OF_RANGE for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_stats(ids: *const frazil_snowflake, stats: *mut frazil_stats, size: usize) -> frazil_status {
    guard(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (ids, out) = unsafe { (reference("ids", ids)?, SizedOut::new("stats", stats, size)?) };
        give(out, &ids.ids.stats());
        Ok(())
    })
}

/// The counts of this process, over all handles. The generator of a ring is shown by frazil_each_stats() beside it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_numbers_stats(numbers: *const frazil_numbers, stats: *mut frazil_stats, size: usize) -> frazil_status {
    guard(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (numbers, out) = unsafe { (reference("numbers", numbers)?, SizedOut::new("stats", stats, size)?) };
        give(out, &numbers.numbers.stats());
        Ok(())
    })
}

/// The function that frazil_each_stats() calls. A later version may add fields at the end of the struct.
pub type frazil_stats_visitor = Option<unsafe extern "C-unwind" fn(stats: *const frazil_stats, data: *mut c_void)>;

/// Shows what every open generator and segment of this process has counted, sorted by kind and spec; those of the same kind and spec are one.
/// The visitor is called on this thread, under no lock, and may call frazil.
///
/// The visitor must return. An exception, a longjmp() or a pthread_exit() out of it is undefined, because a released library may be linked
/// with another unwinder than the program. frazil::each_stats() of frazil.hpp rethrows an exception after the last frame of the library.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn frazil_each_stats(visitor: frazil_stats_visitor, data: *mut c_void) -> frazil_status {
    let mut counted = Vec::new();
    let status = guard(|| {
        visitor.ok_or_else(|| null("visitor"))?;
        counted = frazil_core::stats().into_iter().map(|stats| (c_string(stats.spec.clone()), stats)).collect();
        Ok(())
    });
    // No guard is above the visitor, because it would take an exception of the program for a panic.
    let _uncancelled = Uncancelled::new();
    for (spec, stats) in &counted {
        if let Some(visitor) = visitor {
            // SAFETY: it is the caller's function, and the counts live until it returns.
            unsafe { visitor(&to_c(stats, spec.as_ptr()), data) };
        }
    }
    status
}

/// A row of the table from which exporters take names: frazil_metric_at(). The texts are valid for the life of the process.
#[repr(C)]
pub struct frazil_metric {
    /// The field of frazil_stats.
    pub field: *const c_char,
    /// The name in Prometheus.
    pub prometheus: *const c_char,
    /// The name in OpenTelemetry.
    pub opentelemetry: *const c_char,
    /// The unit there.
    pub unit: *const c_char,
    /// The help text.
    pub help: *const c_char,
    /// True for a counter, which only grows; false for a gauge.
    pub is_counter: bool,
}

filled!(frazil_metric, is_counter: bool);

/// The number of rows in the table of metrics.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_metric_count() -> usize {
    Metric::ALL.len()
}

/// A row of that table: `frazil_metric_at(index, &metric, sizeof metric)`.
///
/// FRAZIL_OUT_OF_RANGE past its end, and for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_metric_at(index: usize, metric: *mut frazil_metric, size: usize) -> frazil_status {
    guard(|| {
        // SAFETY: the caller's pointer is NULL or valid, as frazil.h requires.
        let out = unsafe { SizedOut::new("metric", metric, size)? };
        let metric = Metric::ALL.get(index).ok_or_else(|| {
            let last = Metric::ALL.len() - 1;
            Error::new(ErrorKind::OutOfRange, format!("index={index} is out of range: 0 to {last}"))
        })?;
        let [field, prometheus, opentelemetry, unit, help] = metric.c_texts().map(CStr::as_ptr);
        out.write(frazil_metric { field, prometheus, opentelemetry, unit, help, is_counter: metric.is_counter });
        Ok(())
    })
}
