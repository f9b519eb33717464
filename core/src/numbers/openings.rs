//! Half-opened numbers for callers that got `WOULD_BLOCK` and will retry.

use super::{Numbers, Supply};
use crate::error::{Error, ErrorKind, Result};
use crate::fork::PerProcess;
use crate::snowflake::drop_patience;
use crate::spec::Spec;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time for which one is kept for an opener that comes back ...
const KEPT: Duration = Duration::from_secs(60);
/// ... and how many are kept at once. Further ones are not kept, so that those that are get there.
const MOST: usize = 1024;

struct Opening {
    supply: Supply,
    numbers: Numbers,
    until: Instant,
}

#[derive(Default)]
struct Openings {
    kept: Vec<Opening>,
    /// True while a thread drops numbers that nobody came back for.
    swept: bool,
}

static OPENINGS: PerProcess<Mutex<Openings>> = PerProcess::new();

fn openings() -> Result<MutexGuard<'static, Openings>> {
    let openings = OPENINGS.get(|| Ok(Mutex::default()))?;
    Ok(openings.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Keeps numbers that are on their way; `max_wait` is for the end of those for which there is no place.
///
/// # Errors
/// `STORE_UNREACHABLE` where no thread can be started that drops them in time.
pub(super) fn keep(supply: Supply, numbers: Numbers, max_wait: Duration) -> Result<()> {
    let mut openings = openings()?;
    if openings.kept.len() >= MOST {
        // A ring gives its number back, which takes a while.
        drop(openings);
        drop(numbers.try_close(max_wait));
        return Ok(());
    }
    if !openings.swept {
        let started = std::thread::Builder::new().name("frazil-openings".to_owned()).spawn(sweep);
        started.map_err(|error| Error::new(ErrorKind::StoreUnreachable, format!("no thread can be started: {error}")))?;
        openings.swept = true;
    }
    openings.kept.push(Opening { supply, numbers, until: Instant::now() + KEPT });
    Ok(())
}

/// Those that an earlier call for the same has left.
pub(super) fn take(supply: Supply, spec: &Spec) -> Result<Option<Numbers>> {
    let kept = &mut openings()?.kept;
    let found = kept.iter().position(|opening| opening.supply == supply && opening.numbers.shared.spec == *spec);
    Ok(found.map(|at| kept.swap_remove(at).numbers))
}

/// Drops all: a copy of this machine would find the same.
pub(crate) fn drop_all() -> Result<()> {
    let kept = std::mem::take(&mut openings()?.kept);
    for opening in kept {
        drop(opening.numbers.try_close(drop_patience()));
    }
    Ok(())
}

/// Drops each one in its time, and ends with the last.
fn sweep() {
    while let Some(next) = sweep_once() {
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// Returns when to come again.
fn sweep_once() -> Option<Instant> {
    let mut openings = openings().ok()?;
    let now = Instant::now();
    let (over, kept): (Vec<_>, Vec<_>) = openings.kept.drain(..).partition(|opening| opening.until <= now);
    openings.kept = kept;
    let next = openings.kept.iter().map(|opening| opening.until).min();
    openings.swept = next.is_some();
    drop(openings);
    // Outside the lock: a ring gives its number back.
    drop(over);
    next
}
