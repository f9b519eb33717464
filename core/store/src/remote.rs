//! `store=frazil://[TOKEN@]host[:port][,host2...]`: the store that a frazil-server lends. `frazils://` is TLS.
//!
//! A server passes load and compare-and-set on to its own store, and keeps no state. So a lease depends only
//! on that store's identity, clock and records. All replicas that lend the same store are equivalent. A
//! process that reaches the store directly may share a namespace with one that goes through a server.
//!
//! # The protocol
//! The protocol is that of Redis, which the server also speaks to other clients. A request is an array of
//! strings, and its answer, too. A call takes one round trip. The client is a few hundred lines, which fit
//! into a build without any other client. HTTP would need a separate client. `message` has the messages of
//! both sides, so that they change together. `proxy` is the server's side.
//!
//! # Guarantees
//! - **A swap is sent once**, to one server. If no answer arrives, it is unknown whether the swap was done or
//!   will be. As with any store, the caller first reads the record. Only a request that changes nothing is
//!   sent to the next server.
//! - **A server that answers late does no harm.** A delayed swap still compares the whole record, the
//!   namespace's record and the store's identity, and the store compares its clock. If another server has
//!   written since, the record has changed, and the swap changes nothing.
//! - **The time of a load** is the store's time at an instant between request and answer. A server in between
//!   only increases this interval. As with any store, a write based on this time is checked by the store's
//!   clock once more.
//! - **The time limit** of the sender is sent with the request. The server's store gets three quarters of it.
//!   So the store's own error, which is more precise, arrives before the sender gives up.
//! - **Histories** that went back (etcd, ZooKeeper) are noticed by the server, for all its clients. So a
//!   store's refusal is final, and no other server is called, because it may know less. Each answer also
//!   contains the progress of its store's history. So a process knows as much as with direct access, whichever
//!   server answers.
//! - **Servers that lend different stores** would hand out numbers twice. The first load of a
//!   namespace in a process therefore calls all servers of the address, as far as they answer. So
//!   does a load that finds another store: [`agreement`].

mod agreement;
mod message;
#[cfg(feature = "operator")]
mod proxy;
mod session;
#[cfg(test)]
mod tests;
mod tls;

use super::history::History;
use super::hosts::{BUSY, Failure, Hosts};
use super::socket::Deadline;
use super::{Answer, Ask, Loaded, Store, Swap, Swapped, Which};
use agreement::{Known, Told, namespace_of};
use frazil_base::error::{ErrorKind, Result};
pub use message::busy;
use message::{Backing, StoreRequest as Asked};
#[cfg(feature = "operator")]
pub use proxy::{Proxy, Question};
use session::{LenderSession, no_server};
use std::sync::Arc;
use std::time::Duration;
use tls::Tls;

/// The port for `--resp` in the guide.
const PORT: u16 = 6390;

struct Remote {
    hosts: Hosts,
    tls: Tls,
    timeout: Duration,
    /// `None` after an error, because an answer to an older request may still arrive.
    session: Option<LenderSession>,
}

/// # Errors
/// `SPEC`, `STORE_*`.
pub(super) fn connect(url: &str, timeout: Duration) -> Result<Box<dyn Store>> {
    connect_to(Hosts::parse(url, PORT)?.shuffled(), timeout)
}

/// Connects to the first of these hosts that gives a good answer.
fn connect_to(hosts: Hosts, timeout: Duration) -> Result<Box<dyn Store>> {
    let deadline = Deadline::of_call(timeout);
    if hosts.login.as_ref().is_some_and(|login| !login.password.expose().is_empty()) {
        return Err(hosts.wrong("a token has no password: write frazil://TOKEN@host, with %3A for a colon in it"));
    }
    if !hosts.path.is_empty() {
        return Err(hosts.wrong("expected nothing, or options, after the hosts: the server knows its store"));
    }
    let tls = Tls::read(&hosts)?;
    let mut store = Remote { hosts, tls, timeout, session: None };
    store.session = Some(store.dial(deadline)?);
    Ok(Box::new(store))
}

