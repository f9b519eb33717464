//! How much a client of HTTP/2 may leave untaken. It asks for many answers at once, and each is in memory until the client takes it.

use super::answer::{Answer, Whole};
use crate::refusal::Result;
use bytes::Bytes;
use frazil::{Error, ErrorKind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The bytes of a connection's batches that are not taken yet. A single one may be longer.
const MOST: usize = 256 * 1024;
/// Of an ID, in the form that is longest.
const LONGEST_ID: usize = 24;
/// Smaller batches need no room: all those of a connection are not too much.
const SMALL: usize = 50;
/// How long a batch waits for room, before it is made.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a connection has.
#[derive(Clone)]
pub struct Room(Arc<Semaphore>);

impl Room {
    pub fn new() -> Self {
        Room(Arc::new(Semaphore::new(MOST)))
    }

    /// Waits until the client has taken enough of what it asked for before.
    ///
    /// # Errors
    /// `WOULD_BLOCK` where it does not.
    pub async fn take(&self, count: usize) -> Result<Place> {
        if count <= SMALL {
            return Ok(Place(None));
        }
        let bytes = (count * LONGEST_ID).min(MOST) as u32;
        match timeout(PATIENCE, Arc::clone(&self.0).acquire_many_owned(bytes)).await {
            Ok(Ok(permit)) => Ok(Place(Some(permit))),
            _ => Err(Error::new(ErrorKind::WouldBlock, "the answers that this connection asked for before are not taken").into()),
        }
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
