//! `store=frazil://[TOKEN@]host[:port][,host2...]`: the store that a frazil-server lends. `frazils://` is TLS.
//!
//! A server passes load and compare-and-set on to its own store, and keeps nothing. So what a lease is made of is the store's: its
//! identity, its clock, its records. Any replica that lends the same store serves as well as another, and a process that reaches the
//! store itself may share a namespace with one that goes through a server.
//!
//! # The way there
//! Redis' protocol, which the server speaks anyway: a question is an array of strings and so is its answer, at one round trip, in a few
//! hundred lines that a build without any other client has room for. HTTP would take a client of its own. `message` has the
//! words of both sides, so that they change together; `proxy` is the other end, for the server.
//!
//! # What holds
//! - **A swap is sent once**, to one server. When no answer comes nobody knows whether it was done, or will be, as with any store: who
//!   asked reads the record before it does anything else. Only a question that changes nothing is put to the next server.
//! - **A server that answers late does no harm.** A swap that was held up, by a server that stood still, compares the whole record, the
//!   namespace's own and the store's identity, and the store compares its clock: what was written through another server meanwhile is
//!   another record, and the swap changes nothing.
//! - **The time of a load** is the store's at an instant between question and answer, which a server on the way only moves apart. It is
//!   used as any store's is: what is written by it is checked by the store's clock once more.
//! - **Time** is told with the question: how long its sender waits. The server's store gets three quarters of that, so its
//!   own refusal, which says more, comes before the sender gives up.
//! - **Histories** that went back (etcd, ZooKeeper) are noticed by the server, for all who ask it; so a refusal of a store is final, and is
//!   not taken to a server that may know less. And each answer says how far its store's history has come, so that a process knows what
//!   it would know of its own store, whichever server it comes to.
//! - **Servers that lend different stores** would hand out numbers twice. The first load of a namespace in a process asks all servers of the
//!   address, as far as they answer, and so does one by which the store has become another: [`agreement`].

mod agreement;
mod message;
#[cfg(feature = "lend")]
mod proxy;
mod session;
#[cfg(test)]
mod tests;
mod tls;

use super::history::History;
use super::hosts::{BUSY, Failure, Hosts};
use super::socket::Deadline;
use super::{Answer, Ask, Loaded, Store, Swap, Swapped, Which};
use crate::error::{ErrorKind, Result};
use agreement::{Known, Told, namespace_of};
#[cfg(feature = "lend")]
pub use message::busy;
use message::{Backing, Question as Asked};
#[cfg(feature = "lend")]
pub use proxy::{Proxy, Question};
use session::{Session, no_server};
use std::sync::Arc;
use std::time::Duration;
use tls::Tls;

/// The one that the guide gives `--resp`.
const PORT: u16 = 6390;

struct Remote {
    hosts: Hosts,
    tls: Tls,
    timeout: Duration,
    /// `None` after an error: an answer to an older question may still be under way.
    session: Option<Session>,
}

/// # Errors
/// `SPEC`, `STORE_*`.
pub(super) fn connect(url: &str, timeout: Duration) -> Result<Box<dyn Store>> {
    connect_to(Hosts::parse(url, PORT)?.shuffled(), timeout)
}

