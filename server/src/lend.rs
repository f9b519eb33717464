//! A store that is lent: processes with `store=frazil://` lease their numbers from it.

use frazil::{Error, ErrorKind, Lender, Question, Result, Spec};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Stands for every namespace that is not served itself.
pub const ALL: &str = "*";
/// So many questions are put to a store at once: each has a thread and a connection.
const AT_ONCE: usize = 16;
/// How long the store may take at the start.
const START: Duration = Duration::from_secs(10);

pub struct Lent {
    /// It lives as long as the process: a client of a database must not end on a thread that serves.
    lender: &'static Lender,
    places: Semaphore,
}

impl Lent {
    /// Connects, so that what is wrong shows at the start. Not on a thread that serves.
    ///
    /// # Errors
    /// As `Lender::new` and `Lender::check`.
    pub fn open(spec: &Spec) -> Result<Self> {
        let lender = Box::leak(Box::new(Lender::new(spec)?));
        lender.check(START)?;
        Ok(Lent { lender, places: Semaphore::new(AT_ONCE) })
    }

    /// # Errors
    /// As `Lender::answer`; `STORE_UNREACHABLE` where others ask as many questions as may be asked at once.
    pub async fn answer(&self, question: Question) -> Result<Vec<String>> {
        let (since, limit) = (Instant::now(), question.limit());
        let Ok(Ok(place)) = timeout(limit, self.places.acquire()).await else {
            let why = format!("{AT_ONCE} questions were put to the store before, and it has not answered them in time");
            return Err(Error::new(ErrorKind::StoreUnreachable, why));
        };
        let (lender, left) = (self.lender, limit.saturating_sub(since.elapsed()));
        let answer = tokio::task::spawn_blocking(move || lender.answer(&question, left)).await;
        drop(place);
        answer.unwrap_or_else(|error| Err(Error::new(ErrorKind::Internal, format!("a question to the store failed: {error}"))))
    }
}
