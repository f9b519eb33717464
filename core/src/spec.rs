//! The spec line: `key=value` pairs that configure a generator, the same in every language.

mod line;
mod plan;

pub(crate) use plan::Plan;
pub use plan::{Source, check_namespace};

use crate::error::{Error, ErrorKind, Result, shown};
use crate::layout::LONGEST_NAME;
use crate::nearest::{did_you_mean, nearest};
use crate::secret::{self, Secret};

/// The keys that are not node fields, in the order of the canonical line.
const KEYS: &[&str] = &[
    "layout",
    "epoch",
    "store",
    "namespace",
    "lease",
    "window",
    "renew",
    "rollback",
    "exhausted",
    "start",
    "lag",
    "after",
    "clock",
    "detached",
    "shared",
];
/// The namespace of a spec that names none.
pub const DEFAULT_NAMESPACE: &str = "default";
const LONGEST_NAMESPACE: usize = 64;
/// Names the variable that configures a generator opened without arguments.
const VARIABLE: &str = "FRAZIL";

/// The configuration of a generator: a preset and `key=value` pairs.
///
/// A spec line holds values that are bare or quoted (`'...'` or `"..."`, where a backslash stands before a quote or a backslash), split at
/// the first `=`. Any value may be `env:NAME`, the content of an environment variable. `Display`
/// gives the canonical line, which opens the same generator, and shows neither a variable's value nor
/// what may be a secret in a store's URL: the user and the password, and parameters such as `password=`.
///
/// # Example
/// ```
/// let spec = frazil::Spec::parse("leaf start='random:16' worker=12")?;
/// assert_eq!(spec.to_string(), "leaf worker=12 start=random:16");
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Spec {
    preset: Option<String>,
    pairs: Vec<(String, Secret)>,
}

impl Spec {
    /// Parses a spec line.
    ///
    /// # Errors
    /// `SPEC` for what is not `key=value` or stands there twice. Keys and values are checked when
    /// the generator is opened.
    pub fn parse(line: &str) -> Result<Self> {
        let mut spec = Spec { preset: None, pairs: Vec::new() };
        let mut rest = line.trim_start();
        while !rest.is_empty() {
            let end = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            if let Some(value) = after.strip_prefix('=') {
                let (value, left) = take_value(word, value)?;
                spec.add(word, value)?;
                rest = left.trim_start();
            } else if spec.preset.is_none() && spec.pairs.is_empty() {
                check_end(word, "", after)?;
                if word.contains("://") {
                    let url = secret::misplaced(word);
                    return Err(spec_error(format!("{url} is a URL where a preset or a segment's tag stands: write store={url}")));
                }
                spec.preset = Some(word.to_owned());
                rest = after.trim_start();
            } else {
                // What holds an @ may be the rest of a password.
                let word = if word.contains('@') { "a word".to_owned() } else { shown(word) };
                return Err(spec_error(format!(
                    "{word} is not key=value (only the first word stands alone, a preset or a segment's tag, and it has no space in it)"
                )));
            }
        }
        // A program may have thousands of generators, and each keeps its spec.
        spec.pairs.shrink_to_fit();
        Ok(spec)
    }

    /// The spec of a constructor: a line or nothing, and the language's own options as pairs.
    ///
    /// With neither it is what the environment variable `FRAZIL` says.
    ///
    /// # Errors
    /// As [`parse`](Spec::parse); `SPEC` for a key in both; `NODE_MISSING` when there is nothing,
    /// and no `FRAZIL` either.
    pub fn from_parts(line: Option<&str>, options: &[(String, String)]) -> Result<Self> {
        let mut spec = match line {
            Some(line) => Spec::parse(line)?,
            None if options.is_empty() => {
                let line = std::env::var(VARIABLE).map_err(|_| {
                    let why = format!("no spec is given and {VARIABLE} is not set: {}", ways_out("standard node=7"));
                    Error::new(ErrorKind::NodeMissing, why)
                })?;
                Spec::parse(&line).map_err(|error| Error::new(error.kind(), format!("{VARIABLE}: {error}")))?
            }
            None => Spec::parse("")?,
        };
        for (key, value) in options {
            spec.add(key, value.clone())?;
        }
        Ok(spec)
    }

