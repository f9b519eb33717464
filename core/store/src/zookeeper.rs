//! `store=zookeeper://[user:password@]host[:port][,host2...][/chroot]`: records as persistent znodes of ZooKeeper.
//!
//! ```text
//! CHROOT/frazil/NAMESPACE/meta
//! CHROOT/frazil/NAMESPACE/slots/00000000000000000007     the node number, in 20 digits
//! ```
//! A swap reads the two znodes, and compares their texts. Then one multi checks that their versions are unchanged,
//! and writes all or nothing. (Versions begin again if another program deletes and remakes the znode in between.
//! frazil deletes none.) No znode is ephemeral, so the end of a session removes nothing.
//!
//! Reads follow a `sync`, which brings the answering server up to date. Without it, the answer could be older than
//! a write that the caller knows. The meta record is read before the slots, and again after them. The slots are
//! read one after the other, because each is guarded by its own swap.
//!
//! ZooKeeper has no name of an ensemble, so `server` is empty. Its transaction numbers never go back within a
//! history. They show a restored ensemble only until it has caught up. Each session is a transaction, too. With a
//! user and a password, the new znodes belong to that user alone (digest).
//!
//! The messages are implemented here, and not taken from a crate. The maintained crates drive their sockets from a
//! thread that the whole process shares, and a forked child does not have that thread. Also, a store that is
//! called every few seconds should not have to keep a session alive in the background.

mod records;
mod session;
mod slots;
mod together;
mod wire;

use super::history::History;
use super::hosts::{Failure, Hosts};
use super::socket::Deadline;
use super::{Answer, Ask, Key, Loaded, Store, Swap, Swapped, Which};
use frazil_base::error::{ErrorKind, Result};
use records::found;
use session::{OperationReply, Session, TOGETHER, no_zookeeper, refused};
use std::time::Duration;
use wire::{Access, Create, NO_NODE, NODE_EXISTS, OK, Request};

/// The number of znodes that are read after one sync, before their content is extracted from the
/// answers.
const AT_ONCE: usize = TOGETHER - 1;

/// A store, and a session with one of its servers.
struct ZooKeeper {
    hosts: Hosts,
    /// The path of `frazil`.
    root: String,
    access: Access,
    timeout: Duration,
    /// `None` after an error, because replies to older requests may still arrive.
    session: Option<Open>,
    history: History,
}

/// A session, and the progress of the history before it was opened.
struct Open {
    session: Session,
    born: i64,
}

/// One call of the store.
struct Turn {
    open: Open,
    /// The time by which the call must have ended.
    deadline: Deadline,
    /// The highest transaction number seen before the call. A lower answer shows that the server has lost history.
    floor: i64,
    /// The namespace, or a tag's place.
    place: String,
}

/// A znode that was read.
struct Znode {
    text: String,
    changed: i64,
    version: i32,
}

/// # Errors
/// `SPEC`, `STORE_*`.
pub(super) fn connect(url: &str, timeout: Duration) -> Result<Box<dyn Store>> {
    let deadline = Deadline::of_call(timeout);
    let hosts = Hosts::parse(url, 2181)?.shuffled();
    if !hosts.options.is_empty() {
        return Err(hosts.wrong("zookeeper:// has no options: expected nothing, or /chroot, after the host"));
    }
    if !hosts.path.is_empty() && hosts.path.split('/').any(|part| matches!(part, "" | "." | "..") || part.contains(char::is_control)) {
        return Err(hosts.wrong("the path is not a znode's: no part of it may be empty, . or .."));
    }
    let chroot = if hosts.path.is_empty() { String::new() } else { format!("/{}", hosts.path) };
    let access = if hosts.login.is_some() { Access::Creator } else { Access::Everybody };
    let history = History::of(&hosts.shown, "");
    let mut store = ZooKeeper { root: format!("{chroot}/frazil"), access, timeout, session: None, history, hosts };
    let mut open = store.open(deadline)?;
    if !chroot.is_empty() {
        let replies = open.session.ask(&[Request::Sync, Request::Exists(&chroot)], deadline);
        let there = replies.and_then(|replies| match replies.last().map(|reply| reply.code) {
            Some(NO_NODE) => Err((ErrorKind::StoreUnsuitable, format!("the znode {chroot} does not exist: create it, or name another"))),
            Some(code) if code != OK => Err(refused(code, &chroot)),
            _ => Ok(()),
        });
        there.map_err(|failure| store.hosts.error(failure))?;
    }
    store.session = Some(open);
    Ok(Box::new(store))
}

impl ZooKeeper {
    fn open(&self, deadline: Deadline) -> Result<Open> {
        let born = self.history.highest();
        let session = self.hosts.first_good(deadline, |host, deadline| Session::open(host, self.hosts.login.as_ref(), deadline))?;
        Ok(Open { session, born })
    }

