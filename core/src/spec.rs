//! The spec line: `key=value` pairs that configure a generator, the same in every language.

mod line;
mod plan;
#[cfg(test)]
mod secrets_tests;

pub use plan::NodeSource;
pub(crate) use plan::Plan;

use crate::id::layout::LONGEST_NAME;
use frazil_base::error::{Error, ErrorKind, Result, shown, spec_error};
use frazil_base::nearest::{did_you_mean, nearest};
use frazil_base::secret::{self, Secret};

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
/// The variable that configures a generator that is opened without arguments.
const VARIABLE: &str = "FRAZIL";

/// The configuration of a generator: a preset and `key=value` pairs.
///
/// Each pair is split at the first `=`. Its value is bare or quoted (`'...'` or `"..."`, where a backslash escapes a quote or a
/// backslash). Any value may be `env:NAME`, the content of an environment variable. `Display` gives the canonical line, which opens
/// the same generator. It shows neither a variable's value nor possible secrets in a store's URL: the user and the password, and
/// parameters such as `password=`.
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
    /// `SPEC` for a word that is not `key=value`, and for a key that is given twice. Keys and
    /// values are checked when the generator is opened.
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
                    return Err(spec_error(format!("{url} is a URL in place of a preset or a segment's tag: write store={url}")));
                }
                spec.preset = Some(word.to_owned());
                rest = after.trim_start();
            } else {
                // A word with an @ may be the end of a password.
                let word = if word.contains('@') { "a word".to_owned() } else { shown(word) };
                return Err(spec_error(format!(
                    "{word} is not key=value (only the first word has no key: a preset or a segment's tag, which has no space)"
                )));
            }
        }
        // A program may have thousands of generators, and each keeps its spec.
        spec.pairs.shrink_to_fit();
        Ok(spec)
    }

    /// The spec of a constructor, from an optional line and the language's own options as pairs.
    ///
    /// With neither, it is the content of the environment variable `FRAZIL`.
    ///
    /// # Errors
    /// As [`parse`](Spec::parse); `SPEC` for a key in both; `NODE_MISSING` if there is neither, and
    /// `FRAZIL` is not set.
    pub fn from_parts(line: Option<&str>, options: &[(String, String)]) -> Result<Self> {
        let mut spec = match line {
            Some(line) => Spec::parse(line)?,
            None if options.is_empty() => {
                let line = std::env::var(VARIABLE).map_err(|_| {
                    let why = format!("no spec is given and {VARIABLE} is not set: {}", node_number_remedies("standard node=7"));
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

    /// The options of [`Numbers::open`](crate::Numbers::open) that a language may take as a list.
    /// [`list`](Spec::list) makes a value from a list.
    pub const LISTS: [&str; 2] = ["store", "offset"];

    /// The options that take a duration. A language may use its own type for them.
    pub const DURATIONS: [&str; 4] = ["window", "renew", "lag", "wait"];

    /// The options that take an instant. A language may use its own type for them.
    pub const INSTANTS: [&str; 1] = ["epoch"];

    /// The options of a generator that are not node fields.
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
        // A key in another spelling (workerId, worker-id) is refused later, when the layout's fields are known.
        let name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        if !key.starts_with(|c: char| c.is_ascii_alphabetic()) || !key.bytes().all(name) || key.len() > LONGEST_NAME {
            return Err(spec_error(format!("{} is not a key: a-z, then a-z, 0-9 and _, at most {LONGEST_NAME}", shown(key))));
        }
        if self.pairs.iter().any(|(earlier, _)| earlier == key) {
            return Err(spec_error(format!("the key {key} is given twice")));
        }
        if key == "layout" && self.preset.is_some() {
            return Err(spec_error("a preset and layout= are given: use one of them".to_owned()));
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
        // A space splits a password into words, and the error about each word would show that word.
        if key == "store" && words.contains(char::is_whitespace) && words.contains([':', '@']) && !secret::are_addresses(&words) {
            let why = "is not a list of stores, separated by spaces; in a URL write a space as %20";
            return Err(spec_error(format!("store={} {why}", secret::addresses(&words))));
        }
        Ok(Some(words.split_whitespace().map(str::to_owned).collect()))
    }

    /// Removes a key that only the opening program knows. Returns its value, with `env:NAME`
    /// replaced.
    ///
    /// # Errors
    /// `SPEC` for a missing variable.
    #[doc(hidden)]
    pub fn take(&mut self, key: &str) -> Result<Option<String>> {
        let value = self.value(key)?;
        *self = self.without(&[key]);
        Ok(value)
    }

    /// Returns a spec under which each of `count` generators leases its own node number.
    ///
    /// # Errors
    /// `SPEC` if the spec has fewer numbers. Without a store the number is fixed, so there is only
    /// one.
    #[doc(hidden)]
    pub fn leasing_each(mut self, count: u64) -> Result<Self> {
        let nodes = match &self.plan()?.source {
            NodeSource::Fixed(_) => 1,
            NodeSource::Leased(contract) => contract.terms.candidates.count(),
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

    /// The first word of the line, which has no key: a preset, or a segment's tag.
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

    /// Returns the key among these of which a key of the spec may be a misspelling.
    pub(crate) fn meant<'a>(&self, keys: &[&'a str]) -> Option<&'a str> {
        self.pairs.iter().find_map(|(key, _)| nearest(key, keys.iter().copied()))
    }

    /// Returns the spec without some keys.
    pub(crate) fn without(&self, keys: &[&str]) -> Self {
        let pairs = self.pairs.iter().filter(|(key, _)| !keys.contains(&key.as_str()));
        Spec { preset: self.preset.clone(), pairs: pairs.cloned().collect() }
    }
}

/// Returns the ways in which a generator gets its node number. `by_hand` is the way with fixed fields.
fn node_number_remedies(by_hand: &str) -> String {
    format!(
        "give each generator its own number ({by_hand}), or let all of them lease: store=local on one machine, or the cluster's store \
         (store=redis://...)"
    )
}

/// A given value, or the content of the variable that `env:NAME` names.
pub fn resolve(key: &str, value: &str) -> Result<String> {
    let Some(variable) = value.strip_prefix("env:") else {
        return Ok(value.to_owned());
    };
    std::env::var(variable)
        .map_err(|_| spec_error(format!("{key}=env:{variable}: there is no environment variable of this name that is UTF-8")))
}

/// Returns whether a bare value may be a part of a URL whose rest follows.
fn seems_to_continue(value: &str, key: &str, rest: &str) -> bool {
    (key == "store" || value.contains("://")) && secret::continues_after_space(value, rest)
}

/// # Errors
/// `SPEC` for an unquoted URL with a space in it, because later errors would show its rest.
fn check_end(value: &str, key: &str, rest: &str) -> Result<()> {
    if !seems_to_continue(value, key, rest) {
        return Ok(());
    }
    let given = if key == "store" { secret::address(value) } else { secret::misplaced(value).into_owned() };
    let given = if given.contains("://") { format!("{}://", given.split("://").next().unwrap_or_default()) } else { String::new() };
    let why = "the URL seems to have a space in it, or more than a store's URL may have: put it into quotes, or write the space as %20";
    Err(spec_error(format!("{key}={given}...: {why}")))
}

/// Splits a value, bare or quoted, from the text after it.
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
            // In all other places, a backslash is an ordinary character, as in a Windows path.
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
