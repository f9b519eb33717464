//! `store=etcd://[user:password@]host[:port][,host2...]`: records as keys of etcd, through its JSON gateway.
//!
//! `etcds://` uses TLS, with the system's root certificates or `?ca=FILE`. If the cluster requires a client's
//! certificate, add `cert=FILE&key=FILE`.
//!
//! ```text
//! /frazil/NAMESPACE/meta
//! /frazil/NAMESPACE/slot/00000000000000000007     the node number, in 20 digits
//! ```
//! No key has a lease of etcd, because a lease that ended with its owner would also remove the bound. A swap is
//! one transaction that compares the values themselves, and not the revisions at which they were written. Every
//! version of a record differs from all earlier ones. So the expected value needs no read before the write, and
//! stays valid across connections. Reads need the cluster's majority.
//!
//! `server` is the cluster's ID. A transaction cannot compare it. So it is compared with the ID that the
//! connection saw last, and again with the ID in the transaction's answer. A restored cluster, and one with the
//! same members' URLs and `--initial-cluster-token`, have the same ID. The revision distinguishes them, because
//! it never goes back within a history.

mod answer;
mod gateway;

use super::history::History;
use super::hosts::{Hosts, said};
use super::socket::Deadline;
use super::{Answer as Answered, Ask, Key, Loaded, PAGE, Store, Swap, Swapped, Which};
use answer::{AtMost, Bytes, GatewayAnswer, KeyValue, Response};
use base64::prelude::{BASE64_STANDARD, Engine};
use frazil_base::error::{Error, ErrorKind, Result};
use gateway::Gateway;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;

const TRANSACTION: &str = "/v3/kv/txn";

/// A connection to a cluster.
struct Etcd {
    gateway: Gateway,
    timeout: Duration,
    /// The ID of the cluster that answered last.
    cluster: String,
    history: History,
    /// The most operations of a transaction: [`MOST_RANGES`], until the server refuses that many.
    most: usize,
}

/// # Errors
/// `SPEC`, `STORE_*`.
pub(super) fn connect(url: &str, timeout: Duration) -> Result<Box<dyn Store>> {
    let deadline = Deadline::of_call(timeout);
    let hosts = Hosts::parse(url, 2379)?.shuffled();
    if !hosts.path.is_empty() {
        return Err(hosts.wrong("etcd has no databases: expected nothing, or ?ca=FILE, after the host"));
    }
    // Reads a key of an impossible namespace, because a member without a majority does not answer.
    let (gateway, answer) = Gateway::open(hosts, TRANSACTION, &reading(&[range("/frazil/?")]), deadline)?;
    let (cluster, revision) = header(&gateway, &answer)?;
    let history = History::of(gateway.address(), &cluster);
    history.reached(revision);
    Ok(Box::new(Etcd { gateway, timeout, cluster, history, most: MOST_RANGES }))
}

impl Etcd {
    /// Calls the server, and checks that the answer belongs to the history that this process knows.
    fn ask(&mut self, namespace: &str, question: &Value) -> Result<(String, GatewayAnswer)> {
        self.ask_until(Deadline::of_call(self.timeout), namespace, question)
    }

    fn ask_until(&mut self, deadline: Deadline, namespace: &str, question: &Value) -> Result<(String, GatewayAnswer)> {
        let floor = self.history.highest();
        let answer = self.gateway.ask(TRANSACTION, question, deadline)?;
        let (cluster, revision) = header(&self.gateway, &answer)?;
        if cluster == self.cluster {
            let checked = self.history.check(floor, revision, self.gateway.address(), namespace);
            checked.map_err(|(kind, text)| self.gateway.wrong(kind, &text))?;
        } else {
            self.history = History::of(self.gateway.address(), &cluster);
            self.cluster.clone_from(&cluster);
        }
        Ok((cluster, answer))
    }

