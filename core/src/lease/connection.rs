//! A process's one connection to a store.

use frazil_base::error::{Error, ErrorKind, FIRST_PAUSE, Result};
use frazil_base::os::sync::locked;
use frazil_store::{Address, Rows, Store, Table};
use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The connection that all leases and tags of a process share, for one call at a time. It connects at the first call, and again after an
/// error.
///
/// **A lease never waits for long.** Let T be the shortest time limit of a lease's call. A call for a tag takes at most T/2, and a call
/// for another lease at most T. If either fails, there is time left to report the lease before it is used up. The time limit of a call
/// includes connecting. Failed calls for tags do not stop calls for leases.
pub(crate) struct Connection {
    address: Address,
    /// The shortest time limit of the calls of this process's leases, in us.
    shortest_us: AtomicU64,
    store: Mutex<Link<dyn Store>>,
    /// One connection per table, because tables may use different users and databases.
    tables: Mutex<HashMap<Table, Link<dyn Rows>>>,
}

/// The purpose of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum For<'a> {
    Lease,
    Tag(&'a str),
}

/// A connection, and the outcomes of the last calls.
pub(super) struct Link<C: ?Sized> {
    connection: Option<Box<C>>,
    /// True if the connection is kept after a busy answer. A connection to a server is replaced, because another server may be less busy.
    stays: bool,
    /// The time until which no call is made to a store that did not answer, and its error. Otherwise many leases would wait for it one
    /// after the other.
    lease_down: Option<(Instant, Error)>,
    /// The time until which no call is made for tags, and the error. It is set when two different tags failed one after the other, because
    /// a single tag may fail for its own locked record.
    tags_down: Option<(Instant, Error)>,
    /// The last tag that got no answer. `None` once any tag got one.
    silent: Option<String>,
    /// The latest calls for leases if they got no answer: the instant at which the first of them began, and their number.
    silence: Option<(Instant, u32)>,
}

/// The number of calls without an answer after which a store counts as away. A single refused connection may mean that the server's queue
/// is full.
const MOST_SILENCES: u32 = 5;

impl<C: ?Sized> Default for Link<C> {
    fn default() -> Self {
        Link { connection: None, stays: false, lease_down: None, tags_down: None, silent: None, silence: None }
    }
}

impl<C: ?Sized> Link<C> {
    /// Refuses a call during a pause.
    ///
    /// # Errors
    /// The error that began the pause.
    pub(super) fn refuse(&mut self, who: For, now: Instant) -> Result<()> {
        for down in [&mut self.lease_down, &mut self.tags_down] {
            down.take_if(|(until, _)| *until <= now);
        }
        let tags_down = self.tags_down.as_ref().filter(|_| who != For::Lease);
        self.lease_down.as_ref().or(tags_down).map_or(Ok(()), |(_, error)| Err(error.clone()))
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
        connect: impl FnOnce(Duration) -> Result<Box<C>>,
        work: impl FnOnce(&mut C, Duration) -> Result<T>,
    ) -> Result<T> {
        let begun = Instant::now();
        self.refuse(who, begun)?;
        let result = self.attempt(timeout, connect, work);
        self.judge(who, timeout, begun, Instant::now(), result)
    }

    /// Makes a call for a lease that may be made twice. If an open connection turns out to have ended, the call is repeated over a new
    /// one, in the time that is left. If the store did not answer at all, no time is left.
    fn call_repeatable<T>(
        &mut self,
        timeout: Duration,
        connect: impl Fn(Duration) -> Result<Box<C>>,
        work: impl Fn(&mut C, Duration) -> Result<T>,
    ) -> Result<T> {
        let (begun, was_open) = (Instant::now(), self.connection.is_some());
        self.refuse(For::Lease, begun)?;
        let mut result = self.attempt(timeout, &connect, &work);
        let left = timeout.saturating_sub(begun.elapsed());
        if was_open && self.connection.is_none() && !left.is_zero() {
            result = self.attempt(left, connect, work);
        }
        self.judge(For::Lease, timeout, begun, Instant::now(), result)
    }

