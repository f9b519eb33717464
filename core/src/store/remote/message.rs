//! Questions to a server that lends its store, and the answers: lists of texts.
//!
//! ```text
//! LOAD NAMESPACE MS *|NODE[,NODE]...|page:FIRST [FLOOR]     SOURCE *|HISTORY SERVER *|TIME keeps|forgets META [NODE RECORD]... [next FIRST]
//! SWAP NAMESPACE MS SERVER meta|NODE OLD META NEW EARLIEST LATEST        SOURCE *|HISTORY done | differs | late TIME
//! LIST MS                                      [NAMESPACE]...
//! ```
//! An older server knows neither several numbers nor pages, and refuses them ([`FORM`]): it is asked for all records instead.
//!
//! MS is how long the sender waits. FLOOR is the highest HISTORY that it was told of the store. OLD and META are `-`, or `+` and the record. Times are Unix ms. SOURCE and HISTORY: [`Backing`].

use super::super::{Key, Loaded, NODES_END, Swap, Swapped, Which};
#[cfg(any(test, feature = "lend"))]
use crate::error::{Error, ErrorKind};
use std::time::Duration;

/// The command before a question.
pub(crate) const COMMAND: &str = "FRAZIL.STORE";

/// The refusal of words that are no question.
pub(crate) const FORM: &str = "FRAZIL.STORE takes LOAD, SWAP or LIST, as frazil:// sends them";

/// The beginning of a refusal's text where the store is there, and has too much to do: who asked may ask again soon.
pub(crate) const BUSY: &str = "busy: ";

/// The refusal of a question by a server, or a store, that has too much to do: who asked asks again, as long as its opener waits.
#[cfg(any(test, feature = "lend"))]
pub fn busy(why: &str) -> Error {
    Error::new(ErrorKind::StoreUnreachable, format!("{BUSY}{why}")).retry_soon()
}

/// The prefix of a source that is the folder itself, and not only its name.
pub(crate) const FOLDER: &str = "folder-";
/// The words before the beginning of a page, in a question and in an answer.
const PAGE: &str = "page:";
const NEXT: &str = "next";
/// More than any clock shows, in Unix ms, so that what is added to a time does no harm.
const LATEST: i64 = 1 << 53;

/// The store behind a server, as it stands before what it answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backing {
    /// The name that servers of one store share, or the identity of a folder.
    pub(crate) source: String,
    /// [`Store::history`](super::super::Store::history).
    pub(crate) history: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// With the floor; 0 where there is none.
    Load(String, Which, i64),
    Swap(String, Swap),
    #[cfg_attr(not(feature = "list"), allow(dead_code, reason = "who cannot list does not ask"))]
    List,
}

impl Question {
    /// The question that an older server answers in place of this one, where it knows this one not.
    pub(crate) fn of_before(&self) -> Option<Self> {
        match self {
            Question::Load(namespace, Which::These(_) | Which::Page(_), floor) => {
                Some(Question::Load(namespace.clone(), Which::All, *floor))
            }
            _ => None,
        }
    }

    /// The question of a client that waits that long.
    pub(crate) fn words(&self, left: Duration) -> Vec<String> {
        let ms = left.as_millis().to_string();
        match self {
            Question::Load(namespace, which, floor) => {
                let which = match which {
                    Which::All => "*".to_owned(),
                    Which::One(node) => node.to_string(),
                    Which::These(nodes) => nodes.iter().map(u64::to_string).collect::<Vec<_>>().join(","),
                    Which::Page(first) => format!("{PAGE}{first}"),
                };
                let floor = (*floor > 0).then(|| floor.to_string());
                ["LOAD".to_owned(), namespace.clone(), ms, which].into_iter().chain(floor).collect()
            }
            Question::Swap(namespace, swap) => {
                let Swap { meta, server, key, old, new, earliest_ms, latest_ms } = swap;
                let key = match key {
                    Key::Meta => "meta".to_owned(),
                    Key::Slot(node) => node.to_string(),
                };
                let (old, meta, new) = (optional(old.as_ref()), optional(meta.as_ref()), new.clone());
                let (earliest, latest) = (earliest_ms.to_string(), latest_ms.to_string());
                vec!["SWAP".to_owned(), namespace.clone(), ms, server.clone(), key, old, meta, new, earliest, latest]
            }
            Question::List => vec!["LIST".to_owned(), ms],
        }
    }