impl Remote {
    fn dial(&mut self, deadline: Deadline) -> Result<LenderSession> {
        let session = self.hosts.first_good(deadline, |host, deadline| LenderSession::open(&self.hosts, &self.tls, host, deadline))?;
        self.hosts.begin_with(session.host());
        Ok(session)
    }

    /// Calls the present server, and the others if it does not answer.
    fn read<T>(&mut self, question: &Asked, deadline: Deadline, understand: fn(Vec<String>) -> Option<T>) -> Result<T> {
        let ask = |session: &mut LenderSession, deadline| understand(session.ask(question, deadline)?).ok_or_else(no_server);
        let hosts = self.hosts.hosts.len();
        if let Some(mut session) = self.session.take().filter(LenderSession::is_whole) {
            let answer = ask(&mut session, deadline.share(hosts));
            // A single server is not called again, unless only its connection had ended.
            let is_final = |failure: &Failure| match hosts {
                1 => failure.0 != ErrorKind::StoreUnreachable || session.is_whole(),
                _ => !another_may(failure),
            };
            if answer.as_ref().err().is_none_or(is_final) {
                return self.keep(session, answer);
            }
            self.hosts.end_with(session.host());
        }
        let (session, answer) = self.hosts.first_good(deadline, |host, deadline| {
            let mut session = LenderSession::open(&self.hosts, &self.tls, host, deadline)?;
            match ask(&mut session, deadline) {
                Err(failure) if another_may(&failure) => Err(failure),
                // Any other answer of the store is final.
                answer => Ok((session, answer)),
            }
        })?;
        self.hosts.begin_with(session.host());
        self.keep(session, answer)
    }

    fn keep<T>(&mut self, session: LenderSession, answer: Result<T, Failure>) -> Result<T> {
        let answer = answer.map_err(|failure| self.hosts.error(self.hosts.named(session.host(), failure)));
        self.session = Some(session);
        answer
    }

    /// The history that a store without a clock has reported under this address.
    fn history(&self, place: &str, server: &str) -> History {
        History::of(&self.hosts.shown, &format!("{} {server}", namespace_of(place)))
    }

    /// Checks an answer against the store's progress before the request.
    fn check_history(&self, history: &History, floor: i64, backing: &Backing, place: &str) -> Result<()> {
        let Some(number) = backing.history else { return Ok(()) };
        history.check(floor, number, &self.hosts.shown, place).map_err(|failure| self.hosts.error(failure))
    }
}

/// Returns whether another server may answer after this failure, because it runs, lends the
/// namespace, speaks this protocol or has found the primary.
fn another_may(failure: &Failure) -> bool {
    matches!(failure.0, BUSY | ErrorKind::StoreUnreachable | ErrorKind::StoreUnsuitable | ErrorKind::StoreReadonly)
}

impl Store for Remote {
    fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    fn load(&mut self, namespace: &str, which: Which) -> Result<Loaded> {
        let deadline = Deadline::of_call(self.timeout);
        let before = self.before_load(namespace);
        let floor = before.as_ref().map_or(0, |before| before.floor);
        let reply = self.read(&Asked::Load(namespace.to_owned(), which, floor), deadline, message::loaded)?;
        self.loaded(namespace, before, reply, deadline)
    }

    fn swap(&mut self, namespace: &str, swap: &Swap) -> Result<Swapped> {
        let deadline = Deadline::of_call(self.timeout);
        let mut session = match self.session.take().filter(LenderSession::is_whole) {
            Some(session) => session,
            None => self.dial(deadline)?,
        };
        let history = self.history(namespace, &swap.server);
        let floor = history.highest();
        let answer = session.ask(&Asked::Swap(namespace.to_owned(), swap.clone()), deadline);
        let answer = answer.and_then(|answer| message::swapped(&answer).ok_or_else(no_server));
        let reply = self.keep(session, answer)?;
        self.swapped(namespace, &history, floor, reply)
    }