    /// Combines a line and options for [`Numbers::open`](crate::Numbers::open): the variable `FRAZIL` is for generators alone.
    ///
    /// # Errors
    /// As [`parse`](Spec::parse); `SPEC` for a key in both.
    pub fn numbers_from_parts(line: Option<&str>, options: &[(String, String)]) -> Result<Self> {
        Spec::from_parts(Some(line.unwrap_or_default()), options)
    }

    /// The options of [`Numbers::open`](crate::Numbers::open) that a language may take as a list: [`list`](Spec::list) makes a value of one.
    pub const LISTS: [&str; 2] = ["store", "offset"];

    /// The options that take a duration: a language may take its own type for one.
    pub const DURATIONS: [&str; 4] = ["window", "renew", "lag", "wait"];

    /// The options that take an instant: a language may take its own type for one.
    pub const INSTANTS: [&str; 1] = ["epoch"];

    /// The options of a generator that are no node fields.
    pub const KEYS: &'static [&'static str] = KEYS;

    /// The value of an option that is given as a list.
    ///
    /// # Errors
    /// `SPEC` for an item with a space in it, which would be two.
    ///
    /// # Example
    /// ```
    /// assert_eq!(frazil::Spec::list("store", &["file:/a".to_owned(), "env:B".to_owned()])?, "file:/a env:B");
    /// assert!(frazil::Spec::list("store", &["file:/my data".to_owned()]).is_err());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn list(key: &str, items: &[String]) -> Result<String> {
        match items.iter().find(|item| item.contains(char::is_whitespace)) {
            None => Ok(items.join(" ")),
            Some(item) => {
                let why = "has a space in it, which separates the items of a list";
                Err(spec_error(format!("{key}: the item {:?} {why}", secret::addresses(item))))
            }
        }
    }

    fn add(&mut self, key: &str, value: String) -> Result<()> {
        // A key in another spelling (workerId, worker-id) is one that does not exist, which is known once the layout is.
        let name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        if !key.starts_with(|c: char| c.is_ascii_alphabetic()) || !key.bytes().all(name) || key.len() > LONGEST_NAME {
            return Err(spec_error(format!("{} is not a key: a-z, then a-z, 0-9 and _, at most {LONGEST_NAME}", shown(key))));
        }
        if self.pairs.iter().any(|(earlier, _)| earlier == key) {
            return Err(spec_error(format!("the key {key} is given twice")));
        }
        if key == "layout" && self.preset.is_some() {
            return Err(spec_error("a preset and layout= are given: one of them".to_owned()));
        }
        self.pairs.push((key.to_owned(), Secret::new(value)));
        Ok(())
    }

    /// The value of a key, with `env:NAME` replaced.
    pub(crate) fn value(&self, key: &str) -> Result<Option<String>> {
        let Some((_, value)) = self.pairs.iter().find(|(name, _)| name == key) else {
            return Ok(None);
        };
        resolve(key, value.expose()).map(Some)
    }

    /// The values of a key that may hold several, separated by spaces. Each may be `env:NAME`, and a variable may hold several.
    pub(crate) fn values(&self, key: &str) -> Result<Option<Vec<String>>> {
        let Some((_, value)) = self.pairs.iter().find(|(name, _)| name == key) else {
            return Ok(None);
        };
        let words: Vec<String> = value.expose().split_whitespace().map(|word| resolve(key, word)).collect::<Result<_>>()?;
        let words = words.join(" ");
        // A space in a password makes words of it that the errors about each of them would show.
        if key == "store" && words.contains(char::is_whitespace) && words.contains([':', '@']) && !secret::are_addresses(&words) {
            let why = "is no list of stores, separated by spaces; in a URL write a space as %20";
            return Err(spec_error(format!("store={} {why}", secret::addresses(&words))));
        }
        Ok(Some(words.split_whitespace().map(str::to_owned).collect()))
    }

    /// Takes out a key that only the program knows which opens the spec; its value, with `env:NAME` replaced.
    ///
    /// # Errors
    /// `SPEC` for a variable that is not there.
    #[doc(hidden)]
    pub fn take(&mut self, key: &str) -> Result<Option<String>> {
        let value = self.value(key)?;
        *self = self.without(&[key]);
        Ok(value)
    }

    /// Returns a spec under which each of `count` generators leases its own node number.
    ///
    /// # Errors
    /// `SPEC` where there are fewer numbers to choose from: without a store it is given, and one generator's.
    #[doc(hidden)]
    pub fn leasing_each(mut self, count: u64) -> Result<Self> {
        let nodes = match &self.plan()?.source {
            Source::Fixed(_) => 1,
            Source::Leased(contract) => contract.terms.candidates.count(),
        };
        if nodes < count {
            let why = format!(
                "{count} generators need a node number each, and this spec has {nodes}: give store=, and leave node fields open that are wide enough"
            );
            return Err(spec_error(why));
        }
        self.take("detached")?;
        self.add("detached", "true".to_owned())?;
        Ok(self)
    }

    /// The word that stands alone: a preset, or a segment's tag.
    pub(crate) fn first_word(&self) -> Option<&str> {
        self.preset.as_deref()
    }

    /// # Errors
    /// `UNKNOWN_KEY`.
    pub(crate) fn check_keys_among(&self, keys: &[&str]) -> Result<()> {
        match self.pairs.iter().find(|(key, _)| !keys.contains(&key.as_str())) {
            None => Ok(()),
            Some((key, _)) => {
                let near = did_you_mean(key, keys.iter().copied());
                Err(Error::new(ErrorKind::UnknownKey, format!("there is no key {}{near} here; keys: {}", shown(key), keys.join(", "))))
            }
        }
    }

    /// A key of these that another one, which the spec has, may be a slip of.
    pub(crate) fn meant<'a>(&self, keys: &[&'a str]) -> Option<&'a str> {
        self.pairs.iter().find_map(|(key, _)| nearest(key, keys.iter().copied()))
    }

    /// Returns the spec without some keys.
    pub(crate) fn without(&self, keys: &[&str]) -> Self {
        let pairs = self.pairs.iter().filter(|(key, _)| !keys.contains(&key.as_str()));
        Spec { preset: self.preset.clone(), pairs: pairs.cloned().collect() }
    }
}

