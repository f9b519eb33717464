//! What was not ready when an opener that may not wait had to go: it asks again, and finds it.

use super::{Numbers, Supply};
use crate::error::Result;
use crate::fork::PerProcess;
use crate::spec::Spec;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long it is kept for an opener who comes back ...
const KEPT: Duration = Duration::from_secs(10);
/// ... and how many are kept at once.
const MOST: usize = 64;

struct Opening {
    supply: Supply,
    numbers: Numbers,
    since: Instant,
}

static OPENINGS: PerProcess<Mutex<Vec<Opening>>> = PerProcess::new();

fn openings() -> Result<MutexGuard<'static, Vec<Opening>>> {
    let openings = OPENINGS.get(|| Ok(Mutex::new(Vec::new())))?;
    Ok(openings.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Keeps numbers that are on their way.
pub(super) fn keep(supply: Supply, numbers: Numbers) -> Result<()> {
    let mut openings = openings()?;
    let surplus = (openings.len() + 1).saturating_sub(MOST);
    let dropped: Vec<_> = openings.drain(..surplus).collect();
    openings.push(Opening { supply, numbers, since: Instant::now() });
    drop(openings);
    // Outside the lock: a ring gives its number back.
    drop(dropped);
    Ok(())
}

/// Those that an earlier call for the same has left.
pub(super) fn take(supply: Supply, spec: &Spec) -> Result<Option<Numbers>> {
    let mut openings = openings()?;
    let (old, mut kept): (Vec<_>, Vec<_>) = openings.drain(..).partition(|opening| opening.since.elapsed() > KEPT);
    let found = kept.iter().position(|opening| opening.supply == supply && opening.numbers.shared.spec == *spec);
    let found = found.map(|at| kept.swap_remove(at).numbers);
    *openings = kept;
    drop(openings);
    drop(old);
    Ok(found)
}
