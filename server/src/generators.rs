//! Several generators under one name, each with its own node number: together they exceed the rate of one.

use frazil::bindings::Written;
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

    /// Returns one ID without a wait: from this thread's generator if it has one now, otherwise from any that has.
    ///
    /// # Errors
    /// Those of `Snowflake::next_id_for`.
    pub fn next_now(&self) -> Result<i64> {
        let id = match &*self.0 {
            [only] => only.next_id_for(Duration::ZERO),
            _ => self.any().map_err(|soonest| soonest.error),
        };
        id.map(Id::get)
    }

    /// One ID like that of [`next_now`](Generators::next_now), as a future for `Pending`.
    ///
    /// # Errors
    /// Those of `Snowflake::next_id_for`.
    pub async fn next_within(&self, wait: Wait<'_>) -> Result<i64> {
        let id = match &*self.0 {
            [only] => only.next_id_within(wait).await,
            _ => self.any_within(wait).await,
        };
        id.map(Id::get)
    }

    /// `count` IDs that ascend within each generator, from as few generators as possible, as a future for `Pending`.
    ///
    /// # Errors
    /// Those of `Snowflake::batch_for`.
    pub async fn batch_within(&self, count: usize, wait: Wait<'_>) -> Result<Vec<i64>> {
        if let [only] = &*self.0 {
            return only.batch_within(count, wait).await;
        }
        // If the machine is copied, the copy begins again, and drops the ID that it waited for.
        let (mut ids, mut written) = (vec![0; count], Written::new());
        loop {
            for generator in self.in_turn() {
                let at = written.count();
                let filled = generator.fill_for(&mut ids[at..], Duration::ZERO);
                written.add(filled.as_ref().map_or_else(Error::written, |()| count - at));
                if written.count() == count {
                    return Ok(ids);
                }
            }
            let (at, next) = (written.count(), self.any_within(wait).await?);
            ids[at] = next.get();
            written.add(1);
        }
    }

    async fn any_within(&self, wait: Wait<'_>) -> Result<Id> {
        match self.any() {
            Ok(id) => Ok(id),
            Err(soonest) if soonest.is_over() => Err(soonest.error),
            Err(soonest) => soonest.ids.next_id_within(wait).await,
        }
    }

    /// One ID of any generator that has one now, or the generator to wait for.
    fn any(&self) -> std::result::Result<Id, Soonest<'_>> {
        let mut soonest: Option<Soonest<'_>> = None;
        for ids in self.in_turn() {
            match ids.next_id_for(Duration::ZERO).map_err(|error| Soonest::new(ids, error)) {
                Ok(id) => return Ok(id),
                Err(next) if soonest.as_ref().is_none_or(|soonest| next.rank < soonest.rank) => soonest = Some(next),
                Err(_) => {}
            }
        }
        Err(soonest.expect("there is at least one"))
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
struct Soonest<'a> {
    rank: (bool, bool, Duration),
    ids: &'a Snowflake,
    error: Error,
}

impl<'a> Soonest<'a> {
    fn new(ids: &'a Snowflake, error: Error) -> Self {
        let rank = (error.kind() != ErrorKind::WouldBlock, !has_lease(ids), error.retry_after().unwrap_or(Duration::MAX));
        Soonest { rank, ids, error }
    }

    /// Returns whether no generator may be waited for.
    fn is_over(&self) -> bool {
        self.rank.0
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
    use frazil::bindings::poll_once;
    use std::collections::BTreeSet;
    use std::pin::pin;

    const LONG: Duration = Duration::from_secs(60);

    fn made<T>(call: impl Future<Output = T>) -> T {
        let mut call = pin!(call);
        loop {
            match poll_once(call.as_mut()) {
                Some(result) => return result,
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    #[test]
    fn generators_have_separate_numbers_and_share_a_batch() {
        let line = "layout='time:31@1s node:20 sequence:4 epoch:2025-01-01' store=memory namespace=generators exhausted=wait:60s generators=4";
        let mut spec = Spec::parse(line).unwrap();
        let count = wanted(&mut spec).unwrap();
        let all = Generators::open(spec, count, Duration::from_secs(60).into()).unwrap();
        // A tick of each holds 16 of them.
        let ids = made(all.batch_within(60, LONG.into())).unwrap();
        let written = ids.len();
        let nodes: BTreeSet<_> = ids.iter().map(|&id| all.layout().decode(Id::try_from(id).unwrap()).unwrap().node()).collect();
        assert_eq!((nodes.len(), all.stats().issued), (4, written as u64));
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), written);
    }

    #[test]
    fn closed_only_once_every_generator_is_closed() {
        let line = "layout='time:31@1s node:20 sequence:4 epoch:2025-01-01' store=memory namespace=ended exhausted=wait:60s generators=2";
        let mut spec = Spec::parse(line).unwrap();
        let count = wanted(&mut spec).unwrap();
        let all = Generators::open(spec, count, Duration::from_secs(60).into()).unwrap();
        all.in_turn().next().unwrap().close();
        // More than one tick holds, so the call waits for the other generator.
        made(all.batch_within(40, LONG.into())).unwrap();
        for _ in 0..20 {
            made(all.next_within(LONG.into())).unwrap();
        }
        all.0.iter().for_each(Snowflake::close);
        assert_eq!(made(all.next_within(LONG.into())).unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(made(all.batch_within(1, LONG.into())).unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(all.next_now().unwrap_err().kind(), ErrorKind::Closed);
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
