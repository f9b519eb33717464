//! The check that the servers of an address lend the same store, and continue to.
//!
//! What a server says of a namespace, or of a tag's place, tells its store from another once something was begun there: the store's
//! identity, and the nonce of the record. Two that differ, one of which says the same before and after the other, lend different stores.
//!
//! Alone, without another to hold it against, a server that says something new may have moved to another store, or stand for another
//! server behind the same name; or its store has become another, as after a promotion, which is the store's own affair.
//! Its source tells: that is the same for all servers that name their store alike. So what is new is taken only from a server, and
//! with a source, that this process has seen to lend what it uses; or that shows, of a place that was told before, what it said then. Of a
//! folder the source is the folder itself: a copy of one has the same records, and is another store.

use super::super::hosts::{Failure, Hosts};
use super::super::socket::Deadline;
use super::super::{Loaded, Which};
use super::message::{self, Backing, FOLDER, Question};
use super::session::{Session, no_server};
use super::tls::Tls;
use crate::append_map::AppendMap;
use crate::error::ErrorKind;
use arc_swap::{ArcSwap, ArcSwapOption};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The pause before a silent server is asked again: each new tag would wait for it.
pub(super) const SILENCE: Duration = Duration::from_secs(10);
/// The number of times that a busy record is read again, to see whether two servers have the same one.
const ROUNDS: u32 = 3;

/// A server's statement.
pub(super) struct Told {
    host: String,
    source: String,
    pub(super) server: String,
    meta: Option<String>,
}

impl Told {
    pub(super) fn new(host: &str, backing: &Backing, loaded: &Loaded) -> Self {
        Told { host: host.to_owned(), source: backing.source.clone(), server: loaded.server.clone(), meta: loaded.meta.clone() }
    }

    fn is_the_same(&self, other: &Told) -> bool {
        (&self.server, &self.meta) == (&other.server, &other.meta) && !are_two_folders(&self.source, &other.source)
    }

    /// Returns whether the record is the same, or a later one.
    fn is_same_history(&self, other: &Told) -> bool {
        (&self.server, self.nonce()) == (&other.server, other.nonce()) && !are_two_folders(&self.source, &other.source)
    }

    fn origin(&self) -> Origin {
        (self.host.clone(), self.source.clone())
    }

    fn nonce(&self) -> Option<&str> {
        let meta = self.meta.as_deref()?;
        Some(meta.split(' ').find(|word| word.starts_with("nonce=")).unwrap_or(meta))
    }
}

/// A server, and the source that it told.
type Origin = (String, String);

/// The last statement about each key at an address, by server, in this process.
static TOLD: AppendMap<(String, String), ArcSwapOption<Told>> = AppendMap::new();
/// The servers that were seen to lend each namespace at an address.
static ORIGINS: AppendMap<(String, String), ArcSwap<Vec<Origin>>> = AppendMap::new();

/// The key of a namespace at an address of the last statement.
static PROOFS: AppendMap<(String, String), ArcSwapOption<Proof>> = AppendMap::new();

/// Since when a server of an address is silent.
static SILENT: AppendMap<(String, String), ArcSwapOption<Instant>> = AppendMap::new();

/// This process's knowledge of a key at an address.
pub(super) struct Known {
    last: Arc<ArcSwapOption<Told>>,
    origins: Arc<ArcSwap<Vec<Origin>>>,
    proof: Arc<ArcSwapOption<Proof>>,
}

/// The statement that a server of the store in use repeats with every answer.
struct Proof {
    place: String,
    told: Arc<Told>,
}

impl Known {
    pub(super) fn of(hosts: &Hosts, place: &str) -> Self {
        let at = |name: &str| (hosts.shown.clone(), name.to_owned());
        let namespace = at(namespace_of(place));
        Known { last: TOLD.get(&at(place)), origins: ORIGINS.get(&namespace), proof: PROOFS.get(&namespace) }
    }

    pub(super) fn last(&self) -> Option<Arc<Told>> {
        self.last.load_full()
    }

    /// Returns whether an origin is one of those in use; the first one becomes so.
    fn knows(&self, origin: &Origin) -> bool {
        let origins = self.origins.load();
        origins.is_empty() || origins.contains(origin)
    }

    /// Holds what was written against what is known: a copy of a folder takes a write of whoever knows the folder.
    ///
    /// # Errors
    /// `STORE_CHANGED`.
    pub(super) fn check_written(&self, host: &str, backing: &Backing) -> Result<(), Failure> {
        let is_copy = self.last().is_some_and(|last| are_two_folders(&last.source, &backing.source));
        if is_copy { Err(self.moved(host)) } else { Ok(()) }
    }

