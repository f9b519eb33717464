//! Outages: names without IDs, in the log; and names that could not be opened at the start, which are tried again.

use crate::log;
use crate::names::Name;
use crate::shared::Shared;
use frazil::{Error, ErrorKind, Result, Wait};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// The interval of the looks at all names, and the looks in a row after which a name without IDs is logged: a segment may have used its range
/// while the next one is on its way.
const LOOK: Duration = Duration::from_secs(1);
const ENDED: u32 = 2;
/// The pause before a name is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// Ends the waits of names that are being opened when it is dropped.
#[derive(Default)]
pub struct GivenUp(Arc<AtomicBool>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Opens all names side by side, on threads that may block. One that cannot be opened keeps none of the others from being served.
///
/// # Errors
/// The first one, where none can be opened.
pub async fn open(names: &[Arc<Name>], given_up: &GivenUp) -> Result<()> {
    let mut openings = JoinSet::new();
    for name in names {
        let (name, given_up) = (Arc::clone(name), Arc::clone(&given_up.0));
        openings.spawn_blocking(move || open_one(&name, &given_up));
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

fn open_one(name: &Name, given_up: &AtomicBool) -> Result<()> {
    name.open(Wait::until(Duration::MAX, &|| given_up.load(Ordering::Relaxed)))
}

/// Tries a name again until it is open.
async fn open_later(name: Arc<Name>, given_up: Arc<AtomicBool>) {
    while !name.is_open() && !given_up.load(Ordering::Relaxed) {
        tokio::time::sleep(AGAIN).await;
        let (name, given_up) = (Arc::clone(&name), Arc::clone(&given_up));
        // What is wrong is logged as long as it has no IDs.
        let _ = tokio::task::spawn_blocking(move || open_one(&name, &given_up)).await;
    }
}

/// Logs when names have no IDs, and have them again, and with them the server is ready or not; ends with the server.
pub async fn watch(shared: Arc<Shared>, given_up: GivenUp) {
    for name in shared.names().iter().filter(|name| !name.is_open()) {
        tokio::spawn(open_later(Arc::clone(name), Arc::clone(&given_up.0)));
    }
    // What is wrong at the start is logged at once.
    let mut without: Vec<_> = shared.names().iter().map(|_| ENDED - 1).collect();
    let mut was_ready = true;
    while shared.serves() {
        for (name, without) in shared.names().iter().zip(&mut without) {
            let told = ("name", name.name.as_str().into());
            match name.trouble() {
                Some(why) => {
                    *without += 1;
                    if *without == ENDED {
                        log::warning("ids.ended", [told, ("text", why.into())]);
                    }
                }
                None if std::mem::take(without) >= ENDED => log::info("ids.back", [told]),
                None => {}
            }
        }
        let is_ready = without.iter().all(|looks| *looks < ENDED);
        if std::mem::replace(&mut was_ready, is_ready) != is_ready {
            match shared.not_ready().filter(|_| !is_ready) {
                Some(why) => log::warning("not.ready", [("text", why.into())]),
                None => log::info("ready.again", []),
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}
