//! What is asked of a server that lends its store, and what it answers: lists of texts.
//!
//! ```text
//! LOAD NAMESPACE MS *|NODE                     SERVER *|TIME keeps|forgets META [NODE RECORD]...
//! SWAP NAMESPACE MS SERVER meta|NODE OLD META NEW EARLIEST LATEST        done | differs | late TIME
//! LIST MS                                      [NAMESPACE]...
//! ```
//! MS is how long the sender waits. OLD and META are `-`, or `+` and the record. Times are Unix ms.

use super::super::{Key, Loaded, Swap, Swapped, Which};
use std::time::Duration;

/// The command before a question.
pub(crate) const COMMAND: &str = "FRAZIL.STORE";

/// No node number is as large.
const NODES_END: u64 = 1 << 62;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    Load(String, Which),
    Swap(String, Swap),
    #[cfg_attr(not(feature = "list"), allow(dead_code, reason = "who cannot list does not ask"))]
    List,
}

impl Question {
    /// For one who waits for so long.
    pub(crate) fn words(&self, left: Duration) -> Vec<String> {
        let ms = left.as_millis().to_string();
        match self {
            Question::Load(namespace, which) => {
                let which = match which {
                    Which::All => "*".to_owned(),
                    Which::One(node) => node.to_string(),
                };
                vec!["LOAD".to_owned(), namespace.clone(), ms, which]
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
            ["LOAD", namespace, ms, which] => {
                let which = if which == "*" { Which::All } else { Which::One(node(which)?) };
                (Question::Load(namespace.to_owned(), which), ms)
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

/// What a load answers.
#[cfg(any(test, feature = "lend"))]
pub(crate) fn of_loaded(loaded: Loaded) -> Vec<String> {
    let time = loaded.time_ms.map_or_else(|| "*".to_owned(), |time| time.to_string());
    let keeps = if loaded.loses_writes { "forgets" } else { "keeps" };
    let mut texts = vec![loaded.server, time, keeps.to_owned(), optional(loaded.meta.as_ref())];
    texts.extend(loaded.slots.into_iter().flat_map(|(node, record)| [node.to_string(), record]));
    texts
}

pub(crate) fn loaded(texts: &[String]) -> Option<Loaded> {
    let [server, time, keeps, meta, slots @ ..] = texts else { return None };
    let time_ms = if time == "*" { None } else { Some(time.parse().ok()?) };
    let loses_writes = match keeps.as_str() {
        "keeps" => false,
        "forgets" => true,
        _ => return None,
    };
    let (pairs, []) = slots.as_chunks() else { return None };
    let slots = pairs.iter().map(|[slot, record]| Some((node(slot)?, record.clone()))).collect::<Option<_>>()?;
    Some(Loaded { meta: record(meta)?, server: server.clone(), time_ms, slots, loses_writes })
}

/// What a swap answers.
#[cfg(any(test, feature = "lend"))]
pub(crate) fn of_swapped(swapped: Swapped) -> Vec<String> {
    match swapped {
        Swapped::Done => vec!["done".to_owned()],
        Swapped::Differs => vec!["differs".to_owned()],
        Swapped::OutOfTime(time_ms) => vec!["late".to_owned(), time_ms.to_string()],
    }
}

pub(crate) fn swapped(texts: &[String]) -> Option<Swapped> {
    match texts {
        [word] if word == "done" => Some(Swapped::Done),
        [word] if word == "differs" => Some(Swapped::Differs),
        [word, time] if word == "late" => Some(Swapped::OutOfTime(time.parse().ok()?)),
        _ => None,
    }
}

fn optional(record: Option<&String>) -> String {
    record.map_or_else(|| "-".to_owned(), |text| format!("+{text}"))
}

fn record(text: &str) -> Option<Option<String>> {
    if text == "-" { Some(None) } else { text.strip_prefix('+').map(|text| Some(text.to_owned())) }
}

/// In the one way in which it is written.
fn node(text: &str) -> Option<u64> {
    text.parse().ok().filter(|node: &u64| *node < NODES_END && node.to_string() == text)
}
