//! A store that is lent: processes with `store=frazil://` lease their numbers from it.

use frazil::{Error, ErrorKind, Lender, Question, Result, Spec};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Stands for all names; as the name of a store that is lent, for every namespace that is not served itself.
pub const ALL: &str = "*";
/// So many questions are put to a store at once: each has a thread and a connection.
pub const AT_ONCE: usize = 16;
/// How long the store may take at the start.
const START: Duration = Duration::from_secs(10);

pub struct Lent {
    /// It lives as long as the process: a client of a database must not end on a thread that serves.
    lender: &'static Lender,
    places: Arc<Semaphore>,
    /// How many of the places one namespace may have: where there are several, a row that is locked in one keeps no other waiting.
    share: usize,
    shares: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// The place of a question, held until the answer is sent: so many answers are in memory at most, and who does not read one has it.
pub struct Place {
    _permits: [OwnedSemaphorePermit; 2],
    /// By then nobody waits for the answer any more.
    pub until: Instant,
}

impl Lent {
    /// Connects, so that what is wrong shows at the start. Not on a thread that serves.
    ///
    /// # Errors
    /// As `Lender::new` and `Lender::check`.
    pub fn open(name: &str, spec: &Spec) -> Result<Self> {
        let lender = Box::leak(Box::new(Lender::new(spec)?));
        lender.check(START)?;
        let share = if name == ALL { AT_ONCE / 2 } else { AT_ONCE };
        Ok(Lent { lender, places: Arc::new(Semaphore::new(AT_ONCE)), share, shares: Mutex::default() })
    }

    /// # Errors
    /// As `Lender::answer`; `STORE_UNREACHABLE` where others ask as many questions as may be asked at once.
    pub async fn answer(&self, question: Question, limit: Duration) -> Result<(Vec<String>, Place)> {
        let since = Instant::now();
        let share = self.share_of(question.namespace());
        let both = async { Some([share.acquire_owned().await.ok()?, Arc::clone(&self.places).acquire_owned().await.ok()?]) };
        let Ok(Some(_permits)) = timeout(limit, both).await else {
            let why = format!("{} questions were put to the store before, and it has not answered them in time", self.share);
            return Err(Error::new(ErrorKind::StoreUnreachable, why));
        };
        let place = Place { _permits, until: since + limit };
        let (lender, left) = (self.lender, limit.saturating_sub(since.elapsed()));
        let answer = tokio::task::spawn_blocking(move || lender.answer(&question, left)).await;
        let answer =
            answer.unwrap_or_else(|error| Err(Error::new(ErrorKind::Internal, format!("a question to the store failed: {error}"))));
        Ok((answer?, place))
    }

    /// The places of a namespace, for as long as somebody asks for it.
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