    /// The question of such words, and how long its sender waits.
    #[cfg(any(test, feature = "lend"))]
    pub(crate) fn parse(words: &[&str]) -> Option<(Self, Duration)> {
        let (question, ms) = match *words {
            ["LOAD", namespace, ms, which, ref floor @ ..] => {
                let which = match which.strip_prefix(PAGE) {
                    Some(first) => Which::Page(first.parse().ok().filter(|number: &u64| number.to_string() == first)?),
                    None if which == "*" => Which::All,
                    None if which.contains(',') => Which::These(these(which)?),
                    None => Which::One(node(which)?),
                };
                let floor = match floor {
                    [] => 0,
                    [floor] => floor.parse().ok().filter(|floor| *floor > 0)?,
                    _ => return None,
                };
                (Question::Load(namespace.to_owned(), which, floor), ms)
            }
            ["SWAP", namespace, ms, server, key, old, meta, new, earliest, latest] => {
                let key = if key == "meta" { Key::Meta } else { Key::Slot(node(key)?) };
                let (meta, old) = (record(meta)?, record(old)?);
                let (earliest_ms, latest_ms) = (earliest.parse().ok()?, latest.parse().ok()?);
                let swap = Swap { meta, server: server.to_owned(), key, old, new: new.to_owned(), earliest_ms, latest_ms };
                (Question::Swap(namespace.to_owned(), swap), ms)
            }
            ["LIST", ms] => (Question::List, ms),
            _ => return None,
        };
        Some((question, Duration::from_millis(ms.parse().ok()?)))
    }
}

/// The answer to a load.
#[cfg(any(test, feature = "lend"))]
pub(crate) fn of_loaded(backing: Backing, loaded: Loaded) -> Vec<String> {
    let keeps = if loaded.loses_writes { "forgets" } else { "keeps" };
    let mut texts = of_backing(backing);
    texts.extend([loaded.server, starred(loaded.time_ms), keeps.to_owned(), optional(loaded.meta.as_ref())]);
    texts.extend(loaded.slots.into_iter().flat_map(|(node, record)| [node.to_string(), record]));
    texts.extend(loaded.next.into_iter().flat_map(|next| [NEXT.to_owned(), next.to_string()]));
    texts
}

pub(crate) fn loaded(texts: Vec<String>) -> Option<(Backing, Loaded)> {
    let (backing, [server, time, keeps, meta, slots @ ..]) = backing(&texts)? else { return None };
    let time_ms = number(time, LATEST)?;
    let loses_writes = match keeps.as_str() {
        "keeps" => false,
        "forgets" => true,
        _ => return None,
    };
    let (meta, server) = (record(meta)?, server.clone());
    let (head, count) = (texts.len() - slots.len(), slots.len() / 2);
    // The records are moved: they may be most of a process's memory.
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
#[cfg(any(test, feature = "lend"))]
pub(crate) fn of_swapped(backing: Backing, swapped: Swapped) -> Vec<String> {
    let mut texts = of_backing(backing);
    match swapped {
        Swapped::Done => texts.push("done".to_owned()),
        Swapped::Differs => texts.push("differs".to_owned()),
        Swapped::OutOfTime(time_ms) => texts.extend(["late".to_owned(), time_ms.to_string()]),
    }
    texts
}

pub(crate) fn swapped(texts: &[String]) -> Option<(Backing, Swapped)> {
    let (backing, rest) = backing(texts)?;
    let swapped = match rest {
        [word] if word == "done" => Swapped::Done,
        [word] if word == "differs" => Swapped::Differs,
        [word, time] if word == "late" => Swapped::OutOfTime(time.parse().ok()?),
        _ => return None,
    };
    Some((backing, swapped))
}

#[cfg(any(test, feature = "lend"))]
fn of_backing(backing: Backing) -> Vec<String> {
    vec![backing.source, starred(backing.history)]
}

fn backing(texts: &[String]) -> Option<(Backing, &[String])> {
    let [source, history, rest @ ..] = texts else { return None };
    Some((Backing { source: source.clone(), history: number(history, i64::MAX)? }, rest))
}

#[cfg(any(test, feature = "lend"))]
fn starred(number: Option<i64>) -> String {
    number.map_or_else(|| "*".to_owned(), |number| number.to_string())
}

/// One from 0 up to `last`.
fn number(text: &str, last: i64) -> Option<Option<i64>> {
    if text == "*" { Some(None) } else { text.parse().ok().filter(|number| (0..=last).contains(number)).map(Some) }
}

fn optional(record: Option<&String>) -> String {
    record.map_or_else(|| "-".to_owned(), |text| format!("+{text}"))
}

fn record(text: &str) -> Option<Option<String>> {
    if text == "-" { Some(None) } else { text.strip_prefix('+').map(|text| Some(text.to_owned())) }
}

/// At least two of them.
#[cfg(any(test, feature = "lend"))]
fn these(text: &str) -> Option<std::sync::Arc<[u64]>> {
    let nodes: Vec<_> = text.split(',').map(node).collect::<Option<_>>()?;
    (nodes.len() <= super::super::MOST_TOGETHER).then(|| nodes.into())
}

/// In the one way in which it is written.
fn node(text: &str) -> Option<u64> {
    text.parse().ok().filter(|node: &u64| *node < NODES_END && node.to_string() == text)
}