/// Returns the ways in which a generator gets its node number; `by_hand` is the one with fixed fields.
fn ways_out(by_hand: &str) -> String {
    format!(
        "give a number of its own to each generator ({by_hand}), or let all of them lease: store=local on one machine, or the cluster's store \
         (store=redis://...)"
    )
}

/// A refusal of the spec line.
pub fn spec_error(why: String) -> Error {
    Error::new(ErrorKind::Spec, why)
}

/// A value as it was given, or the content of the variable that `env:NAME` names.
pub fn resolve(key: &str, value: &str) -> Result<String> {
    let Some(variable) = value.strip_prefix("env:") else {
        return Ok(value.to_owned());
    };
    std::env::var(variable)
        .map_err(|_| spec_error(format!("{key}=env:{variable}: there is no environment variable of this name that is UTF-8")))
}

/// # Errors
/// `SPEC` for a URL without quotes that has a space in it: later errors would show its rest.
fn check_end(value: &str, key: &str, rest: &str) -> Result<()> {
    if (key != "store" && !value.contains("://")) || !secret::goes_on(value, rest) {
        return Ok(());
    }
    let given = if key == "store" { secret::address(value) } else { secret::misplaced(value).into_owned() };
    let given = if given.contains("://") { format!("{}://", given.split("://").next().unwrap_or_default()) } else { String::new() };
    let why = "the URL seems to have a space in it, or more than a store's URL may have: put it into quotes, or write the space as %20";
    Err(spec_error(format!("{key}={given}...: {why}")))
}

/// Splits a value, bare or quoted, from what follows it.
fn take_value<'a>(key: &str, text: &'a str) -> Result<(String, &'a str)> {
    let Some(quote) = text.chars().next().filter(|c| matches!(c, '\'' | '"')) else {
        let (value, rest) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
        check_end(value, key, rest)?;
        return Ok((value.to_owned(), rest));
    };
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            // Anywhere else it stands for itself, as in a path of Windows.
            '\\' => value.push(chars.next_if(|(_, next)| matches!(next, '\'' | '"' | '\\')).map_or(c, |(_, escaped)| escaped)),
            c if c == quote => {
                let left = &text[at + 1..];
                if left.starts_with(|c: char| !c.is_whitespace()) {
                    return Err(spec_error(format!("{}: a space is missing after the closing quote", shown(key))));
                }
                return Ok((value, left));
            }
            c => value.push(c),
        }
    }
    Err(spec_error(format!("{}: the closing quote is missing", shown(key))))
}