    /// Works with the session, which is kept only if the work succeeds.
    fn with<T>(&mut self, place: &str, work: impl FnOnce(&Self, &mut Turn) -> Result<T, Failure>) -> Result<T> {
        let deadline = Deadline::of_call(self.timeout);
        // No request of this call was sent yet, so a new session repeats none.
        let open = match self.session.take().filter(|open| !open.session.is_old()) {
            Some(open) => open,
            None => self.open(deadline)?,
        };
        let mut turn = Turn { open, deadline, floor: self.history.highest(), place: place.to_owned() };
        let done = work(self, &mut turn).map_err(|failure| self.hosts.error(failure))?;
        self.session = Some(turn.open);
        Ok(done)
    }

    /// Reads after a sync, and checks that the server belongs to the history that this process
    /// knows.
    fn read(&self, turn: &mut Turn, requests: Vec<Request<'_>>) -> Result<Vec<OperationReply>, Failure> {
        let requests: Vec<_> = [Request::Sync].into_iter().chain(requests).collect();
        let mut replies = turn.open.session.ask(&requests, turn.deadline)?;
        let sync = replies.remove(0);
        if sync.code != OK {
            return Err(refused(sync.code, "sync"));
        }
        // Opening a session needs a majority, which knows everything that was acknowledged before.
        self.history.check(turn.open.born, sync.zxid, &self.hosts.shown, &turn.place)?;
        if sync.zxid < turn.floor {
            // A leader may not know yet that it was replaced.
            return Err((ErrorKind::StoreUnreachable, "this server is older than what another one has answered".into()));
        }
        Ok(replies)
    }

    /// Reads znodes. Some of them may not exist.
    fn znodes(&self, turn: &mut Turn, paths: &[impl AsRef<str>]) -> Result<Vec<Option<Znode>>, Failure> {
        let replies = self.read(turn, paths.iter().map(|path| Request::GetData(path.as_ref())).collect())?;
        if replies.len() != paths.len() {
            return Err(no_zookeeper("a reply is missing"));
        }
        replies.into_iter().zip(paths).map(|(reply, path)| found(&reply, path.as_ref())).collect()
    }

    fn path(&self, namespace: &str, key: Key) -> String {
        match key {
            Key::Meta => format!("{}/{namespace}/meta", self.root),
            Key::Slot(node) => format!("{}/{namespace}/slots/{node:020}", self.root),
        }
    }

    /// Makes the znodes above the records. Other processes may do so at the same time.
    fn make_parents(&self, turn: &mut Turn, namespace: &str) -> Result<(), Failure> {
        let paths = [self.root.clone(), format!("{}/{namespace}", self.root), format!("{}/{namespace}/slots", self.root)];
        for path in &paths {
            let reply = turn.open.session.ask_one(Request::Create(Create { path, data: "", access: self.access }), turn.deadline)?;
            if ![OK, NODE_EXISTS].contains(&reply.code) {
                return Err(refused(reply.code, path));
            }
        }
        Ok(())
    }

    fn check(&self, namespace: &str) -> Result<()> {
        if matches!(namespace, "." | "..") {
            let why = format!("namespace={namespace}: ZooKeeper has no znodes of that name, choose another");
            return Err(self.hosts.error((ErrorKind::Spec, why)));
        }
        Ok(())
    }
}

impl Store for ZooKeeper {
    fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    fn load(&mut self, namespace: &str, which: Which) -> Result<Loaded> {
        self.check(namespace)?;
        self.with(namespace, |store, turn| store.load_alone(turn, namespace, &which))
    }

    fn swap(&mut self, namespace: &str, swap: &Swap) -> Result<Swapped> {
        self.check(namespace)?;
        self.with(namespace, |store, turn| store.swap_alone(turn, namespace, swap))
    }

    fn ask_many(&mut self, asks: &[Ask<'_>]) -> Vec<Result<Answer>> {
        self.ask_together(asks)
    }

    #[cfg(feature = "operator")]
    fn history(&self) -> Option<i64> {
        Some(self.history.highest())
    }

    #[cfg(feature = "operator")]
    fn namespaces(&mut self) -> Result<Vec<String>> {
        self.with("default", |store, turn| {
            let names = store.children(turn, &store.root, |name| Some(name.to_owned()))?;
            let mut begun = Vec::new();
            for names in names.chunks(AT_ONCE) {
                let paths: Vec<_> = names.iter().map(|name| store.path(name, Key::Meta)).collect();
                let replies = store.read(turn, paths.iter().map(|path| Request::Exists(path)).collect())?;
                begun.extend(names.iter().zip(replies).filter(|(_, reply)| reply.code == OK).map(|(name, _)| name.clone()));
            }
            Ok(begun)
        })
    }
}

#[cfg(test)]
mod tests;
