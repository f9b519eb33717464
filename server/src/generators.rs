//! Several generators under one name, each with its own node number: together they exceed the rate of one.

use frazil::{Error, ErrorKind, Id, Layout, Result, Snowflake, Spec, Stats, Wait};
use std::cell::Cell;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The key that the server takes out of a name's line.
const KEY: &str = "generators";
const ALLOWED: RangeInclusive<usize> = 1..=64;
/// The longest wait for a clock that went back further than the policies allow. A longer one ends the request with an error.
const CLOCK_WAIT: Duration = Duration::from_secs(1);

/// Takes the key out of a spec, and returns the number of generators it asks for.
///
/// # Errors
/// `WRONG_TYPE`, `OUT_OF_RANGE`; `SPEC` where there are fewer node numbers than generators.
pub fn wanted(spec: &mut Spec) -> Result<usize> {
    let Some(text) = spec.take(KEY)? else { return Ok(1) };
    let (low, high) = (ALLOWED.start(), ALLOWED.end());
    let count =
        text.parse().map_err(|_| Error::new(ErrorKind::WrongType, format!("{KEY}={text:?} is not a whole number: {low} to {high}")))?;
    if !ALLOWED.contains(&count) {
        return Err(Error::new(ErrorKind::OutOfRange, format!("{KEY}={count} is out of range: {low} to {high}")));
    }
    if count > 1 {
        spec.clone().leasing_each(count as u64)?;
    }
    Ok(count)
}

/// One or more generators of one layout.
pub struct Generators(Vec<Snowflake>);

impl Generators {
    /// # Errors
    /// Those of `Snowflake::open`, for any of the generators.
    pub fn open(spec: Spec, count: usize, wait: Wait<'_>) -> Result<Self> {
        if count == 1 {
            return Ok(Generators(vec![Snowflake::open_spec(spec, wait)?]));
        }
        let spec = spec.leasing_each(count as u64)?;
        (0..count).map(|_| Snowflake::open_spec(spec.clone(), wait)).collect::<Result<_>>().map(Generators)
    }

    /// Returns one ID: from this thread's generator if it has one now, otherwise from any that has.
    ///
    /// # Errors
    /// Those of `Snowflake::next_id_for`.
    pub fn next_for(&self, wait: Wait<'_>) -> Result<i64> {
        if let [only] = &*self.0 {
            return only.next_id_for(wait).map(Id::get);
        }
        let mut soonest = Soonest::default();
        for ids in self.in_turn() {
            match ids.next_id_for(Duration::ZERO) {
                Ok(id) => return Ok(id.get()),
                Err(error) => soonest.note(ids, error),
            }
        }
        soonest.found()?.next_id_for(wait).map(Id::get)
    }

    /// Fills the buffer with IDs that ascend within each generator, from as few generators as possible.
    ///
    /// # Errors
    /// Those of `Snowflake::fill_for`.
    pub fn fill_for(&self, buffer: &mut [i64], wait: Wait<'_>) -> Result<()> {
        if let [only] = &*self.0 {
            return only.fill_for(buffer, wait);
        }
        let (mut written, mut soonest) = (0, Soonest::default());
        for ids in self.in_turn() {
            let Err(error) = ids.fill_for(&mut buffer[written..], Duration::ZERO) else { return Ok(()) };
            written += error.written();
            soonest.note(ids, error);
        }
        let rest = soonest.found().and_then(|ids| ids.fill_for(&mut buffer[written..], wait));
        rest.map_err(|error| {
            let more = error.written();
            error.after_writing(written + more)
        })
    }

    /// Returns whether one batch may mix the IDs of several generators, each in its own order.
    pub fn are_several(&self) -> bool {
        self.0.len() > 1
    }

    /// Returns the layout, which all share.
    pub fn layout(&self) -> &Layout {
        self.0[0].layout()
    }

    /// Returns the counts of all generators, added up.
    pub fn stats(&self) -> Stats {
        let mut all = self.0.iter().map(Snowflake::stats);
        let mut sum = all.next().expect("there is at least one");
        all.for_each(|stats| sum.merge(&stats));
        sum
    }

    /// Returns why no generator can serve now: its lease's bound is reached, or its clock went back. `None` if one of them can serve. A
    /// fixed or a disposable number has no bound.
    pub fn trouble(&self) -> Option<String> {
        let of_one = |ids: &Snowflake| {
            lease_trouble(ids).or_else(|| match ids.due_in() {
                Ok(wait) if wait <= CLOCK_WAIT => None,
                Ok(wait) => Some(format!("the clock went back by {wait:?} more than the policies allow")),
                Err(error) => Some(error.to_string()),
            })
        };
        // The last generator's reason, or `None` if one can serve.
        self.0.iter().try_fold(None, |_, ids| of_one(ids).map(Some)).flatten()
    }