    /// Sends the requests of single calls to one server, without waiting for answers, which arrive
    /// in the same order.
    fn ask_many(&mut self, asks: &[Ask<'_>]) -> Vec<Result<Answer>> {
        let deadline = Deadline::of_call(self.timeout);
        let session = self.session.take().filter(LenderSession::is_whole).map_or_else(|| self.dial(deadline), Ok);
        let mut session = match session {
            Ok(session) => session,
            Err(error) => return vec![Err(error); asks.len()],
        };
        let before = |ask: &Ask<'_>| match *ask {
            Ask::Load(namespace, _) => self.before_load(namespace),
            Ask::Swap(namespace, swap) => {
                let history = self.history(namespace, &swap.server);
                Some(Before { floor: history.highest(), history, last: None })
            }
        };
        let before: Vec<_> = asks.iter().map(before).collect();
        let question = |(ask, before): (&Ask<'_>, &Option<Before>)| match *ask {
            Ask::Load(namespace, node) => {
                Asked::Load(namespace.to_owned(), Which::One(node), before.as_ref().map_or(0, |before| before.floor))
            }
            Ask::Swap(namespace, swap) => Asked::Swap(namespace.to_owned(), swap.clone()),
        };
        let questions: Vec<_> = asks.iter().zip(&before).map(question).collect();
        let answers = session.ask_many(&questions, deadline);
        let host = session.host().to_owned();
        self.session = Some(session);
        asks.iter().zip(before).zip(answers).map(|((ask, before), answer)| self.judge(ask, before, answer, &host, deadline)).collect()
    }

    #[cfg(feature = "operator")]
    fn namespaces(&mut self) -> Result<Vec<String>> {
        self.read(&Asked::List, Deadline::of_call(self.timeout), Some)
    }
}

/// This process's knowledge of a namespace before a request.
struct Before {
    history: History,
    floor: i64,
    last: Option<Arc<Told>>,
}

impl Remote {
    fn judge(
        &mut self,
        ask: &Ask<'_>,
        before: Option<Before>,
        answer: Result<Vec<String>, Failure>,
        host: &str,
        deadline: Deadline,
    ) -> Result<Answer> {
        let named = |failure| self.hosts.error(self.hosts.named(host, failure));
        let answer = answer.map_err(named)?;
        match (*ask, before) {
            (Ask::Swap(namespace, _), Some(Before { history, floor, .. })) => {
                let reply = message::swapped(&answer).ok_or_else(|| named(no_server()))?;
                self.swapped(namespace, &history, floor, reply).map(Answer::Swapped)
            }
            (Ask::Load(namespace, _) | Ask::Swap(namespace, _), before) => {
                let reply = message::loaded(answer).ok_or_else(|| named(no_server()))?;
                self.loaded(namespace, before, reply, deadline).map(Answer::Loaded)
            }
        }
    }

    fn before_load(&self, namespace: &str) -> Option<Before> {
        let last = Known::of(&self.hosts, namespace).last()?;
        let history = self.history(namespace, &last.server);
        Some(Before { floor: history.highest(), history, last: Some(last) })
    }

    fn loaded(
        &mut self,
        namespace: &str,
        before: Option<Before>,
        (backing, loaded): (Backing, Loaded),
        deadline: Deadline,
    ) -> Result<Loaded> {
        if let Some(session) = &mut self.session {
            let reply = Told::new(session.host(), &backing, &loaded);
            let agree = Known::of(&self.hosts, namespace).check(&self.hosts, &self.tls, session, namespace, reply, deadline);
            agree.map_err(|failure| self.hosts.error(failure))?;
        }
        // The history is checked last, because a foreign store's history would otherwise be compared with that of the store in use from now
        // on. Many stores have the same identity, or none.
        match before {
            Some(Before { floor, history, last: Some(last) }) if last.server == loaded.server => {
                self.check_history(&history, floor, &backing, namespace)?;
            }
            _ => self.check_history(&self.history(namespace, &loaded.server), 0, &backing, namespace)?,
        }
        Ok(loaded)
    }

    fn swapped(&self, namespace: &str, history: &History, floor: i64, (backing, swapped): (Backing, Swapped)) -> Result<Swapped> {
        if let Some(session) = &self.session {
            let is_one = Known::of(&self.hosts, namespace).check_written(session.host(), &backing);
            is_one.map_err(|failure| self.hosts.error(failure))?;
        }
        if swapped != Swapped::Differs {
            self.check_history(history, floor, &backing, namespace)?;
        }
        Ok(swapped)
    }
}