    /// Works with the connection, and keeps it if it can still be used. The work gets the time that is left after connecting.
    fn attempt<T>(
        &mut self,
        timeout: Duration,
        connect: impl FnOnce(Duration) -> Result<Box<C>>,
        work: impl FnOnce(&mut C, Duration) -> Result<T>,
    ) -> Result<T> {
        let (mut connection, begun) = (self.connection.take(), Instant::now());
        let result = catch_unwind(AssertUnwindSafe(|| match &mut connection {
            Some(connection) => work(connection, timeout),
            None => work(connection.insert(connect(timeout)?), timeout.saturating_sub(begun.elapsed())),
        }));
        let result = result.unwrap_or_else(|panic| Err(Error::from_panic(panic.as_ref())));
        // A busy folder has answered, so its connection is good.
        if result.as_ref().err().is_none_or(|error| self.stays && is_busy(error)) {
            self.connection = connection;
        }
        result
    }

    /// Remembers the outcome of a call. A store that does not answer a lease's call first counts as busy, so that the call is repeated, and
    /// only then as away. A slow server is called [`MOST_SILENCES`] times, with longer pauses. A host that accepts no connection is called for the
    /// time limit of one call.
    pub(super) fn judge<T>(&mut self, who: For, timeout: Duration, begun: Instant, now: Instant, result: Result<T>) -> Result<T> {
        let is_lease = who == For::Lease;
        match result {
            Err(error) if error.kind() == ErrorKind::StoreUnreachable && !is_busy(&error) => {
                if is_lease {
                    let (since, calls) = self.silence.get_or_insert((begun, 0));
                    *calls = calls.saturating_add(1);
                    // A call connects within half of its time, or fails. So a call that took longer has found a server that accepts
                    // connections. (SQL clients may connect for the whole time, because a database's queue is full sooner.)
                    let is_slow = now - begun > timeout / 2;
                    if *calls < MOST_SILENCES && (is_slow || now - *since < timeout) {
                        return Err(error.retry_in(if is_slow { now - begun } else { FIRST_PAUSE }));
                    }
                }
                self.note(who, now + timeout / 4, &error);
                Err(error)
            }
            result => {
                self.silence = None;
                if !is_lease && result.is_ok() {
                    self.silent = None;
                }
                result
            }
        }
    }
}

