//! The check that the servers of an address lend the same store.
//!
//! Once a namespace has a record, a server's statement about it identifies the server's store. The
//! statement has the store's identity, and the nonce of the record. Two servers lend different
//! stores if their statements differ, and one of them makes the same statement before and after the
//! other.
//!
//! If a server's statement is new, and no other server can be compared, there are several possible
//! causes. The server may have moved to another store, or another server may answer under the same
//! name. Or the store's identity has changed, as after a promotion, which is legitimate. The
//! *source* decides, which is equal for all servers that name the same store. A new statement is
//! accepted if this process has seen this server, with this source, lend the store in use. It is
//! also accepted if the server repeats an earlier statement about a known namespace. The source of
//! a folder is the folder itself, because a copy has the same records but is another store.

use super::super::hosts::{Failure, Hosts};
use super::super::socket::Deadline;
use super::super::{Loaded, Which};
use super::message::{self, Backing, FOLDER, StoreRequest};
use super::session::{LenderSession, no_server};
use super::tls::Tls;
use arc_swap::{ArcSwap, ArcSwapOption};
use frazil_base::append_map::AppendMap;
use frazil_base::error::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The pause before a silent server is called again. Without it, each new tag would wait for that
/// server.
pub(super) const SILENCE: Duration = Duration::from_secs(10);
/// The number of times that a busy record is read again, to check whether two servers have the same
/// one.
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

/// A server, and its source.
type Origin = (String, String);

/// The last statement about each key at an address, by any server, in this process.
static TOLD: AppendMap<(String, String), ArcSwapOption<Told>> = AppendMap::new();
/// The servers that were seen to lend each namespace at an address.
static ORIGINS: AppendMap<(String, String), ArcSwap<Vec<Origin>>> = AppendMap::new();

/// The last statement about each namespace at an address, with the place that it is about.
static PROOFS: AppendMap<(String, String), ArcSwapOption<Proof>> = AppendMap::new();

/// The time since which a server of an address is silent.
static SILENT: AppendMap<(String, String), ArcSwapOption<Instant>> = AppendMap::new();

/// This process's knowledge of a key at an address.
pub(super) struct Known {
    last: Arc<ArcSwapOption<Told>>,
    origins: Arc<ArcSwap<Vec<Origin>>>,
    proof: Arc<ArcSwapOption<Proof>>,
}

/// A statement about a place, which any server of the store in use can repeat.
struct Proof {
    place: String,
    said: Arc<Told>,
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

    /// Returns whether an origin is one of those in use. While there are none, any origin counts.
    fn knows(&self, origin: &Origin) -> bool {
        let origins = self.origins.load();
        origins.is_empty() || origins.contains(origin)
    }

    /// Checks the origin of a written record against those in use, because a copy of a folder
    /// accepts writes for that folder.
    ///
    /// # Errors
    /// `STORE_CHANGED`.
    pub(super) fn check_written(&self, host: &str, backing: &Backing) -> Result<(), Failure> {
        let is_copy = self.last().is_some_and(|last| are_two_folders(&last.source, &backing.source));
        if is_copy { Err(self.moved(host)) } else { Ok(()) }
    }

    /// Checks a loaded statement against the known ones. If none is known, compares it with the
    /// statements of other servers.
    ///
    /// # Errors
    /// `STORE_CHANGED`; `STORE_UNREACHABLE` if the server does not answer a second time.
    pub(super) fn check(
        &self,
        hosts: &Hosts,
        tls: &Tls,
        session: &mut LenderSession,
        place: &str,
        ours: Told,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let continues = |last: &Told| last.is_same_history(&ours) || (last.host == ours.host && self.knows(&ours.origin()));
        let (ours, mut origins) = match self.last() {
            Some(last) if continues(&last) => (ours, Vec::new()),
            _ => self.compare(hosts, tls, session, place, ours, deadline)?,
        };
        // Without a record nothing was compared, so the comparison is repeated later.
        if ours.meta.is_some() {
            origins.push(ours.origin());
            origins.retain(|origin| !self.origins.load().contains(origin));
            if !origins.is_empty() {
                self.origins.rcu(|known| [known.as_slice(), &origins].concat());
            }
            let said = Arc::new(ours);
            self.proof.store(Some(Arc::new(Proof { place: place.to_owned(), said: Arc::clone(&said) })));
            self.last.store(Some(said));
        }
        Ok(())
    }

    /// Calls the servers one after the other. Returns the last statement of the present server, and
    /// the origins of those that agree.
    fn compare(
        &self,
        hosts: &Hosts,
        tls: &Tls,
        session: &mut LenderSession,
        place: &str,
        mut ours: Told,
        deadline: Deadline,
    ) -> Result<(Told, Vec<Origin>), Failure> {
        let ask = |session: &mut LenderSession, deadline| statement_of(session, place, deadline);
        let mut origins = Vec::new();
        let others: Vec<&String> = hosts.hosts.iter().filter(|host| **host != ours.host).collect();
        for (tried, host) in others.iter().enumerate() {
            // Half of the time is enough for running servers.
            let share = deadline.share(2 * (others.len() - tried));
            let silent = SILENT.get(&(hosts.shown.clone(), (*host).clone()));
            if silent.load().as_ref().is_some_and(|since| since.elapsed() < SILENCE) {
                continue;
            }
            // A silent server contradicts no other.
            let note_silence = |_: &Failure| {
                if share.left().is_err() {
                    silent.store(Some(Arc::new(Instant::now())));
                }
            };
            let Ok(mut other) = LenderSession::open(hosts, tls, host, share).inspect_err(note_silence) else { continue };
            for round in 1..=ROUNDS {
                let Ok(theirs) = ask(&mut other, share).inspect_err(note_silence) else { break };
                let mut agree = theirs.is_the_same(&ours);
                if !agree {
                    let again = ask(session, deadline)?;
                    let stood_still = again.is_the_same(&ours);
                    // If not, another process has written in between, or the store's identity has
                    // changed.
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
            // The server was away until now, and this namespace is new.
            Some(proof) if statement_of(session, &proof.place, deadline)?.is_same_history(&proof.said) => Ok((ours, origins)),
            _ => Err(self.moved(&ours.host)),
        }
    }

    /// The error for a new statement that no other server confirms.
    fn moved(&self, host: &str) -> Failure {
        let how = match self.last() {
            Some(last) if last.host == host => {
                format!(
                    "{host} lends another store than before: it was started with another one, or several servers of that name lend different ones"
                )
            }
            Some(last) => format!("{host} lends another store than {} did", last.host),
            None => format!("{host} lends another store than the one that this process uses"),
        };
        let fix = "give all servers the same store (a copy is another one); if it has moved for good, stop all processes \
            that use it, and start them above what they issued: IDs with after=, the numbers of tags with start=";
        (ErrorKind::StoreChanged, format!("{how}: {fix}"))
    }
}

/// Returns a server's statement about a key.
fn statement_of(session: &mut LenderSession, place: &str, deadline: Deadline) -> Result<Told, Failure> {
    let question = StoreRequest::Load(place.to_owned(), Which::One(0), 0);
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

/// Returns the namespace in the key of a record; a tag's key begins with `NAMESPACE~TAG`.
pub(super) fn namespace_of(place: &str) -> &str {
    place.split('~').next().unwrap_or_default()
}