    /// Reads ranges at one revision, even more of them than one transaction may have.
    fn read(&mut self, namespace: &str, mut ranges: Vec<Value>) -> Result<(String, Vec<(String, String)>)> {
        let (mut server, mut records, deadline) = (None, Vec::new(), Deadline::of_call(self.timeout));
        while !ranges.is_empty() {
            let count = ranges.len().min(self.most);
            let (from, answer) = match self.ask_until(deadline, namespace, &reading(&ranges[..count])) {
                Err(error) if count > 1 && gateway::is_too_many(&error) => {
                    self.most = count / 2;
                    continue;
                }
                asked => asked?,
            };
            ranges.drain(..count);
            let revision = answer.header.revision.as_ref().map(|revision| revision.0.clone());
            records.extend(self.records(answer.responses)?);
            match &server {
                None => ranges.iter_mut().for_each(|range| range["revision"] = json!(revision)),
                Some(server) if *server != from => {
                    return Err(self.gateway.wrong(ErrorKind::StoreUnreachable, "another cluster answers now"));
                }
                Some(_) => {}
            }
            server = Some(from);
        }
        Ok((server.unwrap_or_default(), records))
    }

    fn loaded(&self, namespace: &str, which: &Which, server: String, records: Vec<(String, String)>) -> Result<Loaded> {
        let (meta, mut loaded, mut listed) = (key(namespace, Key::Meta), Loaded { server, ..Loaded::default() }, 0);
        for (name, text) in records {
            if name == meta {
                loaded.meta = Some(text);
                continue;
            }
            listed += 1;
            loaded.slots.extend(node(namespace, &name).map(|node| (node, text)));
        }
        // A page can be full of keys although some of them are not slots.
        if matches!(which, Which::Page(_)) && listed == PAGE {
            let Some((last, _)) = loaded.slots.last() else { return Err(self.unreadable("another program's keys are among the slots")) };
            loaded.next = last.checked_add(1);
        }
        Ok(loaded)
    }

    fn unreadable(&self, what: &str) -> Error {
        self.gateway.wrong(ErrorKind::StoreCorrupt, what)
    }

    /// The keys and texts of an answer's ranges.
    fn records(&self, responses: Option<AtMost<MOST_RANGES, Response>>) -> Result<Vec<(String, String)>> {
        let ranges = responses.into_iter().flat_map(|responses| responses.0).filter_map(|response| response.response_range?.kvs);
        let text = |bytes: Option<Bytes>| match bytes {
            // JSON omits an empty value.
            None => Some(String::new()),
            Some(Bytes(bytes)) => String::from_utf8(bytes?).ok(),
        };
        let read = |KeyValue { key, value }| {
            let key = text(key).ok_or_else(|| self.unreadable("a key below /frazil/ is not UTF-8"))?;
            let value = text(value).ok_or_else(|| self.unreadable(&format!("the value of the key {} is not UTF-8", said(&key))))?;
            Ok((key, value))
        };
        ranges.flat_map(|kvs| kvs.0).map(read).collect()
    }