impl Connection {
    pub(crate) fn new(address: Address) -> Self {
        let store: Link<dyn Store> = Link { stays: address.is_near(), ..Link::default() };
        Connection { address, shortest_us: AtomicU64::new(u64::MAX), store: Mutex::new(store), tables: Mutex::default() }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Sets the shortest time limit of a lease's call, by which all calls are limited. `None` without a lease.
    pub(super) fn limit_calls(&self, shortest: Option<Duration>) {
        self.shortest_us.store(shortest.map_or(u64::MAX, |shortest| shortest.as_micros() as u64), Ordering::Relaxed);
    }

    fn limit(&self, who: For, timeout: Duration) -> Duration {
        let shortest_us = self.shortest_us.load(Ordering::Relaxed);
        timeout.min(Duration::from_micros(if who == For::Lease { shortest_us.saturating_mul(2) } else { shortest_us / 2 }))
    }

    /// Makes a call of the store for a lease, which takes at most `timeout`.
    ///
    /// # Errors
    /// `STORE_*`; `INTERNAL` for a panic, which must not end other uses of the connection.
    pub(super) fn call<T>(&self, timeout: Duration, work: impl FnOnce(&mut dyn Store) -> Result<T>) -> Result<T> {
        self.ask(For::Lease, timeout, work)
    }

    /// Makes a call of the store for a lease that does no harm when it is made twice. Repeats the call if the connection had ended
    /// unnoticed, as after a restart of the server.
    ///
    /// # Errors
    /// As [`call`](Connection::call).
    pub(super) fn call_repeatable<T>(&self, timeout: Duration, work: impl Fn(&mut dyn Store) -> Result<T>) -> Result<T> {
        let timeout = self.limit(For::Lease, timeout);
        let mut link = locked(&self.store);
        let work = |store: &mut (dyn Store + 'static), timeout| {
            store.set_timeout(timeout);
            work(store)
        };
        self.named(link.call_repeatable(timeout, |timeout| self.address.connect(timeout), work))
    }

    /// Makes one or more calls of the store for leases. Together they take at most `timeout`, and each has its own outcome. Calls that do
    /// no harm when they are made twice are repeated as by [`call_repeatable`](Connection::call_repeatable).
    pub(super) fn call_all<T: Clone>(
        &self,
        timeout: Duration,
        repeatable: bool,
        count: usize,
        work: impl Fn(&mut dyn Store) -> Vec<Result<T>>,
    ) -> Vec<Result<T>> {
        let answers = RefCell::new(Vec::new());
        let work = |store: &mut dyn Store| {
            let made = work(store);
            // If the connection ended, the last answer has its error.
            let failed = made.iter().rev().find_map(|answer| answer.as_ref().err().cloned());
            let wrong = || Error::new(ErrorKind::Internal, format!("{} answers to {count} calls", made.len()));
            let failed = failed.or_else(|| (made.len() != count).then(wrong));
            answers.replace(made);
            failed.map_or(Ok(()), Err)
        };
        let done = if repeatable { self.call_repeatable(timeout, work) } else { self.call(timeout, work) };
        let answers = answers.into_inner();
        let Err(error) = done else { return answers };
        if answers.len() != count {
            return vec![Err(error); count];
        }
        // The judged error says when to call again.
        let is_away = error.kind() == ErrorKind::StoreUnreachable;
        let judged = |lost: Error| if is_away && lost.kind() == error.kind() { error.clone() } else { lost };
        answers.into_iter().map(|answer| answer.map_err(judged)).collect()
    }

    /// Makes a call of the store for a tag, which takes at most `timeout`, and less if the process has leases.
    ///
    /// # Errors
    /// As [`call`](Connection::call).
    pub(crate) fn call_for_tag<T>(&self, tag: &str, timeout: Duration, work: impl FnOnce(&mut dyn Store) -> Result<T>) -> Result<T> {
        self.ask(For::Tag(tag), timeout, work)
    }

    fn ask<T>(&self, who: For, timeout: Duration, work: impl FnOnce(&mut dyn Store) -> Result<T>) -> Result<T> {
        let timeout = self.limit(who, timeout);
        let mut link = locked(&self.store);
        let work = |store: &mut (dyn Store + 'static), timeout| {
            store.set_timeout(timeout);
            work(store)
        };
        self.named(link.call(who, timeout, |timeout| self.address.connect(timeout), work))
    }

    /// Makes a call of another system's table, with the limits of [`call_for_tag`](Connection::call_for_tag).
    ///
    /// # Errors
    /// As [`call`](Connection::call).
    pub(crate) fn call_table<T>(
        &self,
        tag: &str,
        table: Table,
        timeout: Duration,
        work: impl FnOnce(&mut dyn Rows) -> Result<T>,
    ) -> Result<T> {
        let timeout = self.limit(For::Tag(tag), timeout);
        let mut tables = locked(&self.tables);
        let work = |rows: &mut (dyn Rows + 'static), timeout| {
            rows.set_timeout(timeout);
            work(rows)
        };
        self.named(tables.entry(table).or_default().call(
            For::Tag(tag),
            timeout,
            |timeout| self.address.connect_table(table, timeout),
            work,
        ))
    }

    /// Names the store in the error of a panic; other errors name it already.
    fn named<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| match error.kind() {
            ErrorKind::Internal => error.named(&format!("store={}", self.address)),
            _ => error,
        })
    }
}

