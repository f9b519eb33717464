//! The spec line: `key=value` pairs that configure a generator, the same in every language.

use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Result, shown};
use crate::generator::check_observed;
use crate::id::Id;
use crate::layout::{Field, LONGEST_NAME, Layout, check_value};
use crate::lease::{Contract, Times};
use crate::policy::{Policies, Reaction, Start};
use crate::preset::{self, STANDARD};
use crate::secret::{self, Secret};
use crate::store::Address;
use crate::time;
use std::fmt;

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
];
/// The namespace of a spec that names none.
pub(crate) const DEFAULT_NAMESPACE: &str = "default";
const LONGEST_NAMESPACE: usize = 64;
/// Names the variable that configures a generator opened without arguments.
const VARIABLE: &str = "FRAZIL";

/// What configures a generator: a preset and `key=value` pairs.
///
/// A spec line holds values that are bare or quoted (`'...'` or `"..."`, with backslash), split at
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

/// Where a generator's node number comes from.
pub(crate) enum Source {
    /// Given in the spec.
    Fixed(u64),
    /// Leased from a store.
    Leased(Box<Contract>),
}

/// A spec understood: everything that `open` needs, checked.
pub(crate) struct Plan {
    pub(crate) layout: Layout,
    pub(crate) policies: Policies,
    pub(crate) source: Source,
    pub(crate) manual_clock: bool,
    pub(crate) after: Option<Id>,
    pub(crate) detached: bool,
}

