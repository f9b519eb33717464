//! Requests to a server that lends its store, and their answers: lists of texts.
//!
//! ```text
//! LOAD NAMESPACE MS NODE[,NODE]...|page:FIRST [FLOOR]     SOURCE *|HISTORY SERVER *|TIME keeps|forgets META [NODE RECORD]... [next FIRST]
//! SWAP NAMESPACE MS SERVER meta|NODE OLD META NEW EARLIEST LATEST        SOURCE *|HISTORY done | differs | late TIME
//! LIST MS                                      [NAMESPACE]...
//! ```
//! MS is the time that the sender waits. FLOOR is the highest HISTORY that the store has reported
//! to the sender. OLD and META are `-`, or `+` and the record. Times are Unix ms. SOURCE and
//! HISTORY: [`Backing`].

use super::super::{Key, Loaded, NODES_END, Swap, Swapped, Which};
use frazil_base::error::{Error, ErrorKind};
use std::time::Duration;

/// The command before a request.
pub const COMMAND: &str = "FRAZIL.STORE";

/// The refusal of words that are not a request.
pub const FORM: &str = "FRAZIL.STORE takes LOAD, SWAP or LIST, as frazil:// sends them";

/// The first words of a busy store's refusal. The client may retry soon.
pub const BUSY: &str = "busy: ";

/// The refusal of a busy server, or a busy store. The client retries as long as its opener waits.
pub fn busy(why: &str) -> Error {
    Error::new(ErrorKind::StoreUnreachable, format!("{BUSY}{why}")).retry_soon()
}

/// The prefix of a source that is the folder itself, not only its name.
pub const FOLDER: &str = "folder-";
/// The prefix of the beginning of a page, in a request and in an answer.
const PAGE: &str = "page:";
const NEXT: &str = "next";
/// A limit above every clock's time, in Unix ms, so that sums with a time do not overflow.
const LATEST: i64 = 1 << 53;

/// The state of a server's store before it answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backing {
    /// The name that all servers of one store share, or the identity of a folder.
    pub source: String,
    /// [`Store::history`](super::super::Store::history).
    pub history: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreRequest {
    /// A load, with the floor; 0 if there is none.
    Load(String, Which, i64),
    Swap(String, Swap),
    List,
}

impl StoreRequest {
    /// The words of the request, with the time that the client waits.
    pub fn words(&self, left: Duration) -> Vec<String> {
        let ms = left.as_millis().to_string();
        match self {
            StoreRequest::Load(namespace, which, floor) => {
                let which = match which {
                    Which::One(node) => node.to_string(),
                    Which::These(nodes) => nodes.iter().map(u64::to_string).collect::<Vec<_>>().join(","),
                    Which::Page(first) => format!("{PAGE}{first}"),
                };
                let floor = (*floor > 0).then(|| floor.to_string());
                ["LOAD".to_owned(), namespace.clone(), ms, which].into_iter().chain(floor).collect()
            }
            StoreRequest::Swap(namespace, swap) => {
                let Swap { meta, server, key, old, new, earliest_ms, latest_ms } = swap;
                let key = match key {
                    Key::Meta => "meta".to_owned(),
                    Key::Slot(node) => node.to_string(),
                };
                let (old, meta, new) = (optional(old.as_ref()), optional(meta.as_ref()), new.clone());
                let (earliest, latest) = (earliest_ms.to_string(), latest_ms.to_string());
                vec!["SWAP".to_owned(), namespace.clone(), ms, server.clone(), key, old, meta, new, earliest, latest]
            }
            StoreRequest::List => vec!["LIST".to_owned(), ms],
        }
    }

    /// Parses a request, and the time that its sender waits.
    pub fn parse(words: &[&str]) -> Option<(Self, Duration)> {
        let (question, ms) = match *words {
            ["LOAD", namespace, ms, which, ref floor @ ..] => {
                let which = match which.strip_prefix(PAGE) {
                    Some(first) => Which::Page(first.parse().ok().filter(|number: &u64| number.to_string() == first)?),
                    None if which.contains(',') => Which::These(these(which)?),
                    None => Which::One(node(which)?),
                };
                let floor = match floor {
                    [] => 0,
                    [floor] => floor.parse().ok().filter(|floor| *floor > 0)?,
                    _ => return None,
                };
                (StoreRequest::Load(namespace.to_owned(), which, floor), ms)
            }
            ["SWAP", namespace, ms, server, key, old, meta, new, earliest, latest] => {
                let key = if key == "meta" { Key::Meta } else { Key::Slot(node(key)?) };
                let (meta, old) = (record(meta)?, record(old)?);
                let (earliest_ms, latest_ms) = (earliest.parse().ok()?, latest.parse().ok()?);
                let swap = Swap { meta, server: server.to_owned(), key, old, new: new.to_owned(), earliest_ms, latest_ms };
                (StoreRequest::Swap(namespace.to_owned(), swap), ms)
            }
            ["LIST", ms] => (StoreRequest::List, ms),
            _ => return None,
        };
        Some((question, Duration::from_millis(ms.parse().ok()?)))
    }
}

