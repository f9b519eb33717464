//! The limit on answers that one client of HTTP/2 has not taken. It may ask for many at once, and each is in memory until it is taken.

use super::answer::{Answer, Whole};
use crate::names::Name;
use crate::refusal::Result;
use crate::share::Taken;
use crate::untaken::LONGEST_ID;
use bytes::Bytes;
use frazil::{Error, ErrorKind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The most untaken bytes of a connection's batches of one name. A single batch may be longer.
const MOST: usize = 256 * 1024;
/// The longest wait of a batch for room.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The room of a connection, per name. A batch holds its room while it waits for its IDs, so one whose store is away must not block other
/// names.
#[derive(Clone, Default)]
pub struct Backpressure(Arc<Mutex<Vec<OfName>>>);

type OfName = (Arc<Name>, Arc<Semaphore>);

impl Backpressure {
    /// Waits until the client has taken enough of its earlier answers.
    ///
    /// # Errors
    /// `WOULD_BLOCK` where it does not take them in time.
    pub async fn take(&self, name: &Arc<Name>, count: usize) -> Result<OwnedSemaphorePermit> {
        let bytes = (count * LONGEST_ID).min(MOST) as u32;
        match timeout(TIMEOUT, self.of(name).acquire_many_owned(bytes)).await {
            Ok(Ok(permit)) => Ok(permit),
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

/// The room of an answer: its connection's, where that has several answers at once, and that of all connections. A small one needs none.
pub struct Place(pub Option<(Option<OwnedSemaphorePermit>, Taken)>);

impl Place {
    /// Binds the room to an answer until its bytes are taken.
    pub fn hold(self, answer: Answer) -> Answer {
        let Place(Some(room)) = self else { return answer };
        answer.map(|body| {
            let bytes = body.into_bytes();
            Whole::new(Bytes::from_owner(Held { bytes, _room: room }))
        })
    }
}

struct Held {
    bytes: Bytes,
    _room: (Option<OwnedSemaphorePermit>, Taken),
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
