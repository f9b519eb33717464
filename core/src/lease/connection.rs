//! The one connection to a store that a process has.

use crate::error::{Error, ErrorKind, Result};
use crate::store::{Address, Rows, Store, Table};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A store as all leases and tags of a process reach it, one call at a time: connects when it is first asked, and again after an
/// error.
///
/// **A lease is never kept waiting for long.** A call for a tag takes at most half of what a call for a lease may, and what tags
/// met is no reason not to ask for a lease.
pub(crate) struct Connection {
    address: Address,
    /// The time limit of a call for a tag, in us.
    limit_us: AtomicU64,
    store: Mutex<Link<dyn Store>>,
    /// A connection for each table: other users and databases stand behind it.
    tables: Mutex<HashMap<Table, Link<dyn Rows>>>,
}

/// The purpose of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For<'a> {
    Lease,
    Tag(&'a str),
}

/// A connection, and how the last call went.
struct Link<C: ?Sized> {
    connection: Option<Box<C>>,
    /// Nothing is asked of a store that did not answer, for a while: many leases would wait in turn.
    lease_down: Option<(Instant, Error)>,
    /// The pause of tags, once two failed one after the other: a record that is locked keeps one tag from its numbers, not all.
    tags_down: Option<(Instant, Error)>,
    /// The tag that got no answer, if none got one since.
    silent: Option<String>,
}

impl<C: ?Sized> Default for Link<C> {
    fn default() -> Self {
        Link { connection: None, lease_down: None, tags_down: None, silent: None }
    }
}

impl<C: ?Sized> Link<C> {
    fn down(&mut self, who: For, now: Instant) -> Option<Error> {
        for down in [&mut self.lease_down, &mut self.tags_down] {
            down.take_if(|(until, _)| *until <= now);
        }
        let tags_down = self.tags_down.as_ref().filter(|_| who != For::Lease);
        self.lease_down.as_ref().or(tags_down).map(|(_, error)| error.clone())
    }

    fn note(&mut self, who: For, until: Instant, error: &Error) {
        let down = (until, error.clone());
        match who {
            For::Lease => self.lease_down = Some(down),
            For::Tag(tag) => {
                if self.silent.replace(tag.to_owned()).is_some_and(|silent| silent != tag) {
                    self.tags_down = Some(down);
                }
            }
        }
    }

    fn call<T>(
        &mut self,
        who: For,
        timeout: Duration,
        connect: impl FnOnce() -> Result<Box<C>>,
        work: impl FnOnce(&mut C) -> Result<T>,
    ) -> Result<T> {
        self.refuse(who)?;
        let result = self.attempt(connect, work);
        self.judge(who, timeout, &result);
        result
    }

    /// A call for a lease that may be made twice: where the connection at hand has ended since it was used last, over a new one, in
    /// the time that is left. A store that does not answer has used it up by then.
    fn call_repeatable<T>(
        &mut self,
        timeout: Duration,
        connect: impl Fn(Duration) -> Result<Box<C>>,
        work: impl Fn(&mut C, Duration) -> Result<T>,
    ) -> Result<T> {
        self.refuse(For::Lease)?;
        let (begun, was_open) = (Instant::now(), self.connection.is_some());
        let mut result = self.attempt(|| connect(timeout), |connection| work(connection, timeout));
        let left = timeout.saturating_sub(begun.elapsed());
        if was_open && self.connection.is_none() && !left.is_zero() {
            result = self.attempt(|| connect(left), |connection| work(connection, left));
        }
        self.judge(For::Lease, timeout, &result);
        result
    }

    fn refuse(&mut self, who: For) -> Result<()> {
        self.down(who, Instant::now()).map_or(Ok(()), Err)
    }

    /// Works with the connection, which is kept where it is still of use.
    fn attempt<T>(&mut self, connect: impl FnOnce() -> Result<Box<C>>, work: impl FnOnce(&mut C) -> Result<T>) -> Result<T> {
        let mut connection = self.connection.take();
        let result = catch_unwind(AssertUnwindSafe(|| {
            let connection = match &mut connection {
                Some(connection) => connection,
                None => connection.insert(connect()?),
            };
            work(connection)
        }));
        let result = result.unwrap_or_else(|panic| Err(Error::from_panic(panic.as_ref())));
        // A store that is busy answers, and others were first.
        if result.as_ref().err().is_none_or(is_busy) {
            self.connection = connection;
        }
        result
    }

