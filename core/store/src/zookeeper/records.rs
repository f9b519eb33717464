//! One call: reads, compares and writes the znodes of records.

use super::super::hosts::Failure;
use super::super::limits::{ALL_RECORDS, MOST_RECORDS, too_large};
use super::super::{Key, Loaded, Swap, Swapped, Which};
use super::session::{OperationReply, no_zookeeper, refused, shown};
use super::slots::{node, page};
use super::wire::{BAD_VERSION, Create, NO_NODE, NODE_EXISTS, OK, Reader, Request, Step};
use super::{AT_ONCE, Turn, Znode, ZooKeeper};
use frazil_base::error::ErrorKind;

impl ZooKeeper {
    pub(super) fn load_alone(&self, turn: &mut Turn, namespace: &str, which: &Which) -> Result<Loaded, Failure> {
        let meta = self.path(namespace, Key::Meta);
        loop {
            let (nodes, next) = match which {
                Which::One(node) => (vec![*node], None),
                Which::These(nodes) => (nodes.to_vec(), None),
                Which::Page(first) => page(self.nodes(turn, namespace)?, *first),
            };
            let first = self.znodes(turn, &[&meta])?.pop().flatten();
            let (mut slots, mut room) = (Vec::with_capacity(nodes.len()), ALL_RECORDS);
            // The nodes are read in parts, so that only their texts are kept.
            for nodes in nodes.chunks(AT_ONCE) {
                let paths: Vec<_> = nodes.iter().map(|node| self.path(namespace, Key::Slot(*node))).collect();
                for (node, found) in nodes.iter().zip(self.znodes(turn, &paths)?) {
                    let Some(found) = found else { continue };
                    room = room.checked_sub(found.text.len()).ok_or_else(|| too_large(ALL_RECORDS))?;
                    slots.push((*node, found.text));
                }
            }
            let last = self.znodes(turn, &[&meta])?.pop().flatten();
            if changed(&first) == changed(&last) {
                return Ok(Loaded { meta: first.map(|meta| meta.text), slots, next, ..Loaded::default() });
            }
        }
    }

    pub(super) fn swap_alone(&self, turn: &mut Turn, namespace: &str, swap: &Swap) -> Result<Swapped, Failure> {
        if !fits(swap) {
            return Ok(Swapped::Differs);
        }
        let (meta, record) = (self.path(namespace, Key::Meta), self.path(namespace, swap.key));
        loop {
            let replies = self.read(turn, vec![Request::GetData(&meta), Request::GetData(&record)])?;
            let [of_meta, of_record] = replies.as_slice() else { return Err(no_zookeeper("a reply is missing")) };
            let (old_meta, old) = (found(of_meta, &meta)?, found(of_record, &record)?);
            if !is_expected(&old_meta, &old, swap) {
                return Ok(Swapped::Differs);
            }
            let steps = self.steps(&meta, &record, &old_meta, &old, swap);
            let reply = turn.open.session.ask_one(Request::Multi(&steps), turn.deadline)?;
            match self.wrote(&reply, steps.len())? {
                OK => return Ok(Swapped::Done),
                NO_NODE => self.make_parents(turn, namespace)?,
                // Another client wrote in between. Most likely the text differs, but an equal text
                // would not be a difference.
                BAD_VERSION | NODE_EXISTS => {}
                code => return Err(refused(code, &record)),
            }
        }
    }

    /// The steps of the multi that makes a swap whose records were found.
    pub(super) fn steps<'a>(
        &self,
        meta: &'a str,
        record: &'a str,
        old_meta: &Option<Znode>,
        old: &Option<Znode>,
        swap: &'a Swap,
    ) -> Vec<Step<'a>> {
        let create = |path| Create { path, data: "", access: self.access };
        let mut steps = match (old_meta, swap.key) {
            (_, Key::Meta) => vec![],
            (Some(found), _) => vec![Step::Check { path: meta, version: found.version }],
            // No operation of a multi checks for absence, but a multi can create and delete.
            (None, _) => vec![Step::Create(create(meta)), Step::Delete(meta)],
        };
        steps.push(match old {
            Some(found) => Step::SetData { path: record, data: &swap.new, version: found.version },
            None => Step::Create(Create { data: &swap.new, ..create(record) }),
        });
        steps
    }

    /// The code that results from a multi.
    pub(super) fn wrote(&self, reply: &OperationReply, steps: usize) -> Result<i32, Failure> {
        let code = match reply.code {
            OK => Reader(&reply.body).multi(steps).ok_or_else(|| no_zookeeper("a wrong answer to a multi"))?,
            code => code,
        };
        if code == OK {
            self.history.reached(reply.zxid);
        }
        Ok(code)
    }

    /// The node numbers of a namespace's slots. Other znodes there belong to other programs, and
    /// are skipped.
    fn nodes(&self, turn: &mut Turn, namespace: &str) -> Result<Vec<u64>, Failure> {
        let mut nodes = self.children(turn, &format!("{}/{namespace}/slots", self.root), node)?;
        nodes.sort_unstable();
        Ok(nodes)
    }

    /// The names below a znode that `read` accepts. None if the znode does not exist.
    pub(super) fn children<T>(&self, turn: &mut Turn, path: &str, read: fn(&str) -> Option<T>) -> Result<Vec<T>, Failure> {
        let replies = self.read(turn, vec![Request::GetChildren(path)])?;
        let Some(reply) = replies.first() else { return Err(no_zookeeper("a reply is missing")) };
        match reply.code {
            OK => {
                let names = Reader(&reply.body).names(read).ok_or_else(|| no_zookeeper("a wrong list of children"))?;
                if names.len() > MOST_RECORDS { Err(too_large(ALL_RECORDS)) } else { Ok(names) }
            }
            NO_NODE => Ok(vec![]),
            code => Err(refused(code, path)),
        }
    }
}

/// The transaction that wrote a znode.
pub(super) fn changed(found: &Option<Znode>) -> Option<i64> {
    found.as_ref().map(|found| found.changed)
}

/// Returns whether a swap is for this store.
pub(super) fn fits(swap: &Swap) -> bool {
    swap.server.is_empty() && (swap.key != Key::Meta || swap.old == swap.meta)
}

pub(super) fn is_expected(old_meta: &Option<Znode>, old: &Option<Znode>, swap: &Swap) -> bool {
    let text = |found: &Option<Znode>| found.as_ref().map(|found| found.text.clone());
    text(old_meta) == swap.meta && text(old) == swap.old
}

/// Returns a reply's znode; `None` if it does not exist.
pub(super) fn found(reply: &OperationReply, path: &str) -> Result<Option<Znode>, Failure> {
    match reply.code {
        OK => {
            let data = Reader(&reply.body).data().ok_or_else(|| no_zookeeper("a wrong znode"))?;
            let text = String::from_utf8(data.bytes.to_vec());
            let text = text.map_err(|_| (ErrorKind::StoreCorrupt, format!("the znode {path} is not UTF-8: {}", shown(data.bytes))))?;
            Ok(Some(Znode { text, changed: data.changed, version: data.version }))
        }
        NO_NODE => Ok(None),
        code => Err(refused(code, path)),
    }
}
