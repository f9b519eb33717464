//! A simulated store that gives only the guarantees of its kind.

use frazil_store::{Key, Loaded, Swap, Swapped, Which};
use std::collections::BTreeMap;

/// The number of saved states that a replica or a dump may use.
const SNAPSHOTS: usize = 6;

/// The guarantees of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Linearizable, with a clock: PostgreSQL, the file store.
    Clocked,
    /// A durable store with an asynchronous replica, which may be promoted.
    Promoted,
    /// Linearizable, without a clock: etcd, ZooKeeper.
    Clockless,
    /// Forgets acknowledged writes: Redis.
    Lossy,
}

#[derive(Clone, Debug, Default)]
struct Records {
    meta: Option<String>,
    slots: BTreeMap<u64, String>,
}

/// The content of a server at some instant.
#[derive(Clone, Debug)]
pub(super) struct Saved(Records);

/// A server that was replaced, with its records, name and clock.
#[derive(Clone, Debug)]
struct Aside {
    records: Records,
    server: u64,
    skew_ms: i64,
}

/// A series of servers at one address.
#[derive(Clone, Debug)]
pub(super) struct SimStore {
    pub(super) kind: Kind,
    /// True if only slots can be forgotten.
    pub(super) keeps_meta: bool,
    /// The number of slots in a page.
    pub(super) page: usize,
    records: Records,
    /// The records that the last writes replaced, newest last.
    undo: Vec<Records>,
    snapshots: Vec<Records>,
    /// The present server, and the number of servers so far.
    server: u64,
    servers: u64,
    aside: Option<Aside>,
    /// The error of the present server's clock.
    skew_ms: i64,
    pub(super) reachable: bool,
}

impl SimStore {
    pub(super) fn new(kind: Kind, keeps_meta: bool) -> Self {
        SimStore {
            kind,
            keeps_meta,
            page: 5,
            records: Records::default(),
            undo: Vec::new(),
            snapshots: Vec::new(),
            server: 1,
            servers: 1,
            aside: None,
            skew_ms: 0,
            reachable: true,
        }
    }

    fn server(&self) -> String {
        format!("server-{}", self.server)
    }

    pub(super) fn has_clock(&self) -> bool {
        self.kind != Kind::Clockless
    }

    pub(super) fn load(&self, which: Which, true_ms: i64) -> Loaded {
        let slots = &self.records.slots;
        let of = |node: &u64| slots.get(node).map(|text| (*node, text.clone()));
        let asked: Vec<_> = match &which {
            Which::One(node) => of(node).into_iter().collect(),
            Which::These(nodes) => nodes.iter().filter_map(of).collect(),
            Which::Page(first) => slots.range(first..).take(self.page).map(|(node, text)| (*node, text.clone())).collect(),
        };
        let next = asked.last().filter(|_| matches!(which, Which::Page(_)) && asked.len() == self.page).map(|(node, _)| node + 1);
        Loaded {
            meta: self.records.meta.clone(),
            server: self.server(),
            time_ms: self.has_clock().then_some(true_ms + self.skew_ms),
            loses_writes: self.kind == Kind::Lossy,
            slots: asked,
            next,
        }
    }

    pub(super) fn swap(&mut self, swap: &Swap, true_ms: i64) -> Swapped {
        let record = match swap.key {
            Key::Meta => self.records.meta.as_ref(),
            Key::Slot(node) => self.records.slots.get(&node),
        };
        if self.records.meta != swap.meta || record != swap.old.as_ref() || self.server() != swap.server {
            return Swapped::Differs;
        }
        let time_ms = true_ms + self.skew_ms;
        if self.has_clock() && !(swap.earliest_ms..swap.latest_ms).contains(&time_ms) {
            return Swapped::OutOfTime(time_ms);
        }
        if self.forgets() {
            self.undo.push(self.records.clone());
        }
        match swap.key {
            Key::Meta => self.records.meta = Some(swap.new.clone()),
            Key::Slot(node) => drop(self.records.slots.insert(node, swap.new.clone())),
        }
        Swapped::Done
    }

    /// The highest bound of any record.
    pub(super) fn highest_bound(&self) -> u64 {
        let bounds = self.records.slots.iter().filter_map(|(node, text)| Some(super::Slot::parse(*node, text).ok()?.bound));
        bounds.max().unwrap_or(0)
    }

