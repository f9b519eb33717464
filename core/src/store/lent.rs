//! `store=frazil://[TOKEN@]host[:port][,host2...]`: the store that a frazil-server lends. `frazils://` is TLS.
//!
//! A server passes load and compare-and-set on to its own store, and keeps nothing. So what a lease is made of is the store's: its
//! identity, its clock, its records. Any replica that lends the same store serves as well as another, and a process that reaches the
//! store itself may share a namespace with one that goes through a server.
//!
//! # The way there
//! Redis' protocol, which the server speaks anyway: a question is an array of strings and so is its answer, at one round trip, in a few
//! hundred lines that a build without any other client has room for. HTTP would take a client of its own. `message` has the
//! words of both sides, so that they change together.
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
//!   not taken to a server that may know less. Whoever comes to another server when the first is away knows what a process knows that was
//!   started again: its own records, which every swap names whole, and how far its tags had come.
//! - **Servers that lend different stores** would hand out numbers twice. The first load of a namespace in a process asks all servers of the
//!   address, as far as they answer, and so does one by which the store has become another together with the server: where
//!   two say different things, and one of them says it before and after the other, that is `STORE_CHANGED`.

pub(crate) mod message;
mod session;
#[cfg(test)]
mod tests;

use super::hosts::{Failure, Hosts};
use super::socket::Deadline;
use super::{Loaded, Store, Swap, Swapped, Which};
use crate::entries::Entries;
use crate::error::{ErrorKind, Result};
use arc_swap::ArcSwapOption;
use message::Question as Asked;
use session::{Session, no_server};
use std::sync::Arc;
use std::time::Duration;

/// The one that the guide gives `--resp`.
const PORT: u16 = 6390;

/// What servers of one address must agree on, and who said it.
#[derive(PartialEq, Eq)]
struct Told {
    host: String,
    server: String,
    meta: Option<String>,
}

impl Told {
    fn agrees(&self, other: &Told) -> bool {
        (&self.server, &self.meta) == (&other.server, &other.meta)
    }
}

/// What was told last of a namespace at an address, by each of them in this process.
static TOLD: Entries<(String, String), ArcSwapOption<Told>> = Entries::new();

struct Lent {
    hosts: Hosts,
    timeout: Duration,
    /// `None` after an error: an answer to an older question may still be under way.
    session: Option<Session>,
}

/// # Errors
/// `SPEC`, `STORE_*`.
pub(super) fn connect(url: &str, timeout: Duration) -> Result<Box<dyn Store>> {
    let deadline = Deadline::of_call(timeout);
    let hosts = Hosts::parse(url, PORT)?;
    if hosts.login.as_ref().is_some_and(|login| !login.password.expose().is_empty()) {
        return Err(hosts.wrong("a token stands alone: write frazil://TOKEN@host, with %3A for a colon in it"));
    }
    if !hosts.path.is_empty() || !hosts.options.is_empty() {
        return Err(hosts.wrong("expected nothing after the hosts: the server knows its store"));
    }
    let mut store = Lent { hosts, timeout, session: None };
    store.session = Some(store.dial(deadline)?);
    Ok(Box::new(store))
}

impl Lent {
    fn dial(&mut self, deadline: Deadline) -> Result<Session> {
        let session = self.hosts.first_good(deadline, |host, deadline| Session::open(&self.hosts, host, deadline))?;
        self.hosts.begin_with(session.host());
        Ok(session)
    }

    /// Asks the server at hand, and the others where it does not answer.
    fn read<T>(&mut self, question: &Asked, deadline: Deadline, understand: fn(&[String]) -> Option<T>) -> Result<T> {
        let ask = |session: &mut Session, deadline| understand(&session.ask(question, deadline)?).ok_or_else(no_server);
        let hosts = self.hosts.hosts.len();
        if let Some(mut session) = self.session.take().filter(Session::is_whole) {
            let answer = ask(&mut session, deadline.share(hosts));
            let is_away = answer.as_ref().is_err_and(|failure| failure.0 == ErrorKind::StoreUnreachable);
            // The only one there is need not be asked again, unless it was the connection that had ended.
            if !is_away || (hosts == 1 && session.is_whole()) {
                return self.keep(session, answer);
            }
            self.hosts.end_with(session.host());
        }
        let (session, answer) = self.hosts.first_good(deadline, |host, deadline| {
            let mut session = Session::open(&self.hosts, host, deadline)?;
            match ask(&mut session, deadline) {
                Err(failure) if failure.0 == ErrorKind::StoreUnreachable => Err(failure),
                // What the store says else is final.
                answer => Ok((session, answer)),
            }
        })?;
        self.hosts.begin_with(session.host());
        self.keep(session, answer)
    }