    /// Remembers how a call went.
    fn judge<T>(&mut self, who: For, timeout: Duration, result: &Result<T>) {
        match result {
            Ok(_) if who != For::Lease => self.silent = None,
            Err(error) if error.kind() == ErrorKind::StoreUnreachable && !is_busy(error) => {
                self.note(who, Instant::now() + timeout / 4, error);
            }
            _ => {}
        }
    }
}

impl Connection {
    pub(crate) fn new(address: Address) -> Self {
        Connection { address, limit_us: AtomicU64::new(u64::MAX), store: Mutex::default(), tables: Mutex::default() }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// The shortest time that a lease's call may take; `None` where there is no lease.
    pub(super) fn keep_free(&self, shortest: Option<Duration>) {
        let limit = shortest.map_or(u64::MAX, |shortest| (shortest.as_micros() / 2) as u64);
        self.limit_us.store(limit, Ordering::Relaxed);
    }

    fn limit(&self, timeout: Duration) -> Duration {
        timeout.min(Duration::from_micros(self.limit_us.load(Ordering::Relaxed)))
    }

    /// One call of the store for a lease, which takes at most `timeout`.
    ///
    /// # Errors
    /// `STORE_*`; `INTERNAL` for a panic, which must not end what else uses the line.
    pub(super) fn call<T>(&self, timeout: Duration, work: impl FnOnce(&mut dyn Store) -> Result<T>) -> Result<T> {
        self.ask(For::Lease, timeout, work)
    }

    /// One call of the store for a lease that does no harm when it is made twice: it is tried again where the connection has ended
    /// unnoticed, as when the server was restarted.
    ///
    /// # Errors
    /// As [`call`](Line::call).
    pub(super) fn call_repeatable<T>(&self, timeout: Duration, work: impl Fn(&mut dyn Store) -> Result<T>) -> Result<T> {
        let mut link = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let work = |store: &mut (dyn Store + 'static), timeout| {
            store.set_timeout(timeout);
            work(store)
        };
        self.named(link.call_repeatable(timeout, |timeout| self.address.connect(timeout), work))
    }

    /// One call of the store for a tag, which takes at most `timeout`, and less where there are leases.
    ///
    /// # Errors
    /// As [`call`](Line::call).
    pub(crate) fn call_for_tag<T>(&self, tag: &str, timeout: Duration, work: impl FnOnce(&mut dyn Store) -> Result<T>) -> Result<T> {
        self.ask(For::Tag(tag), self.limit(timeout), work)
    }

    fn ask<T>(&self, who: For, timeout: Duration, work: impl FnOnce(&mut dyn Store) -> Result<T>) -> Result<T> {
        let mut link = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let work = |store: &mut (dyn Store + 'static)| {
            store.set_timeout(timeout);
            work(store)
        };
        self.named(link.call(who, timeout, || self.address.connect(timeout), work))
    }

    /// One call of another system's table, as [`call_for_tag`](Line::call_for_tag).
    ///
    /// # Errors
    /// As [`call`](Line::call).
    pub(crate) fn call_table<T>(
        &self,
        tag: &str,
        table: Table,
        timeout: Duration,
        work: impl FnOnce(&mut dyn Rows) -> Result<T>,
    ) -> Result<T> {
        let timeout = self.limit(timeout);
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let work = |rows: &mut (dyn Rows + 'static)| {
            rows.set_timeout(timeout);
            work(rows)
        };
        self.named(tables.entry(table).or_default().call(For::Tag(tag), timeout, || self.address.connect_table(table, timeout), work))
    }

    /// Names the store in the error of a panic; other errors name it already.
    fn named<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| match error.kind() {
            kind @ ErrorKind::Internal => Error::new(kind, format!("store={}: {error}", self.address)),
            _ => error,
        })
    }
}