    /// Makes calls in one transaction. A part whose comparison fails leaves the others as they are.
    fn transact(&mut self, deadline: Deadline, asks: &[Ask<'_>]) -> Result<Vec<Result<Answered>>> {
        let fits = |ask: &Ask<'_>| matches!(ask, Ask::Load(..)) || matches!(ask, Ask::Swap(_, swap) if self.fits(swap));
        let fit: Vec<_> = asks.iter().map(fits).collect();
        let part = |(ask, fits): (&Ask<'_>, &bool)| match *ask {
            _ if !fits => json!({ "success": [] }),
            Ask::Load(namespace, node) => reading(&[range(&key(namespace, Key::Meta)), range(&key(namespace, Key::Slot(node)))]),
            Ask::Swap(namespace, swap) => writing(namespace, swap),
        };
        let parts: Vec<_> = asks.iter().zip(&fit).map(|asked| json!({ "request_txn": part(asked) })).collect();
        let (cluster, answer) = self.ask_until(deadline, asks[0].namespace(), &json!({ "success": parts }))?;
        let parts = answer.responses.map_or_else(Vec::new, |responses| responses.0);
        if parts.len() != asks.len() {
            return Err(self.unreadable(&format!("a transaction of {} parts has {} answers", asks.len(), parts.len())));
        }
        let answer = |((ask, fits), part): ((&Ask<'_>, bool), Response)| {
            let part = part.response_txn.ok_or_else(|| self.unreadable("a part of a transaction has no answer"))?;
            Ok(match *ask {
                // The answer has the range of the meta record, and that of the slot. A missing
                // range does not mean a missing record.
                Ask::Load(namespace, node) => {
                    let two = part.responses.filter(|ranges| ranges.0.len() == 2);
                    let two = two.ok_or_else(|| self.unreadable("a part of a transaction has not two ranges"))?;
                    Answered::Loaded(self.loaded(namespace, &Which::One(node), cluster.clone(), self.records(Some(two))?)?)
                }
                Ask::Swap(..) if !fits => Answered::Swapped(Swapped::Differs),
                Ask::Swap(_, swap) => Answered::Swapped(self.swapped(part.succeeded, &cluster, swap)?),
            })
        };
        Ok(asks.iter().zip(fit).zip(parts).map(answer).collect())
    }

    /// Returns whether a swap is for this cluster.
    fn fits(&self, swap: &Swap) -> bool {
        swap.server == self.cluster && (swap.key != Key::Meta || swap.old == swap.meta)
    }

    fn swapped(&self, succeeded: Option<bool>, cluster: &str, swap: &Swap) -> Result<Swapped> {
        match (succeeded.unwrap_or(false), cluster == swap.server) {
            (false, _) => Ok(Swapped::Differs),
            (true, true) => Ok(Swapped::Done),
            (true, false) => {
                let why = format!("the cluster {cluster} answered a write that was meant for the cluster {}", swap.server);
                Err(self.gateway.wrong(ErrorKind::StoreChanged, &why))
            }
        }
    }
}

impl Store for Etcd {
    fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    fn load(&mut self, namespace: &str, which: Which) -> Result<Loaded> {
        let meta = key(namespace, Key::Meta);
        let slot = |node| key(namespace, Key::Slot(node));
        let ranges = match &which {
            Which::One(node) => vec![range(&meta), range(&slot(*node))],
            Which::These(nodes) => [range(&meta)].into_iter().chain(nodes.iter().map(|node| range(&slot(*node)))).collect(),
            Which::Page(first) => {
                // The key ends before ':', which follows '9'. Other keys among the digits are rare.
                let end = base64(&format!("/frazil/{namespace}/slot/:"));
                vec![range(&meta), json!({ "key": base64(&slot(*first)), "range_end": end, "limit": PAGE })]
            }
        };
        let (server, records) = self.read(namespace, ranges)?;
        self.loaded(namespace, &which, server, records)
    }

    fn swap(&mut self, namespace: &str, swap: &Swap) -> Result<Swapped> {
        if !self.fits(swap) {
            return Ok(Swapped::Differs);
        }
        let (cluster, answer) = self.ask(namespace, &writing(namespace, swap))?;
        self.swapped(answer.succeeded, &cluster, swap)
    }

    /// Makes calls by transactions that contain transactions.
    fn ask_many(&mut self, asks: &[Ask<'_>]) -> Vec<Result<Answered>> {
        let (mut answers, deadline) = (Vec::with_capacity(asks.len()), Deadline::of_call(self.timeout));
        while answers.len() < asks.len() {
            let mut keys = HashSet::new();
            // A transaction must not put a key twice.
            let is_new = |ask: &&Ask<'_>| matches!(ask, Ask::Load(..)) || keys.insert(key(ask.namespace(), ask.key()));
            let left = &asks[answers.len()..];
            // The operations within nested transactions count, too.
            let count = left.iter().take((self.most / 2).max(1)).take_while(is_new).count();
            match self.transact(deadline, &left[..count]) {
                Ok(made) => answers.extend(made),
                Err(error) if count > 1 && gateway::is_too_many(&error) => self.most = count,
                Err(error) => answers.resize(asks.len(), Err(error)),
            }
        }
        answers
    }

    #[cfg(feature = "operator")]
    fn history(&self) -> Option<i64> {
        Some(self.history.highest())
    }

    #[cfg(feature = "operator")]
    fn namespaces(&mut self) -> Result<Vec<String>> {
        let (mut names, mut from) = (Vec::new(), "/frazil/".to_owned());
        loop {
            let page = [json!({ "key": base64(&from), "range_end": base64("/frazil0"), "keys_only": true, "limit": PAGE })];
            let (_, answer) = self.ask("default", &reading(&page))?;
            let keys: Vec<_> = self.records(answer.responses)?.into_iter().map(|(key, _)| key).collect();
            names.extend(keys.iter().filter_map(|key| key.strip_prefix("/frazil/")?.strip_suffix("/meta").map(str::to_owned)));
            let Some(last) = keys.last() else { return Ok(names) };
            // Slots come after the namespace's first record. `0` is the character after `/`.
            let slot = last.strip_prefix("/frazil/").and_then(|key| key.split_once('/')).filter(|(_, key)| key.starts_with("slot/"));
            from = slot.map_or_else(|| format!("{last}\0"), |(namespace, _)| format!("/frazil/{namespace}0"));
        }
    }
}

/// The transaction of a swap.
fn writing(namespace: &str, swap: &Swap) -> Value {
    let (meta, record) = (key(namespace, Key::Meta), key(namespace, swap.key));
    let mut compare = vec![equal(&meta, swap.meta.as_deref())];
    if swap.key != Key::Meta {
        compare.push(equal(&record, swap.old.as_deref()));
    }
    json!({ "compare": compare, "success": [{ "request_put": { "key": base64(&record), "value": base64(&swap.new) } }] })
}

fn base64(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}

fn key(namespace: &str, key: Key) -> String {
    match key {
        Key::Meta => format!("/frazil/{namespace}/meta"),
        Key::Slot(node) => format!("/frazil/{namespace}/slot/{node:020}"),
    }
}

/// The node number of a slot's key. Other keys there belong to other programs, and are skipped.
fn node(namespace: &str, name: &str) -> Option<u64> {
    let digits = name.strip_prefix("/frazil/")?.strip_prefix(namespace)?.strip_prefix("/slot/")?;
    digits.parse().ok().filter(|_| digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn range(key: &str) -> Value {
    json!({ "key": base64(key) })
}

/// The most ranges of a transaction by a server's default (`--max-txn-ops`).
const MOST_RANGES: usize = 128;

/// Returns the transaction that reads several ranges at one revision.
fn reading(ranges: &[Value]) -> Value {
    let success: Vec<_> = ranges.iter().map(|range| json!({ "request_range": range })).collect();
    json!({ "success": success })
}

/// Compares a key's whole text. A missing key equals no text, not even an empty one.
fn equal(key: &str, text: Option<&str>) -> Value {
    match text {
        Some(text) => json!({ "key": base64(key), "target": "VALUE", "result": "EQUAL", "value": base64(text) }),
        None => json!({ "key": base64(key), "target": "CREATE", "result": "EQUAL", "create_revision": "0" }),
    }
}

/// The cluster's ID and its revision.
fn header(gateway: &Gateway, answer: &GatewayAnswer) -> Result<(String, i64)> {
    let (cluster, revision) = (&answer.header.cluster_id, &answer.header.revision);
    let found = cluster.as_ref().zip(revision.as_ref().and_then(|revision| revision.0.parse().ok()));
    let found = found.map(|(cluster, revision)| (cluster.0.clone(), revision));
    found.ok_or_else(|| gateway.wrong(ErrorKind::StoreUnsuitable, "an answer without a cluster ID and a revision is not etcd's"))
}

#[cfg(test)]
mod tests;