    fn in_turn(&self) -> impl Iterator<Item = &Snowflake> {
        let first = turn() % self.0.len();
        self.0[first..].iter().chain(&self.0[..first])
    }
}

/// The generator to wait for when none has an ID now: one that may be waited for, has its lease, and is due first.
#[derive(Default)]
struct Soonest<'a>(Option<((bool, bool, Duration), &'a Snowflake, Error)>);

impl<'a> Soonest<'a> {
    fn note(&mut self, ids: &'a Snowflake, error: Error) {
        let rank = (error.kind() != ErrorKind::WouldBlock, !has_lease(ids), error.retry_after().unwrap_or(Duration::MAX));
        if self.0.as_ref().is_none_or(|(best, ..)| rank < *best) {
            self.0 = Some((rank, ids, error.after_writing(0)));
        }
    }

    /// # Errors
    /// The first generator's error, where none may be waited for.
    fn found(self) -> Result<&'a Snowflake> {
        let ((is_over, ..), ids, error) = self.0.expect("there is at least one");
        if is_over { Err(error) } else { Ok(ids) }
    }
}

/// Returns whether the node number may be used: it is fixed, or leased with a bound that lies ahead. A disposable number has no bound.
fn has_lease(ids: &Snowflake) -> bool {
    let has_bound_ahead = |stats: Stats| stats.lease_node.is_some() && stats.lease_seconds_left.is_none_or(|left| left > 0.0);
    !ids.is_leased() || has_bound_ahead(ids.stats())
}

/// Returns why the node number may not be used, if so.
pub fn lease_trouble(ids: &Snowflake) -> Option<String> {
    let why = || "the lease's bound is reached".to_owned();
    let last_error = || ids.lease().and_then(|lease| lease.last_error);
    (!has_lease(ids)).then(|| last_error().map_or_else(why, |error| error.to_string()))
}

/// Returns this thread's turn. Threads begin with different generators, so they do not contend.
fn turn() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static TURN: Cell<Option<usize>> = const { Cell::new(None) };
    }
    TURN.get().unwrap_or_else(|| {
        let turn = THREADS.fetch_add(1, Ordering::Relaxed);
        TURN.set(Some(turn));
        turn
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn generators_have_separate_numbers_and_share_a_batch() {
        let line = "layout='time:31@1s node:20 sequence:4 epoch:2025-01-01' store=memory namespace=generators exhausted=error generators=4";
        let mut spec = Spec::parse(line).unwrap();
        let count = wanted(&mut spec).unwrap();
        let all = Generators::open(spec, count, Duration::from_secs(60).into()).unwrap();
        // One tick holds 16 of them.
        let mut ids = [0; 1000];
        let written = all.fill_for(&mut ids, Duration::ZERO.into()).unwrap_err().written();
        let nodes: BTreeSet<_> = ids[..written].iter().map(|&id| all.layout().decode(Id::try_from(id).unwrap()).unwrap().node()).collect();
        assert_eq!((nodes.len(), all.stats().issued), (4, written as u64));
        assert_eq!(ids[..written].iter().collect::<BTreeSet<_>>().len(), written);
    }

    #[test]
    fn closed_only_once_every_generator_is_closed() {
        let line = "layout='time:31@1s node:20 sequence:4 epoch:2025-01-01' store=memory namespace=ended exhausted=wait:60s generators=2";
        let mut spec = Spec::parse(line).unwrap();
        let count = wanted(&mut spec).unwrap();
        let all = Generators::open(spec, count, Duration::from_secs(60).into()).unwrap();
        all.in_turn().next().unwrap().close();
        // More than one tick holds, so the call waits for the other generator.
        let mut ids = [0; 40];
        all.fill_for(&mut ids, Duration::from_secs(60).into()).unwrap();
        for _ in 0..20 {
            all.next_for(Duration::from_secs(60).into()).unwrap();
        }
        all.0.iter().for_each(Snowflake::close);
        assert_eq!(all.next_for(Duration::from_secs(60).into()).unwrap_err().kind(), ErrorKind::Closed);
    }

    #[test]
    fn out_of_range_each_generator_needs_its_own_node_number() {
        for (line, expected) in [
            ("standard node=1 generators=2", "2 generators need a node number each, and this spec has 1"),
            ("twitter datacenter=1 worker=2 store=memory generators=2", "and this spec has 1"),
            ("standard store=memory generators=0", "generators=0 is out of range: 1 to 64"),
            ("standard store=memory generators=x", "is not a whole number"),
        ] {
            let error = wanted(&mut Spec::parse(line).unwrap()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