/// Returns whether a store is only busy: it says when to come back.
pub(super) fn is_busy(error: &Error) -> bool {
    error.kind() == ErrorKind::StoreUnreachable && error.retry_after().is_some()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::RefCell;

    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_secs(3_600);

    fn connection() -> Connection {
        Connection::new(Address::parse("memory").expect("the memory"))
    }

    fn fail(_: &mut dyn Store) -> Result<()> {
        Err(Error::new(ErrorKind::StoreUnreachable, "away"))
    }

    #[test]
    fn a_panic_in_a_store_is_an_error_like_any_other() {
        let connection = connection();
        assert!(connection.call(SECOND, |_| Ok(())).is_ok());
        let error = connection.call(SECOND, |_| -> Result<()> { panic!("no such row") }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(error.to_string().starts_with("store=memory: ") && error.to_string().contains("no such row"), "{error}");
        assert!(connection.store.lock().unwrap().connection.is_none(), "what panicked is not used again");
        assert!(connection.call(SECOND, |_| Ok(())).is_ok());
    }

    /// Makes a repeatable call, where the first attempts fail after so long; returns the time that each attempt and each new
    /// connection was given.
    fn repeated(link: &mut Link<()>, timeout: Duration, fails_after: &[Duration]) -> (Result<()>, Vec<Duration>, Vec<Duration>) {
        let (asked, connected) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
        let connect = |timeout| {
            connected.borrow_mut().push(timeout);
            Ok(Box::new(()))
        };
        let work = |_: &mut (), timeout| {
            let attempt = asked.borrow().len();
            asked.borrow_mut().push(timeout);
            let Some(after) = fails_after.get(attempt) else { return Ok(()) };
            std::thread::sleep(*after);
            Err(Error::new(ErrorKind::StoreUnreachable, "the connection has ended"))
        };
        let result = link.call_repeatable(timeout, connect, work);
        (result, asked.into_inner(), connected.into_inner())
    }

    fn opened() -> Link<()> {
        Link { connection: Some(Box::new(())), ..Link::default() }
    }

    #[test]
    fn a_connection_that_has_ended_is_made_again_in_the_time_that_is_left() {
        let soon = SECOND / 100;
        let (result, asked, connected) = repeated(&mut opened(), HOUR, &[]);
        assert!(result.is_ok() && asked == [HOUR] && connected.is_empty());

        let mut link = opened();
        let (result, asked, connected) = repeated(&mut link, HOUR, &[soon]);
        assert!(result.is_ok() && link.connection.is_some() && link.lease_down.is_none());
        assert_eq!((asked.len(), connected.len()), (2, 1));
        assert!(asked[0] == HOUR && asked[1] == connected[0] && connected[0] <= HOUR - soon, "{asked:?}");
    }

    #[test]
    fn a_store_that_is_gone_is_not_asked_for_longer() {
        // Twice at most, and then no more for a while.
        let mut link = opened();
        let (result, asked, _) = repeated(&mut link, HOUR, &[Duration::ZERO; 3]);
        assert!(result.is_err() && asked.len() == 2 && link.lease_down.is_some());
        let (result, asked, connected) = repeated(&mut link, HOUR, &[]);
        assert!(result.is_err() && asked.is_empty() && connected.is_empty());
        let soon = SECOND / 100;
        // One that is silent has had its time, and a new connection fails for good.
        assert_eq!(repeated(&mut opened(), soon, &[soon]).1, [soon]);
        assert_eq!(repeated(&mut Link::default(), HOUR, &[Duration::ZERO]).1, [HOUR]);
    }

    #[test]
    fn what_tags_met_keeps_no_lease_from_asking() {
        let connection = connection();
        assert!(connection.call_for_tag("a", SECOND, fail).is_err());
        assert!(connection.call_for_tag("b", SECOND, |_| Ok(())).is_ok(), "the store answers others");
        assert!(connection.call_for_tag("a", SECOND, fail).is_err());
        assert!(connection.call_for_tag("a", SECOND, fail).is_err());
        assert!(connection.call_for_tag("b", SECOND, fail).is_err());
        assert!(connection.call_for_tag("c", SECOND, |_| Ok(())).is_err(), "many tags would wait in turn");
        assert!(connection.call(SECOND, |_| Ok(())).is_ok());
        assert!(connection.call(SECOND, fail).is_err());
        assert!(connection.call(SECOND, |_| Ok(())).is_err());
    }

    #[test]
    fn a_call_for_a_tag_takes_half_of_what_a_lease_may() {
        let connection = connection();
        assert_eq!(connection.limit(SECOND), SECOND);
        connection.keep_free(Some(SECOND));
        assert_eq!(connection.limit(SECOND), SECOND / 2);
        assert_eq!(connection.limit(SECOND / 4), SECOND / 4);
        connection.keep_free(None);
        assert_eq!(connection.limit(SECOND), SECOND);
    }
}
