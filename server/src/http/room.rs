//! How much a client of HTTP/2 may leave untaken. It asks for many answers at once, and each is in memory until the client takes it.

use super::answer::{Answer, Whole};
use crate::names::Name;
use crate::refusal::Result;
use bytes::Bytes;
use frazil::{Error, ErrorKind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The bytes of a connection's batches of a name that are not taken yet. A single one may be longer.
const MOST: usize = 256 * 1024;
/// Of an ID, in the form that is longest.
const LONGEST_ID: usize = 24;
/// Smaller batches need no room: all those of a connection are not too much.
const SMALL: usize = 50;
/// How long a batch waits for room, before it is made.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a connection has, for each name. A batch has its room while it waits for its IDs, too: one whose store is away must keep none of
/// another name waiting.
#[derive(Clone, Default)]
pub struct Room(Arc<Mutex<Vec<OfName>>>);

type OfName = (Arc<Name>, Arc<Semaphore>);

impl Room {
    /// Waits until the client has taken enough of what it asked for before.
    ///
    /// # Errors
    /// `WOULD_BLOCK` where it does not.
    pub async fn take(&self, name: &Arc<Name>, count: usize) -> Result<Place> {
        if count <= SMALL {
            return Ok(Place(None));
        }
        let bytes = (count * LONGEST_ID).min(MOST) as u32;
        match timeout(PATIENCE, self.of(name).acquire_many_owned(bytes)).await {
            Ok(Ok(permit)) => Ok(Place(Some(permit))),
            _ => Err(Error::new(ErrorKind::WouldBlock, "the answers that this connection asked for before are not taken").into()),
        }
    }

    fn of(&self, name: &Arc<Name>) -> Arc<Semaphore> {
        let mut rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, room)) = rooms.iter().find(|(its, _)| Arc::ptr_eq(its, name)) {
            return Arc::clone(room);
        }
        let room = Arc::new(Semaphore::new(MOST));
        rooms.push((Arc::clone(name), Arc::clone(&room)));
        room
    }
}

/// The room of an answer.
#[derive(Default)]
pub struct Place(Option<OwnedSemaphorePermit>);

impl Place {
    /// The answer, which has it until its bytes are taken.
    pub fn hold(self, answer: Answer) -> Answer {
        let Place(Some(permit)) = self else { return answer };
        answer.map(|body| {
            let bytes = body.into_bytes();
            Whole::new(Bytes::from_owner(Held { bytes, _permit: permit }))
        })
    }
}

struct Held {
    bytes: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