/// Connects to the first of these hosts that is good.
fn connect_to(hosts: Hosts, timeout: Duration) -> Result<Box<dyn Store>> {
    let deadline = Deadline::of_call(timeout);
    if hosts.login.as_ref().is_some_and(|login| !login.password.expose().is_empty()) {
        return Err(hosts.wrong("a token stands alone: write frazil://TOKEN@host, with %3A for a colon in it"));
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
    fn dial(&mut self, deadline: Deadline) -> Result<Session> {
        let session = self.hosts.first_good(deadline, |host, deadline| Session::open(&self.hosts, &self.tls, host, deadline))?;
        self.hosts.begin_with(session.host());
        Ok(session)
    }

    /// Asks the server at hand, and the others where it does not answer.
    fn read<T>(&mut self, question: &Asked, deadline: Deadline, understand: fn(Vec<String>) -> Option<T>) -> Result<T> {
        let ask = |session: &mut Session, deadline| understand(session.ask(question, deadline)?).ok_or_else(no_server);
        let hosts = self.hosts.hosts.len();
        if let Some(mut session) = self.session.take().filter(Session::is_whole) {
            let answer = ask(&mut session, deadline.share(hosts));
            // The only one there is need not be asked again, unless it was the connection that had ended.
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
            let mut session = Session::open(&self.hosts, &self.tls, host, deadline)?;
            match ask(&mut session, deadline) {
                Err(failure) if another_may(&failure) => Err(failure),
                // What the store says else is final.
                answer => Ok((session, answer)),
            }
        })?;
        self.hosts.begin_with(session.host());
        self.keep(session, answer)
    }

    fn keep<T>(&mut self, session: Session, answer: Result<T, Failure>) -> Result<T> {
        let answer = answer.map_err(|failure| self.hosts.error(self.hosts.named(session.host(), failure)));
        self.session = Some(session);
        answer
    }

    /// The history that a store without a clock has reported at this address.
    fn history(&self, place: &str, server: &str) -> History {
        History::of(&self.hosts.shown, &format!("{} {server}", namespace_of(place)))
    }

    /// Judges an answer by how far the store had come before the question.
    fn check_history(&self, history: &History, floor: i64, backing: &Backing, place: &str) -> Result<()> {
        let Some(number) = backing.history else { return Ok(()) };
        history.check(floor, number, &self.hosts.shown, place).map_err(|failure| self.hosts.error(failure))
    }
}

/// Returns whether another server may do what one did not: it is there, it lends the namespace, it speaks this protocol, it has found the primary.
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
        let told = self.read(&Asked::Load(namespace.to_owned(), which, floor), deadline, message::loaded)?;
        self.loaded(namespace, before, told, deadline)
    }

    fn swap(&mut self, namespace: &str, swap: &Swap) -> Result<Swapped> {
        let deadline = Deadline::of_call(self.timeout);
        let mut session = match self.session.take().filter(Session::is_whole) {
            Some(session) => session,
            None => self.dial(deadline)?,
        };
        let history = self.history(namespace, &swap.server);
        let floor = history.highest();
        let answer = session.ask(&Asked::Swap(namespace.to_owned(), swap.clone()), deadline);
        let answer = answer.and_then(|answer| message::swapped(&answer).ok_or_else(no_server));
        let told = self.keep(session, answer)?;
        self.swapped(namespace, &history, floor, told)
    }

    /// The questions of single calls, sent to one server without waiting for answers, which come in their order.
    fn ask_many(&mut self, asks: &[Ask<'_>]) -> Vec<Result<Answer>> {
        let deadline = Deadline::of_call(self.timeout);
        let session = self.session.take().filter(Session::is_whole).map_or_else(|| self.dial(deadline), Ok);
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

    #[cfg(feature = "list")]
    fn namespaces(&mut self) -> Result<Vec<String>> {
        self.read(&Asked::List, Deadline::of_call(self.timeout), Some)
    }
}

/// This process's knowledge of a namespace before a question.
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
                let told = message::swapped(&answer).ok_or_else(|| named(no_server()))?;
                self.swapped(namespace, &history, floor, told).map(Answer::Swapped)
            }
            (Ask::Load(namespace, _) | Ask::Swap(namespace, _), before) => {
                let told = message::loaded(answer).ok_or_else(|| named(no_server()))?;
                self.loaded(namespace, before, told, deadline).map(Answer::Loaded)
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
            let told = Told::new(session.host(), &backing, &loaded);
            let agree = Known::of(&self.hosts, namespace).check(&self.hosts, &self.tls, session, namespace, told, deadline);
            agree.map_err(|failure| self.hosts.error(failure))?;
        }
        // Not before: a foreign store's would be held against the one in use ever after, and many have the same identity, or none.
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