impl Plan {
    /// Refuses an `after` that lies further ahead of the clock than IDs may be stamped; returns its tick.
    /// What a manual clock will show is the program's business.
    pub(crate) fn check_after(&self) -> Result<Option<(Id, u64)>> {
        let Some(after) = self.after else {
            return Ok(None);
        };
        let now = if self.manual_clock { None } else { Some(self.layout.tick_of(Clock::System.read()?)?) };
        let drift = match &self.source {
            Source::Fixed(_) => self.policies.most_ahead(&self.layout),
            Source::Leased(contract) => contract.drift(),
        };
        let tick = check_observed("after", after, &self.layout, self.policies, drift, now)?;
        Ok(Some((after, tick)))
    }
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
                spec.preset = Some(word.to_owned());
                rest = after.trim_start();
            } else {
                // What holds an @ may be the rest of a password.
                let word = if word.contains('@') { "a word".to_owned() } else { shown(word) };
                return Err(spec_error(format!("{word} is not key=value (only the first word, the preset, stands alone)")));
            }
        }
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
                    let why = format!("no spec is given and {VARIABLE} is not set: {WAYS_OUT}");
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

    /// As [`from_parts`](Spec::from_parts), for [`Numbers::open`](crate::Numbers::open): the variable `FRAZIL` is for generators alone.
    ///
    /// # Errors
    /// As [`parse`](Spec::parse); `SPEC` for a key in both.
    pub fn numbers_from_parts(line: Option<&str>, options: &[(String, String)]) -> Result<Self> {
        Spec::from_parts(Some(line.unwrap_or_default()), options)
    }

    /// The options of [`Numbers::open`](crate::Numbers::open) that a language may take as a list: [`list`](Spec::list) makes a value of one.
    pub const LISTS: [&str; 2] = ["store", "offset"];

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
        let name = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        if !key.starts_with(|c: char| c.is_ascii_lowercase()) || !key.bytes().all(name) || key.len() > LONGEST_NAME {
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
                Err(Error::new(ErrorKind::UnknownKey, format!("there is no key {} here; keys: {}", shown(key), keys.join(", "))))
            }
        }
    }

    /// The same spec without some keys.
    pub(crate) fn without(&self, keys: &[&str]) -> Self {
        let pairs = self.pairs.iter().filter(|(key, _)| !keys.contains(&key.as_str()));
        Spec { preset: self.preset.clone(), pairs: pairs.cloned().collect() }
    }

    /// Understands every key.
    pub(crate) fn plan(&self) -> Result<Plan> {
        let (layout, preset) = self.layout()?;
        self.check_keys(&layout)?;
        let store = self.value("store")?.map(|text| Address::parse(&text)).transpose()?;
        let policies = self.policies(&layout, preset, store.is_some())?;
        let manual_clock = match self.value("clock")?.as_deref() {
            None | Some("system") => false,
            Some("manual") => true,
            Some(other) => return Err(spec_error(format!("clock={} is none of: system, manual", shown(other)))),
        };
        let detached = match self.value("detached")?.as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(other) => return Err(spec_error(format!("detached={} is none of: true, false", shown(other)))),
        };
        let after = match self.value("after")? {
            None => None,
            Some(text) => {
                let id: Id = text.parse().map_err(|error| Error::new(ErrorKind::IdInvalid, format!("after: {error}")))?;
                layout.decode(id).map_err(|error| Error::new(error.kind(), format!("after: {error}")))?;
                Some(id)
            }
        };
        let fixed = store.is_none();
        let source = match store {
            Some(address) => self.contract(&layout, address, policies, manual_clock, detached)?,
            None => self.fixed(&layout)?,
        };
        if fixed && !manual_clock && layout.tick_ms() > 1000 {
            let tick = time::show_duration(layout.tick_ms());
            return Err(spec_error(format!(
                "a node number without a store would wait out a tick of {tick} at each start: ticks over 1s need a store"
            )));
        }
        Ok(Plan { layout, policies, source, manual_clock, after, detached })
    }

    fn layout(&self) -> Result<(Layout, &'static preset::Preset)> {
        let text = self.value("layout")?;
        let preset = preset::find(self.preset.as_deref().unwrap_or(STANDARD))?;
        let layout = match &text {
            Some(text) if text.contains(':') => Layout::parse(text)?,
            Some(name) => {
                return Err(spec_error(format!("layout={} has no fields: a preset is named by the first word alone", shown(name))));
            }
            None => Layout::parse(preset.layout)?,
        };
        Ok(match self.value("epoch")? {
            Some(epoch) => (layout.with_epoch(time::parse_instant("epoch", &epoch)?), preset),
            None => (layout, preset),
        })
    }

    fn check_keys(&self, layout: &Layout) -> Result<()> {
        let fields: Vec<_> = layout.node_fields().iter().map(|field| field.name()).collect();
        for (key, _) in &self.pairs {
            if !KEYS.contains(&key.as_str()) && !fields.contains(&key.as_str()) {
                return Err(Error::new(
                    ErrorKind::UnknownKey,
                    format!("there is no key {}; this layout's node fields: {}; keys: {}", shown(key), fields.join(", "), KEYS.join(", ")),
                ));
            }
        }
        Ok(())
    }

    fn policies(&self, layout: &Layout, preset: &preset::Preset, store: bool) -> Result<Policies> {
        // What the spec does not name comes from the preset, and what that does not, from `standard`.
        let inherited = |key: &str| {
            let standard = preset::find(STANDARD).expect("standard is a preset").policies;
            let (_, value) = preset.policies.iter().chain(standard).find(|(name, _)| *name == key).expect("standard names every policy");
            (*value).to_owned()
        };
        let get = |key: &str| Ok::<_, Error>(self.value(key)?.map_or_else(|| (inherited(key), false), |value| (value, true)));
        let reaction = |key: &str| {
            let (text, given) = get(key)?;
            match Reaction::parse(key, &text)? {
                Reaction::Ahead(None) if !store && given => {
                    Err(spec_error(format!("{key}=ahead without a limit needs a store, which remembers how far: say {key}=ahead:1s")))
                }
                // Where no store remembers how far it went, a preset's own `ahead` is cut to `standard`'s.
                Reaction::Ahead(None) if !store => Ok(Reaction::Ahead(Some(1000))),
                reaction => Ok(reaction),
            }
        };
        let (start, given) = get("start")?;
        Ok(Policies {
            rollback: reaction("rollback")?,
            exhausted: reaction("exhausted")?,
            start: Start::parse(&start)?.fit(layout, given)?,
            lag_ms: time::parse_duration("lag", &get("lag")?.0)?,
        })
    }

    /// The value of each node field that is given.
    fn given(&self, layout: &Layout) -> Result<Vec<Option<u64>>> {
        let value = |field: &Field| {
            let text = self.value(field.name())?;
            text.map(|text| check_value(field, node_value(field.name(), &text)?)).transpose()
        };
        layout.node_fields().iter().map(value).collect()
    }

    fn contract(&self, layout: &Layout, address: Address, policies: Policies, manual_clock: bool, detached: bool) -> Result<Source> {
        let disposable = match self.value("lease")?.as_deref() {
            None | Some("shared-slots") => false,
            Some("disposable") => true,
            Some(other) => return Err(spec_error(format!("lease={} is none of: shared-slots, disposable", shown(other)))),
        };
        let namespace = self.value("namespace")?.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
        check_namespace(&namespace)?;
        let duration = |key: &str| self.value(key)?.map(|text| time::parse_duration(key, &text)).transpose();
        let times = Times { window_ms: duration("window")?, renew_ms: duration("renew")? };
        if disposable && (times.window_ms.is_some() || times.renew_ms.is_some()) {
            return Err(spec_error("window= and renew= have no meaning for lease=disposable, whose numbers have no end".to_owned()));
        }
        let fields = self.given(layout)?.into_iter().zip(layout.node_fields()).map(|(value, field)| (value, field.bits())).collect();
        let contract = Contract::new(address, namespace, layout, fields, disposable, times, policies, manual_clock)?;
        Ok(Source::Leased(Box::new(Contract { detached, ..contract })))
    }

    fn fixed(&self, layout: &Layout) -> Result<Source> {
        let given = self.given(layout)?;
        for key in ["namespace", "lease", "window", "renew"] {
            if self.value(key)?.is_some() {
                return Err(spec_error(format!("{key}= has no meaning without store=")));
            }
        }
        let missing: Vec<_> =
            layout.node_fields().iter().zip(&given).filter(|(_, value)| value.is_none()).map(|(field, _)| field.name()).collect();
        if !missing.is_empty() {
            let why = format!("the node number is missing ({}): {WAYS_OUT}", missing.join(", "));
            return Err(Error::new(ErrorKind::NodeMissing, why));
        }
        Ok(Source::Fixed(layout.node_of(given.into_iter().flatten())))
    }
}