    fn keep<T>(&mut self, session: Session, answer: Result<T, Failure>) -> Result<T> {
        self.session = Some(session);
        answer.map_err(|failure| self.hosts.error(failure))
    }

    /// Holds what was loaded against what other servers say.
    fn check_agreement(&mut self, namespace: &str, loaded: &Loaded, deadline: Deadline) -> Result<()> {
        let Some(session) = self.session.as_mut().filter(|_| self.hosts.hosts.len() > 1) else { return Ok(()) };
        let told = |host: &str, loaded: &Loaded| Told { host: host.to_owned(), server: loaded.server.clone(), meta: loaded.meta.clone() };
        let last = TOLD.get(&(self.hosts.shown.clone(), namespace.to_owned()));
        let mut ours = told(session.host(), loaded);
        let others: Vec<&String> = match &*last.load() {
            // What one server says of its store is the store's own affair.
            Some(before) if before.host == ours.host || before.agrees(&ours) => Vec::new(),
            Some(before) => self.hosts.hosts.iter().filter(|host| **host == before.host).collect(),
            None => self.hosts.hosts.iter().filter(|host| **host != ours.host).collect(),
        };
        let question = Asked::Load(namespace.to_owned(), Which::One(0));
        let ask = |session: &mut Session, deadline| -> Result<Told, Failure> {
            let loaded = message::loaded(&session.ask(&question, deadline)?).ok_or_else(no_server)?;
            Ok(told(session.host(), &loaded))
        };
        for (tried, host) in others.iter().enumerate() {
            // Half of the time is enough for those who are there.
            let share = deadline.share(2 * (others.len() - tried));
            // Whoever says nothing contradicts nobody.
            let theirs = Session::open(&self.hosts, host, share).and_then(|mut other| ask(&mut other, share));
            let Ok(theirs) = theirs else { continue };
            if theirs.agrees(&ours) {
                continue;
            }
            // Somebody may have written in between, or the store become another.
            let again = ask(session, deadline).map_err(|failure| self.hosts.error(failure))?;
            if again.agrees(&ours) {
                let why = format!(
                    "{} and {host} lend different stores, which would hand out the same numbers: give both the same store, \
                     or name one of them",
                    ours.host
                );
                return Err(self.hosts.error((ErrorKind::StoreChanged, why)));
            }
            ours = again;
        }
        last.store(Some(Arc::new(ours)));
        Ok(())
    }
}

impl Store for Lent {
    fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    fn load(&mut self, namespace: &str, which: Which) -> Result<Loaded> {
        let deadline = Deadline::of_call(self.timeout);
        let loaded = self.read(&Asked::Load(namespace.to_owned(), which), deadline, message::loaded)?;
        self.check_agreement(namespace, &loaded, deadline)?;
        Ok(loaded)
    }

    fn swap(&mut self, namespace: &str, swap: &Swap) -> Result<Swapped> {
        let deadline = Deadline::of_call(self.timeout);
        let mut session = match self.session.take().filter(Session::is_whole) {
            Some(session) => session,
            None => self.dial(deadline)?,
        };
        let answer = session.ask(&Asked::Swap(namespace.to_owned(), swap.clone()), deadline);
        let answer = answer.and_then(|answer| message::swapped(&answer).ok_or_else(no_server));
        self.keep(session, answer)
    }

    #[cfg(feature = "list")]
    fn namespaces(&mut self) -> Result<Vec<String>> {
        self.read(&Asked::List, Deadline::of_call(self.timeout), |names| Some(names.to_vec()))
    }
}