    pub(super) fn forgets(&self) -> bool {
        matches!(self.kind, Kind::Promoted | Kind::Lossy)
    }

    /// Forgets the records that the last writes replaced.
    pub(super) fn forget_history(&mut self) {
        self.undo.clear();
    }

    pub(super) fn save(&self) -> Saved {
        Saved(self.records.clone())
    }

    /// One of the earlier states, if there is one.
    pub(super) fn backup(&self, which: usize) -> Option<Saved> {
        self.snapshots.get(which % SNAPSHOTS).cloned().map(Saved)
    }

    /// The record of each number that has one.
    pub(super) fn slots(&self) -> &BTreeMap<u64, String> {
        &self.records.slots
    }

    /// Restores a backup in place. The server looks as before.
    pub(super) fn put_back(&mut self, saved: Saved) {
        self.records = saved.0;
    }

    /// Replaces the server by another one, with saved records and another clock.
    pub(super) fn restore(&mut self, saved: Saved, skew_ms: i64) {
        self.replace(saved.0);
        self.take_over(skew_ms);
    }

    /// Switches to another server of a cluster, with the same records.
    pub(super) fn turn_to(&mut self, server: u64) {
        self.server = server;
    }

    fn take_over(&mut self, skew_ms: i64) {
        self.undo.clear();
        self.servers += 1;
        self.server = self.servers;
        self.skew_ms = skew_ms;
    }

    /// Saves the present state as a replica or a dump, which may be used later.
    pub(super) fn snapshot(&mut self) {
        if self.snapshots.len() == SNAPSHOTS {
            self.snapshots.remove(0);
        }
        self.snapshots.push(self.records.clone());
    }

    /// Replaces the server by one without the last writes.
    pub(super) fn restart_without(&mut self, writes: usize, skew_ms: i64) {
        for _ in 0..writes {
            let Some(before) = self.undo.pop() else { break };
            self.replace(before);
        }
        self.take_over(skew_ms);
    }

    /// Replaces the server by one that stopped replicating some time ago.
    pub(super) fn fail_over(&mut self, which: usize, skew_ms: i64) {
        let Some(stale) = self.snapshots.get(which % SNAPSHOTS).cloned() else { return };
        self.replace(stale);
        self.take_over(skew_ms);
    }

    /// Promotes a replica without the last writes, while the primary continues.
    pub(super) fn promote(&mut self, writes: usize, skew_ms: i64) {
        self.aside = Some(Aside { records: self.records.clone(), server: self.server, skew_ms: self.skew_ms });
        self.restart_without(writes, skew_ms);
    }

    /// Switches back to the server that was replaced last, unchanged. The present server takes its
    /// place as the replaced one.
    pub(super) fn go_back(&mut self) -> bool {
        let Some(aside) = &mut self.aside else { return false };
        std::mem::swap(&mut self.records, &mut aside.records);
        std::mem::swap(&mut self.server, &mut aside.server);
        std::mem::swap(&mut self.skew_ms, &mut aside.skew_ms);
        self.undo.clear();
        true
    }

    pub(super) fn meta(&self) -> Option<&String> {
        self.records.meta.as_ref()
    }

    /// True if an incarnation was begun on the present server.
    pub(super) fn is_begun(&self) -> bool {
        self.meta().and_then(|text| super::Meta::parse(text).ok()).is_some_and(|meta| meta.server == self.server())
    }

    /// Does FLUSHALL. The server keeps its name.
    pub(super) fn wipe(&mut self) {
        self.records = Records::default();
        self.undo.clear();
    }

    /// Stores a slot's record, of any holder.
    pub(super) fn put(&mut self, node: u64, text: String) {
        self.records.slots.insert(node, text);
    }

    /// The number of slots with a record.
    pub(super) fn len(&self) -> usize {
        self.records.slots.len()
    }

    /// Removes a slot's record, as an operator may.
    pub(super) fn remove(&mut self, node: u64) {
        self.records.slots.remove(&node).expect("the slot has a record");
    }

    /// Replaces the records. A promotion keeps the namespace's first record, because without it the
    /// protocol could not notice anything.
    fn replace(&mut self, records: Records) {
        if self.keeps_meta {
            self.records.slots = records.slots;
        } else if self.kind != Kind::Promoted || records.meta.is_some() {
            self.records = records;
        }
    }
}