/// The answer to a load.
pub fn of_loaded(backing: Backing, loaded: Loaded) -> Vec<String> {
    let keeps = if loaded.loses_writes { "forgets" } else { "keeps" };
    let mut texts = of_backing(backing);
    texts.extend([loaded.server, starred(loaded.time_ms), keeps.to_owned(), optional(loaded.meta.as_ref())]);
    texts.extend(loaded.slots.into_iter().flat_map(|(node, record)| [node.to_string(), record]));
    texts.extend(loaded.next.into_iter().flat_map(|next| [NEXT.to_owned(), next.to_string()]));
    texts
}

pub fn loaded(texts: Vec<String>) -> Option<(Backing, Loaded)> {
    let (backing, [server, time, keeps, meta, slots @ ..]) = backing(&texts)? else { return None };
    let time_ms = number(time, LATEST)?;
    let loses_writes = match keeps.as_str() {
        "keeps" => false,
        "forgets" => true,
        _ => return None,
    };
    let (meta, server) = (record(meta)?, server.clone());
    let (head, count) = (texts.len() - slots.len(), slots.len() / 2);
    // The records are moved, because they may take most of a process's memory.
    let (mut slots, mut texts, mut next) = (Vec::with_capacity(count), texts.into_iter().skip(head), None);
    while let Some(slot) = texts.next() {
        let text = texts.next()?;
        match (slot.as_str(), next) {
            (_, Some(_)) => return None,
            (NEXT, None) => next = Some(text.parse().ok()?),
            (slot, None) => slots.push((node(slot)?, text)),
        }
    }
    Some((backing, Loaded { meta, server, time_ms, slots, loses_writes, next }))
}

/// The answer to a swap.
pub fn of_swapped(backing: Backing, swapped: Swapped) -> Vec<String> {
    let mut texts = of_backing(backing);
    match swapped {
        Swapped::Done => texts.push("done".to_owned()),
        Swapped::Differs => texts.push("differs".to_owned()),
        Swapped::OutOfTime(time_ms) => texts.extend(["late".to_owned(), time_ms.to_string()]),
    }
    texts
}

pub fn swapped(texts: &[String]) -> Option<(Backing, Swapped)> {
    let (backing, rest) = backing(texts)?;
    let swapped = match rest {
        [word] if word == "done" => Swapped::Done,
        [word] if word == "differs" => Swapped::Differs,
        [word, time] if word == "late" => Swapped::OutOfTime(time.parse().ok()?),
        _ => return None,
    };
    Some((backing, swapped))
}

fn of_backing(backing: Backing) -> Vec<String> {
    vec![backing.source, starred(backing.history)]
}

fn backing(texts: &[String]) -> Option<(Backing, &[String])> {
    let [source, history, rest @ ..] = texts else { return None };
    Some((Backing { source: source.clone(), history: number(history, i64::MAX)? }, rest))
}

fn starred(number: Option<i64>) -> String {
    number.map_or_else(|| "*".to_owned(), |number| number.to_string())
}

/// A number from 0 up to `last`.
fn number(text: &str, last: i64) -> Option<Option<i64>> {
    if text == "*" { Some(None) } else { text.parse().ok().filter(|number| (0..=last).contains(number)).map(Some) }
}

fn optional(record: Option<&String>) -> String {
    record.map_or_else(|| "-".to_owned(), |text| format!("+{text}"))
}

fn record(text: &str) -> Option<Option<String>> {
    if text == "-" { Some(None) } else { text.strip_prefix('+').map(|text| Some(text.to_owned())) }
}

/// At least two node numbers.
fn these(text: &str) -> Option<std::sync::Arc<[u64]>> {
    let nodes: Vec<_> = text.split(',').map(node).collect::<Option<_>>()?;
    (nodes.len() <= super::super::MOST_TOGETHER).then(|| nodes.into())
}

/// A node number, in its only spelling.
fn node(text: &str) -> Option<u64> {
    text.parse().ok().filter(|node: &u64| *node < NODES_END && node.to_string() == text)
}