const WAYS_OUT: &str = "give a number of its own to each generator (worker=7), or store=local on one machine, \
                        or the cluster's store (store=redis://...)";

pub(crate) fn spec_error(why: String) -> Error {
    Error::new(ErrorKind::Spec, why)
}

/// A namespace is a part of keys, folders and table rows: what is safe in all of them.
pub(crate) fn check_namespace(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !name.is_empty() && name.len() <= LONGEST_NAMESPACE && name.chars().all(plain) && !name.chars().all(|c| c == '.') {
        return Ok(());
    }
    Err(spec_error(format!("namespace={} is not a name: 1 to {LONGEST_NAMESPACE} of a-z, A-Z, 0-9, . _ -", shown(name))))
}

/// A value as it was given, or the content of the variable that `env:NAME` names.
pub(crate) fn resolve(key: &str, value: &str) -> Result<String> {
    let Some(variable) = value.strip_prefix("env:") else {
        return Ok(value.to_owned());
    };
    std::env::var(variable)
        .map_err(|_| spec_error(format!("{key}=env:{variable}: there is no environment variable of this name that is UTF-8")))
}

/// A node field's value: a number, or `hostname`, `hostname+N`.
fn node_value(name: &str, text: &str) -> Result<u64> {
    if let Some(rest) = text.strip_prefix("hostname") {
        let host = gethostname::gethostname();
        return hostname_ordinal(name, &host.to_string_lossy(), rest);
    }
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        let kind = if text.strip_prefix('-').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())) {
            ErrorKind::OutOfRange
        } else {
            ErrorKind::Spec
        };
        return Err(Error::new(kind, format!("{name}={} is not a node number: 0, 1, 2, ..., hostname or hostname+N", shown(text))));
    }
    text.parse().map_err(|_| Error::new(ErrorKind::OutOfRange, format!("{name}={} is out of range", shown(text))))
}

/// The ordinal at the end of a StatefulSet pod's name: `shop-3` is 3.
fn hostname_ordinal(name: &str, host: &str, plus: &str) -> Result<u64> {
    // `parse` would take a sign.
    let ordinal = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<u64>().ok()).flatten();
    let offset = match plus {
        "" => Some(0),
        _ => plus.strip_prefix('+').and_then(ordinal),
    };
    let offset = offset.ok_or_else(|| spec_error(format!("{name}={} is not hostname or hostname+N", shown(&format!("hostname{plus}")))))?;
    let ordinal = host.rsplit_once('-').and_then(|(_, n)| ordinal(n));
    let ordinal = ordinal.ok_or_else(|| spec_error(format!("{name}=hostname: the host name {} does not end with -N", shown(host))))?;
    ordinal.checked_add(offset).ok_or_else(|| Error::new(ErrorKind::OutOfRange, format!("{name}=hostname{plus} is out of range")))
}

/// # Errors
/// `SPEC` for a URL without quotes that has a space in it: later errors would show its rest.
fn check_end(value: &str, key: &str, rest: &str) -> Result<()> {
    if !secret::goes_on(value, rest) {
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
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
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

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unnamed = if self.pairs.iter().any(|(key, _)| key == "layout") { "" } else { STANDARD };
        f.write_str(&secret::misplaced(self.preset.as_deref().unwrap_or(unnamed)))?;
        let place = |key: &str| match key {
            "layout" => 0,
            "epoch" => 1,
            // Node fields stand where they were given, before the other keys.
            _ => KEYS.iter().position(|name| *name == key).map_or(2, |place| place + 1),
        };
        let mut pairs: Vec<_> = self.pairs.iter().collect();
        pairs.sort_by_key(|(key, _)| place(key));
        for (at, (key, value)) in pairs.into_iter().enumerate() {
            if at > 0 || key != "layout" {
                f.write_str(" ")?;
            }
            let shown = if key == "store" { secret::addresses(value.expose()) } else { secret::misplaced(value.expose()).into_owned() };
            write!(f, "{key}={}", quoted(&shown))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spec({self})")
    }
}

fn quoted(value: &str) -> String {
    if !value.is_empty() && !value.contains(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '\\')) {
        return value.to_owned();
    }
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ordinal_of_a_pod() {
        assert_eq!(hostname_ordinal("worker", "shop-3", ""), Ok(3));
        assert_eq!(hostname_ordinal("worker", "shop-eu-12", "+100"), Ok(112));
        for (host, plus) in
            [("shop", ""), ("shop-x", ""), ("shop-", ""), ("shop-+3", ""), ("shop-3", "-1"), ("shop-3", "+x"), ("shop-3", "++5")]
        {
            assert_eq!(hostname_ordinal("worker", host, plus).map_err(|error| error.kind()), Err(ErrorKind::Spec));
        }
    }
}
