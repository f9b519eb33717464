//! Outages: logs names without IDs, and retries names that could not be opened at the start.

use crate::log;
use crate::names::Name;
use crate::shared::Shared;
use frazil::{Error, ErrorKind, Result, Wait};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// The interval of the checks of all names, and the failed checks in a row after which a name is logged. A segment may have used up its
/// range just before the next one arrives.
const INTERVAL: Duration = Duration::from_secs(1);
const ENDED: u32 = 2;
/// The pause before a name is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// Ends the waits of names that are being opened when it is dropped.
#[derive(Default)]
pub struct CancelOpening(Arc<AtomicBool>);

impl Drop for CancelOpening {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Opens all names side by side, on threads that may block. One that cannot be opened does not keep the others from being served.
///
/// # Errors
/// The first error, if no name can be opened.
pub async fn open(names: &[Arc<Name>], cancelled: &CancelOpening) -> Result<()> {
    let mut openings = JoinSet::new();
    for name in names {
        let (name, cancelled) = (Arc::clone(name), Arc::clone(&cancelled.0));
        openings.spawn_blocking(move || open_one(&name, &cancelled));
    }
    let mut first = None;
    while let Some(opened) = openings.join_next().await {
        let opened = opened.map_err(|error| Error::new(ErrorKind::Internal, format!("opening a name failed: {error}")))?;
        first = first.or(opened.err());
    }
    match first {
        Some(error) if !names.iter().any(|name| name.is_open()) => Err(error),
        _ => Ok(()),
    }
}

fn open_one(name: &Name, cancelled: &AtomicBool) -> Result<()> {
    name.open(Wait::until(Duration::MAX, &|| cancelled.load(Ordering::Relaxed)))
}

/// Tries a name again until it is open.
async fn open_later(name: Arc<Name>, cancelled: Arc<AtomicBool>) {
    while !name.is_open() && !cancelled.load(Ordering::Relaxed) {
        tokio::time::sleep(AGAIN).await;
        let (name, cancelled) = (Arc::clone(&name), Arc::clone(&cancelled));
        // `watch` logs the error.
        let _ = tokio::task::spawn_blocking(move || open_one(&name, &cancelled)).await;
    }
}

/// Logs when a name has no IDs or has them again, and when readiness changes. Ends with the server.
pub async fn watch(shared: Arc<Shared>, cancelled: CancelOpening) {
    for name in shared.names().iter().filter(|name| !name.is_open()) {
        tokio::spawn(open_later(Arc::clone(name), Arc::clone(&cancelled.0)));
    }
    // Errors at the start are logged at once.
    let mut without: Vec<_> = shared.names().iter().map(|_| ENDED - 1).collect();
    let mut was_ready = true;
    while shared.serves() {
        for (name, without) in shared.names().iter().zip(&mut without) {
            let name_field = ("name", name.name.as_str().into());
            match name.trouble() {
                Some(why) => {
                    *without += 1;
                    if *without == ENDED {
                        log::warning("ids.ended", [name_field, ("text", why.into())]);
                    }
                }
                None if std::mem::take(without) >= ENDED => log::info("ids.back", [name_field]),
                None => {}
            }
        }
        let is_ready = without.iter().all(|checks| *checks < ENDED);
        if std::mem::replace(&mut was_ready, is_ready) != is_ready {
            match shared.not_ready().filter(|_| !is_ready) {
                Some(why) => log::warning("not.ready", [("text", why.into())]),
                None => log::info("ready.again", []),
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
