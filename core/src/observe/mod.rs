//! Events for the log, and counters for monitoring.

pub(crate) mod event;
pub(crate) mod stats;

pub use event::{Event, Level, end_events, end_events_of, hold_events, on_event, on_event_of, resume_events, wait_for_events};
pub use stats::{Metric, Stats, stats};
