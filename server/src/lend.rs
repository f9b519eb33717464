//! A store that is lent: processes with `store=frazil://` lease their node numbers from it.

use frazil::bindings::{Proxy, Question, busy};
use frazil::{Error, ErrorKind, Result, Spec};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The name that stands for all names; for a lent store, for every namespace that is not served itself.
pub const ALL: &str = "*";
/// The most questions that a store gets at once: each has a thread and a connection.
pub const AT_ONCE: usize = 16;
/// The time that the store may take at the start.
const START: Duration = Duration::from_secs(10);

pub struct Lent {
    /// Lives as long as the process: a database client must not end on a thread that serves.
    lender: &'static Proxy,
    places: Arc<Semaphore>,
    /// The most questions of one namespace: with several namespaces, a locked row in one does not block the others.
    share: usize,
    shares: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// The place of a question, held until its answer is sent. It bounds the answers in memory; a client that does not read keeps its place.
pub struct Place {
    _permits: [OwnedSemaphorePermit; 2],
    /// The deadline of the answer: after it, no client waits any more.
    pub until: Instant,
}

impl Lent {
    /// Connects to the store, so that errors show at the start. Blocks: not for a thread that serves.
    ///
    /// # Errors
    /// Those of `Proxy::new` and `Proxy::check`.
    pub fn open(name: &str, spec: &Spec) -> Result<Self> {
        let lender = Proxy::new(spec)?;
        lender.check(START)?;
        let lender = Box::leak(Box::new(lender));
        let share = if name == ALL { AT_ONCE / 2 } else { AT_ONCE };
        Ok(Lent { lender, places: Arc::new(Semaphore::new(AT_ONCE)), share, shares: Mutex::default() })
    }

    /// # Errors
    /// Those of `Proxy::answer`; `STORE_UNREACHABLE` while all places are taken.
    pub async fn answer(&self, question: Question, limit: Duration) -> Result<(Vec<String>, Place)> {
        let since = Instant::now();
        let share = self.share_of(question.namespace());
        let both = async { Some([share.acquire_owned().await.ok()?, Arc::clone(&self.places).acquire_owned().await.ok()?]) };
        // Half of the time is the store's: one that has hardly any left would lose its connections, and nobody would be answered.
        let Ok(Some(_permits)) = timeout(limit / 2, both).await else {
            let why = format!("{} questions were put to the store before, and it has not answered them in time", self.share);
            return Err(busy(&why));
        };
        let place = Place { _permits, until: since + limit };
        let (lender, left) = (self.lender, limit.saturating_sub(since.elapsed()));
        let answer = tokio::task::spawn_blocking(move || lender.answer(&question, left)).await;
        let answer =
            answer.unwrap_or_else(|error| Err(Error::new(ErrorKind::Internal, format!("a question to the store failed: {error}"))));
        let is_busy = |error: &Error| error.kind() == ErrorKind::StoreUnreachable && error.retry_after().is_some();
        Ok((answer.map_err(|error| if is_busy(&error) { busy(&error.to_string()) } else { error })?, place))
    }

    /// Returns the places of a namespace; kept while a question of it waits.
    fn share_of(&self, namespace: Option<&str>) -> Arc<Semaphore> {
        let namespace = namespace.unwrap_or_default();
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.retain(|_, share| share.strong_count() > 0);
        shares.get(namespace).and_then(Weak::upgrade).unwrap_or_else(|| {
            let share = Arc::new(Semaphore::new(self.share));
            shares.insert(namespace.to_owned(), Arc::downgrade(&share));
            share
        })
    }
}
