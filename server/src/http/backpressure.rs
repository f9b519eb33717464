//! The limits on answers that one client has not read. A client of HTTP/2 may ask for many at once, and each is in memory until it is read.

use super::answer::{Answer, Whole};
use crate::names::Name;
use crate::refusal::Result;
use crate::share::Taken;
use crate::unread_answers::{BudgetShare, LONGEST_ID, are_over_budget};
use bytes::Bytes;
use frazil::{Error, ErrorKind};
use hyper::header::{CACHE_CONTROL, HeaderValue};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The most unread bytes of a connection's batches of one name. A single batch may be longer.
const MOST: usize = 256 * 1024;
/// The longest wait of a batch for room.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The unread answers that a connection may have while the server is over its budget.
const FEW: usize = 2;
/// The bytes of an answer over HTTP/2 besides its body: its stream and its task.
const STREAM: usize = 2 * 1024;
/// The bytes of a head that a request may hold uncounted while it waits for its IDs or for room.
const SHORT_HEAD: usize = 1024;
/// The most bytes of a body that the budget counts. A longer body is a batch, which has room in another pool.
const LONGEST_SMALL: usize = 8 * 1024;

/// The answers of a connection.
#[derive(Clone, Default)]
pub struct Backpressure(Arc<Unread>);

#[derive(Default)]
struct Unread {
    /// The bytes that the socket has accepted.
    written: AtomicU64,
    /// The answers that the client has not read, and over HTTP/2 the requests that have no answer yet.
    answers: AtomicUsize,
    /// The requests of HTTP/2 that have begun.
    begun: AtomicUsize,
    /// The room for batches of each name. A batch holds its room while it waits for its IDs, so one whose store is unreachable must not
    /// block other names.
    rooms: Mutex<Vec<OfName>>,
}

type OfName = (Arc<Name>, Arc<Semaphore>);

impl Backpressure {
    /// Waits until the client has read enough of its earlier answers.
    ///
    /// # Errors
    /// `WOULD_BLOCK` if it does not read them in time.
    pub async fn take(&self, name: &Arc<Name>, count: usize) -> Result<OwnedSemaphorePermit> {
        let bytes = (count * LONGEST_ID).min(MOST) as u32;
        match timeout(TIMEOUT, self.of(name).acquire_many_owned(bytes)).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Error::new(ErrorKind::WouldBlock, "the client has not read the earlier answers of this connection").into()),
        }
    }

    pub fn written(&self) -> u64 {
        self.0.written.load(Ordering::Relaxed)
    }

    pub fn add_written(&self, bytes: usize) {
        // Only the pipeline of the connection adds.
        self.0.written.store(self.written() + bytes as u64, Ordering::Relaxed);
    }

    /// Returns whether the client has answers to read, or over HTTP/2 requests without an answer.
    pub fn has_unread(&self) -> bool {
        self.0.answers.load(Ordering::Relaxed) > 0
    }

    /// Returns the number of requests of HTTP/2 that have begun.
    pub fn begun(&self) -> usize {
        self.0.begun.load(Ordering::Relaxed)
    }

    /// Returns whether a further request must be refused until the client has read earlier answers.
    pub fn is_full(&self) -> bool {
        self.0.answers.load(Ordering::Relaxed) >= FEW && are_over_budget()
    }

    /// Sets the number of unread answers. HTTP/1 has at most one.
    pub fn set_unread(&self, answers: usize) {
        self.0.answers.store(answers, Ordering::Relaxed);
    }

    /// Counts a request of HTTP/2, with the bytes of its head, and its answer.
    pub fn count(&self, head: usize) -> Counted {
        self.0.answers.fetch_add(1, Ordering::Relaxed);
        self.0.begun.fetch_add(1, Ordering::Relaxed);
        Counted { connection: self.clone(), small: BudgetShare::new(STREAM + head), head: head as u32 }
    }

    fn of(&self, name: &Arc<Name>) -> Arc<Semaphore> {
        let mut rooms = self.0.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, room)) = rooms.iter().find(|(its, _)| Arc::ptr_eq(its, name)) {
            return Arc::clone(room);
        }
        let room = Arc::new(Semaphore::new(MOST));
        rooms.push((Arc::clone(name), Arc::clone(&room)));
        room
    }
}

/// The room of a batch: that of its connection over HTTP/2, and that of all connections. A small batch needs none.
pub struct BatchRoom(pub Option<(Option<OwnedSemaphorePermit>, Taken)>);

impl BatchRoom {
    /// Holds the room until the bytes of the answer are read.
    pub fn hold(self, answer: Answer) -> Answer {
        let BatchRoom(Some(room)) = self else { return answer };
        answer.map(|body| {
            let bytes = body.into_bytes();
            Whole::new(Bytes::from_owner(Held { bytes, _room: room }))
        })
    }
}

/// An answer in the count of its connection, and in the server's budget.
pub struct Counted {
    connection: Backpressure,
    small: BudgetShare,
    /// The bytes of the request's head, which it holds until it is answered.
    /// At most 16 KiB. A wider number would make each connection larger by half a KiB.
    head: u32,
}

impl Counted {
    /// Takes a waiting request out of the budget, except for a long head, because waiting requests have their own limit.
    pub fn wait(&mut self) {
        self.small.set((self.head as usize).saturating_sub(SHORT_HEAD));
    }

    /// Counts an answer until its bytes are read, or until its head is sent if it has no body.
    pub fn hold(mut self, answer: Answer) -> Answer {
        let (mut head, body) = answer.into_parts();
        let bytes = body.into_bytes();
        self.small.set(STREAM + bytes.len().min(LONGEST_SMALL));
        if !bytes.is_empty() {
            return Answer::from_parts(head, Whole::new(Bytes::from_owner(Held { bytes, _room: self })));
        }
        let held = Bytes::from_owner(Held { bytes: Bytes::from_static(b"no-store"), _room: self });
        let mut value = HeaderValue::from_maybe_shared(held).expect("it is plain text");
        // HPACK keeps no copy of a value that is sensitive.
        value.set_sensitive(true);
        head.headers.insert(CACHE_CONTROL, value);
        Answer::from_parts(head, Whole::new(bytes))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.connection.0.answers.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Held<R> {
    bytes: Bytes,
    _room: R,
}

impl<R> AsRef<[u8]> for Held<R> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