    /// Holds what was loaded against what is known, and where that says nothing of it against what other servers say.
    ///
    /// # Errors
    /// `STORE_CHANGED`; `STORE_UNREACHABLE` where the server does not answer once more.
    pub(super) fn check(
        &self,
        hosts: &Hosts,
        tls: &Tls,
        session: &mut Session,
        place: &str,
        ours: Told,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let goes_on = |last: &Told| last.is_same_history(&ours) || (last.host == ours.host && self.knows(&ours.origin()));
        let (ours, mut origins) = match self.last() {
            Some(last) if goes_on(&last) => (ours, Vec::new()),
            _ => self.compare(hosts, tls, session, place, ours, deadline)?,
        };
        // Where nothing was begun nothing was compared, so that is asked again.
        if ours.meta.is_some() {
            origins.push(ours.origin());
            origins.retain(|origin| !self.origins.load().contains(origin));
            if !origins.is_empty() {
                self.origins.rcu(|known| [known.as_slice(), &origins].concat());
            }
            let told = Arc::new(ours);
            self.proof.store(Some(Arc::new(Proof { place: place.to_owned(), told: Arc::clone(&told) })));
            self.last.store(Some(told));
        }
        Ok(())
    }

    /// Asks the servers one after the other. Returns what the one at hand has said at last, and the origins of those that agree.
    fn compare(
        &self,
        hosts: &Hosts,
        tls: &Tls,
        session: &mut Session,
        place: &str,
        mut ours: Told,
        deadline: Deadline,
    ) -> Result<(Told, Vec<Origin>), Failure> {
        let ask = |session: &mut Session, deadline| told_by(session, place, deadline);
        let mut origins = Vec::new();
        let others: Vec<&String> = hosts.hosts.iter().filter(|host| **host != ours.host).collect();
        for (tried, host) in others.iter().enumerate() {
            // Half of the time is enough for those who are there.
            let share = deadline.share(2 * (others.len() - tried));
            let silent = SILENT.get(&(hosts.shown.clone(), (*host).clone()));
            if silent.load().as_ref().is_some_and(|since| since.elapsed() < SILENCE) {
                continue;
            }
            // Whoever says nothing contradicts nobody.
            let note_silence = |_: &Failure| {
                if share.left().is_err() {
                    silent.store(Some(Arc::new(Instant::now())));
                }
            };
            let Ok(mut other) = Session::open(hosts, tls, host, share).inspect_err(note_silence) else { continue };
            for round in 1..=ROUNDS {
                let Ok(theirs) = ask(&mut other, share).inspect_err(note_silence) else { break };
                let mut agree = theirs.is_the_same(&ours);
                if !agree {
                    let again = ask(session, deadline)?;
                    let stood_still = again.is_the_same(&ours);
                    // Else somebody has written in between, or the store has become another.
                    agree = !stood_still && again.is_same_history(&theirs);
                    ours = again;
                    if stood_still || (!agree && round == ROUNDS) {
                        return Err(different(&ours.host, host));
                    }
                }
                if agree {
                    origins.push(theirs.origin());
                    break;
                }
            }
        }
        if self.knows(&ours.origin()) || origins.iter().any(|origin| self.knows(origin)) {
            return Ok((ours, origins));
        }
        match self.proof.load_full().filter(|proof| proof.place != place) {
            // It was away until now, and this place is new.
            Some(proof) if told_by(session, &proof.place, deadline)?.is_same_history(&proof.told) => Ok((ours, origins)),
            _ => Err(self.moved(&ours.host)),
        }
    }

    /// The refusal of what a server says, and nobody confirms.
    fn moved(&self, host: &str) -> Failure {
        let how = match self.last() {
            Some(last) if last.host == host => {
                format!(
                    "{host} lends another store than before: it was started with another one, or servers behind that name lend different ones"
                )
            }
            Some(last) => format!("{host} lends another store than {} did", last.host),
            None => format!("{host} lends another store than the one that this process uses"),
        };
        let fix = "give all servers the same store, of which a copy is another one; where it has moved for good, stop all processes \
            that use it, and start them above what they issued: IDs with after=, the numbers of tags with start=";
        (ErrorKind::StoreChanged, format!("{how}: {fix}"))
    }
}

/// Returns a server's statement about a key.
fn told_by(session: &mut Session, place: &str, deadline: Deadline) -> Result<Told, Failure> {
    let question = Question::Load(place.to_owned(), Which::One(0), 0);
    let (backing, loaded) = message::loaded(session.ask(&question, deadline)?).ok_or_else(no_server)?;
    Ok(Told::new(session.host(), &backing, &loaded))
}

/// Returns whether two sources are different folders.
fn are_two_folders(one: &str, other: &str) -> bool {
    one != other && one.starts_with(FOLDER) && other.starts_with(FOLDER)
}

fn different(one: &str, other: &str) -> Failure {
    let why = format!(
        "{one} and {other} lend different stores, which would hand out the same numbers: give both the same store, or name one of them"
    );
    (ErrorKind::StoreChanged, why)
}

/// The namespace that a tag's place belongs to.
pub(super) fn namespace_of(place: &str) -> &str {
    place.split('~').next().unwrap_or_default()
}