/// Returns whether an error means that the store is only busy: it says when to retry.
pub(super) fn is_busy(error: &Error) -> bool {
    error.kind() == ErrorKind::StoreUnreachable && error.retry_after().is_some()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use frazil_store::{Answer, Ask, Loaded, Swap, Swapped, Which};

    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_secs(3_600);

    fn connection() -> Connection {
        Connection::new(Address::parse("memory").expect("the memory"))
    }

    fn fail(_: &mut dyn Store) -> Result<()> {
        Err(Error::new(ErrorKind::StoreUnreachable, "away"))
    }

    #[test]
    fn panic_in_a_store_is_an_error() {
        let connection = connection();
        assert!(connection.call(SECOND, |_| Ok(())).is_ok());
        let error = connection.call(SECOND, |_| -> Result<()> { panic!("no such row") }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(error.to_string().starts_with("store=memory: ") && error.to_string().contains("no such row"), "{error}");
        assert!(connection.store.lock().unwrap().connection.is_none(), "a connection that panicked is not used again");
        assert!(connection.call(SECOND, |_| Ok(())).is_ok());
    }

    /// A store that answers only the first calls of several.
    struct Cut(usize);

    impl Store for Cut {
        fn set_timeout(&mut self, _timeout: Duration) {}

        fn load(&mut self, _namespace: &str, _which: Which) -> Result<Loaded> {
            unreachable!("calls are made together")
        }

        fn swap(&mut self, _namespace: &str, _swap: &Swap) -> Result<Swapped> {
            unreachable!("calls are made together")
        }

        fn ask_many(&mut self, asks: &[Ask<'_>]) -> Vec<Result<Answer>> {
            let lost = || Err(Error::new(ErrorKind::StoreUnreachable, "the connection has ended"));
            let corrupt = || Err(Error::new(ErrorKind::StoreCorrupt, "the record is not text"));
            let answer = |n| match n {
                1 if self.0 < asks.len() => corrupt(),
                _ if n < self.0 => Ok(Answer::Swapped(Swapped::OutOfTime(n as i64))),
                _ => lost(),
            };
            // If `self.0` is above the number of calls, one answer is missing.
            (0..asks.len() - usize::from(self.0 > asks.len())).map(answer).collect()
        }

        #[cfg(feature = "admin")]
        fn namespaces(&mut self) -> Result<Vec<String>> {
            unreachable!("nobody lists")
        }
    }

    #[test]
    fn each_of_several_calls_has_its_own_outcome() {
        let asks = [Ask::Load("a", 1); 4];
        let connection = connection();
        let ask = |answered| {
            connection.store.lock().unwrap().connection = Some(Box::new(Cut(answered)));
            let answers = connection.call_all(SECOND, false, asks.len(), |store| store.ask_many(&asks));
            (answers, connection.store.lock().unwrap().connection.is_some())
        };
        let (answers, is_kept) = ask(3);
        assert_eq!(answers[0], Ok(Answer::Swapped(Swapped::OutOfTime(0))));
        assert_eq!(answers[1].as_ref().unwrap_err().kind(), ErrorKind::StoreCorrupt);
        assert_eq!(answers[2], Ok(Answer::Swapped(Swapped::OutOfTime(2))));
        let lost = answers[3].as_ref().unwrap_err();
        assert!(is_busy(lost) && !is_kept, "it says when to ask again: {lost}");
        let (answers, is_kept) = ask(5);
        assert!(answers.len() == 4 && answers.iter().all(|answer| answer.as_ref().is_err_and(|e| e.kind() == ErrorKind::Internal)));
        assert!(!is_kept, "a connection with the wrong number of answers is not used again");
    }

    /// Makes a repeatable call. Each of its first attempts fails after one of these times. Returns
    /// the time given to each attempt, and to each new connection.
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
    fn connection_that_has_ended_is_made_again_in_the_time_that_is_left() {
        let soon = SECOND / 100;
        let (result, asked, connected) = repeated(&mut opened(), HOUR, &[]);
        assert!(result.is_ok() && asked == [HOUR] && connected.is_empty());

        let mut link = opened();
        let (result, asked, connected) = repeated(&mut link, HOUR, &[soon]);
        assert!(result.is_ok() && link.connection.is_some() && link.lease_down.is_none());
        assert_eq!((asked.len(), connected.len()), (2, 1));
        assert!(asked[0] == HOUR && asked[1] <= connected[0] && connected[0] <= HOUR - soon, "{asked:?}");
    }

    #[test]
    fn dead_store_is_not_called_beyond_the_time_limit() {
        // At most two attempts in a call. After a few calls, none is made for a while.
        let mut link = opened();
        for call in 1..=MOST_SILENCES {
            let (result, asked, _) = repeated(&mut link, HOUR, &[Duration::ZERO; 3]);
            let is_away = call == MOST_SILENCES;
            assert!(asked.len() == if call == 1 { 2 } else { 1 } && link.lease_down.is_some() == is_away);
            assert_eq!(is_busy(&result.unwrap_err()), !is_away, "call {call}");
        }
        let (result, asked, connected) = repeated(&mut link, HOUR, &[]);
        assert!(result.is_err() && asked.is_empty() && connected.is_empty());
        let soon = SECOND / 100;
        // A silent store has used all of the time. A new connection is not repeated.
        assert_eq!(repeated(&mut opened(), soon, &[soon]).1, [soon]);
        let asked = repeated(&mut Link::default(), HOUR, &[Duration::ZERO]).1;
        assert!(asked.len() == 1 && asked[0] <= HOUR, "{asked:?}");
    }

    /// Returns the number of silent calls of this length after which a store counts as away.
    fn silences_until_away(timeout: Duration, took: Duration) -> u32 {
        let mut link = opened();
        let silent = || -> Result<()> {
            std::thread::sleep(took);
            Err(Error::new(ErrorKind::StoreUnreachable, "no answer in time"))
        };
        let mut calls = 1;
        while is_busy(&link.call(For::Lease, timeout, |_| Ok(Box::new(())), |(), _| silent()).expect_err("it is silent")) {
            calls += 1;
        }
        calls
    }

    #[test]
    fn unreachable_host_counts_as_away_sooner_than_a_slow_server() {
        let (short, long) = (SECOND / 10, 2 * SECOND);
        assert_eq!(silences_until_away(short, Duration::ZERO), MOST_SILENCES);
        assert_eq!(silences_until_away(short, short * 4 / 5), MOST_SILENCES);
        assert!((2..=3).contains(&silences_until_away(long, long / 3)));
    }

    #[test]
    fn busy_server_gets_a_new_connection() {
        let mut link = opened();
        let busy = || -> Result<()> { Err(Error::new(ErrorKind::StoreUnreachable, "no leader").retry_soon()) };
        let error = link.call(For::Lease, SECOND, |_| panic!("it is connected"), |(), _| busy()).unwrap_err();
        assert!(is_busy(&error) && link.connection.is_none() && link.lease_down.is_none());
    }

    #[test]
    fn failed_calls_for_tags_do_not_stop_calls_for_leases() {
        let connection = connection();
        assert!(connection.call_for_tag("a", SECOND, fail).is_err());
        assert!(connection.call_for_tag("b", SECOND, |_| Ok(())).is_ok(), "the store answers others");
        assert!(connection.call_for_tag("a", SECOND, fail).is_err());
        assert!(connection.call_for_tag("a", SECOND, fail).is_err());
        assert!(connection.call_for_tag("b", SECOND, fail).is_err());
        assert!(connection.call_for_tag("c", SECOND, |_| Ok(())).is_err(), "many tags would wait in turn");
        assert!(connection.call(SECOND, |_| Ok(())).is_ok());
        assert!((1..=MOST_SILENCES).all(|_| connection.call(SECOND, fail).is_err()));
        assert!(connection.call(SECOND, |_| Ok(())).is_err());
    }

    #[test]
    fn silent_store_is_called_a_few_times_and_any_answer_counts() {
        let connection = connection();
        let silences = || (1..MOST_SILENCES).all(|_| is_busy(&connection.call(SECOND, fail).unwrap_err()));
        assert!(silences());
        let busy = |_: &mut dyn Store| -> Result<()> { Err(Error::new(ErrorKind::StoreUnreachable, "full").retry_soon()) };
        assert!(is_busy(&connection.call(SECOND, busy).unwrap_err()));
        assert!(connection.store.lock().unwrap().connection.is_some(), "a folder that is busy is not opened again");
        assert!(silences());
        let refuses = |_: &mut dyn Store| -> Result<()> { Err(Error::new(ErrorKind::StoreAuth, "no")) };
        assert_eq!(connection.call(SECOND, refuses).unwrap_err().kind(), ErrorKind::StoreAuth);
        assert!(silences() && !is_busy(&connection.call(SECOND, fail).unwrap_err()), "away");
    }

    #[test]
    fn call_has_the_time_that_connecting_has_left() {
        let soon = SECOND / 10;
        let (mut link, mut given) = (Link::<()>::default(), Vec::new());
        let mut call = || {
            let connect = |_| {
                std::thread::sleep(soon);
                Ok(Box::new(()))
            };
            let work = |_: &mut (), left| -> Result<()> {
                given.push(left);
                Ok(())
            };
            link.call(For::Lease, SECOND, connect, work).unwrap();
        };
        call();
        call();
        assert!(given[0] <= SECOND - soon && given[1] == SECOND, "{given:?}");
    }

    #[test]
    fn call_for_a_tag_gets_half_of_a_leases_time_limit() {
        let connection = connection();
        let limits = |timeout| [For::Tag("a"), For::Lease].map(|who| connection.limit(who, timeout));
        assert_eq!(limits(HOUR), [HOUR; 2]);
        connection.limit_calls(Some(SECOND));
        assert_eq!(limits(HOUR), [SECOND / 2, 2 * SECOND], "another lease's call does not outlast the window of the shortest");
        assert_eq!(limits(SECOND), [SECOND / 2, SECOND]);
        assert_eq!(limits(SECOND / 4), [SECOND / 4; 2]);
        connection.limit_calls(None);
        assert_eq!(limits(HOUR), [HOUR; 2]);
    }
}
