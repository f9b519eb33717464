//! A store that is lent: processes with `store=frazil://` lease their node numbers from it.

use frazil::admin::store::Address;
use frazil::admin::{check_keys_among, first_word, spec_error, value};
use frazil::bindings::{Proxy, Question, busy};
use frazil::{Error, ErrorKind, Result, Spec};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The name that means all names; for a lent store, every namespace without its own name.
pub const ALL: &str = "*";
/// The most questions that a store gets at once, because each takes a thread and a connection.
pub const AT_ONCE: usize = 16;
/// The time that the store may take at the start.
const START: Duration = Duration::from_secs(10);

/// Reads `store=...` of a lent store; nothing is asked yet.
///
/// # Errors
/// `SPEC`, `UNKNOWN_KEY`, `STORE_NOT_BUILT`; `STORE_UNSUITABLE` for a store that cannot be lent.
pub fn proxy(spec: &Spec) -> Result<Proxy> {
    check_keys_among(spec, &["store"])?;
    let store = value(spec, "store")?.filter(|_| first_word(spec).is_none());
    let missing = || spec_error("a lent store is given as store=STORE, without a preset or other keys".to_owned());
    Proxy::new(Address::parse(&store.ok_or_else(missing)?)?)
}

pub struct Lent {
    /// Lives as long as the process, because a database client must not end on a serving thread.
    lender: &'static Proxy,
    permits: Arc<Semaphore>,
    /// The most questions of one namespace: with several namespaces, a locked row in one does not block the others.
    share: usize,
    shares: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// The slot of a question, held until its answer is sent. It bounds the answers in memory. A client that does not read keeps its slot.
pub struct QuestionPermit {
    _permits: [OwnedSemaphorePermit; 2],
    /// The deadline of the answer: after it, no client waits any more.
    pub until: Instant,
}

impl Lent {
    /// Connects to the store, so that errors show at the start. Blocks, so no serving thread may call it.
    ///
    /// # Errors
    /// Those of [`proxy`] and `Proxy::check`.
    pub fn open(name: &str, spec: &Spec) -> Result<Self> {
        let lender = proxy(spec)?;
        lender.check(START)?;
        let lender = Box::leak(Box::new(lender));
        let share = if name == ALL { AT_ONCE / 2 } else { AT_ONCE };
        Ok(Lent { lender, permits: Arc::new(Semaphore::new(AT_ONCE)), share, shares: Mutex::default() })
    }

    /// # Errors
    /// Those of `Proxy::answer`; `STORE_UNREACHABLE` while all slots are taken.
    pub async fn answer(&self, question: Question, limit: Duration) -> Result<(Vec<String>, QuestionPermit)> {
        let since = Instant::now();
        let share = self.share_of(question.namespace());
        let both = async { Some([share.acquire_owned().await.ok()?, Arc::clone(&self.permits).acquire_owned().await.ok()?]) };
        // Half of the time is left for the store: with too little, its connections would be lost, and no question answered.
        let Ok(Some(_permits)) = timeout(limit / 2, both).await else {
            let why = format!("the store has not answered {} earlier questions in time", self.share);
            return Err(busy(&why));
        };
        let permit = QuestionPermit { _permits, until: since + limit };
        let (lender, left) = (self.lender, limit.saturating_sub(since.elapsed()));
        let answer = tokio::task::spawn_blocking(move || lender.answer(&question, left)).await;
        let answer =
            answer.unwrap_or_else(|error| Err(Error::new(ErrorKind::Internal, format!("a question to the store failed: {error}"))));
        let is_busy = |error: &Error| error.kind() == ErrorKind::StoreUnreachable && error.retry_after().is_some();
        Ok((answer.map_err(|error| if is_busy(&error) { busy(&error.to_string()) } else { error })?, permit))
    }

    /// Returns the slots of a namespace, which are kept while one of its questions waits.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lent_store_accepts_only_an_address() {
        for (line, kind, why) in [
            ("store=memory", ErrorKind::StoreUnsuitable, "ends with the process"),
            ("orders store=local", ErrorKind::Spec, "store=STORE"),
            ("", ErrorKind::Spec, "store=STORE"),
            ("store=local namespace=x", ErrorKind::UnknownKey, "namespace"),
        ] {
            let error = proxy(&Spec::parse(line).unwrap()).err().unwrap();
            assert!(error.kind() == kind && error.to_string().contains(why), "{error:?}");
        }
    }
}
