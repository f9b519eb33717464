//! The outcome of a run: load, waits, refusals, and the judgement of the IDs.

use super::super::program::Spans;
use super::super::world::overlaps;
use super::service::Service;

#[derive(Default)]
pub(super) struct Outcome {
    pub(super) name: String,
    /// IDs that were issued, and calls for IDs that were refused.
    pub(super) issued: u64,
    pub(super) refused: u64,
    pub(super) leases: usize,
    /// Pairs of leases that issued the same stamp.
    pub(super) duplicates: usize,
    /// The time of each start, with all its attempts.
    pub(super) waits_ms: Vec<u64>,
    /// Starts that ended with an error, and processes that have no number at the end.
    pub(super) failed_starts: u64,
    pub(super) unstarted: usize,
    /// The store's requests in each second, and the part of its processors that they took.
    pub(super) load: Vec<(u32, f64)>,
}

impl Outcome {
    pub(super) fn end(&mut self, service: &Service, spans: &Spans, unstarted: usize) {
        self.unstarted = unstarted;
        self.leases = spans.len();
        self.duplicates = overlaps(spans).count();
        self.waits_ms.sort_unstable();
        let whole = 1e6 * service.store.processors() as f64;
        self.load = service.store.seconds.iter().map(|(requests, took_us)| (*requests, *took_us as f64 / whole)).collect();
    }

    fn wait_s(&self, percent: usize) -> f64 {
        let last = self.waits_ms.len().saturating_sub(1);
        self.waits_ms.get(last * percent / 100).map_or(f64::NAN, |ms| *ms as f64 / 1e3)
    }

    fn mean(&self) -> u64 {
        self.load.iter().map(|(requests, _)| u64::from(*requests)).sum::<u64>() / self.load.len().max(1) as u64
    }

    fn peak(&self) -> (u32, f64) {
        self.load.iter().fold((0, 0.0), |(requests, part), second| (requests.max(second.0), f64::max(part, second.1)))
    }
}

/// A row of the table.
pub(super) fn row(outcome: &Outcome) -> String {
    let ((peak, part), mean, Outcome { name, failed_starts, issued, refused, duplicates, .. }) = (outcome.peak(), outcome.mean(), outcome);
    let (median, longest, busiest) = (outcome.wait_s(50), outcome.wait_s(100), part * 100.0);
    format!(
        "| {name} | {mean} | {peak} | {busiest:.0} % | {median:.2} s | {longest:.1} s | {failed_starts} | {issued} | {refused} | {duplicates} |"
    )
}

/// A Markdown table.
pub(super) fn table(count: usize, outcomes: &[Outcome]) -> String {
    let rows: Vec<_> = outcomes.iter().map(row).collect();
    format!(
        "{count} processes\n\n| what happens | requests/s, mean | peak | busiest second | a start, median | longest | failed starts | \
         IDs issued | calls refused | duplicates |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n{}\n",
        rows.join("\n")
    )
}

/// The requests of each second, for the plot.
pub(super) fn json(count: usize, outcomes: &[Outcome]) -> String {
    let runs = outcomes.iter().map(|outcome| {
        let requests: Vec<_> = outcome.load.iter().map(|(requests, _)| requests.to_string()).collect();
        format!("  {{\"name\": \"{}\", \"requests\": [{}]}}", outcome.name, requests.join(", "))
    });
    format!("{{\"processes\": {count}, \"runs\": [\n{}\n]}}\n", runs.collect::<Vec<_>>().join(",\n"))
}
