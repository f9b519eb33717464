//! The canonical line of a spec, which shows no secret.

use super::{KEYS, Spec, seems_to_continue};
use crate::id::preset::STANDARD;
use frazil_base::error::{self, Result, spec_error};
use frazil_base::secret::{self, Secret};
use std::fmt;

impl Spec {
    /// The canonical line for opening the same generator elsewhere: for a pickle, or a message to
    /// another process.
    ///
    /// # Errors
    /// `SPEC` if the line hides a possible secret, and for `detached` without a store, whose state
    /// cannot be opened a second time.
    pub(crate) fn portable(&self) -> Result<String> {
        let hides = |(key, value): &(String, Secret)| shown_value(key, value) != value.expose();
        if let Some((key, value)) = self.pairs.iter().find(|pair| hides(pair)) {
            let shown = shown_value(key, value);
            let why = format!(
                "{key}={shown} may hold a secret, which the line would show: name an environment variable that holds it, {key}=env:NAME"
            );
            return Err(spec_error(why));
        }
        if self.has_own_state() {
            let why = "detached=true without a store is a separate state, which cannot be opened a second time: leave it out";
            return Err(spec_error(why.to_owned()));
        }
        Ok(self.to_string())
    }

    /// Returns whether only this process knows the generator, because it has no store, or one in memory. Another process that opens
    /// the line issues the same IDs.
    pub(crate) fn is_for_one_process(&self) -> bool {
        self.values("store").ok().flatten().is_none_or(|stores| stores.iter().any(|store| store == "memory"))
    }

    /// The line as a word of a command. On Windows the line's quotes are single, because the word's are double.
    pub(super) fn word(&self, windows: bool) -> String {
        error::quoted(&Line { spec: self, quote: if windows { '\'' } else { '"' } }.to_string(), windows)
    }

    /// The value of a key, as the line shows it.
    pub(super) fn shown(&self, key: &str) -> String {
        self.pairs.iter().find(|(name, _)| name == key).map_or_else(String::new, |(key, value)| shown_value(key, value))
    }

    fn has_own_state(&self) -> bool {
        self.value("detached").is_ok_and(|flag| flag.as_deref() == Some("true")) && !self.pairs.iter().any(|(key, _)| key == "store")
    }
}

fn shown_value(key: &str, value: &Secret) -> String {
    if key == "store" { secret::addresses(value.expose()) } else { secret::misplaced(value.expose()).into_owned() }
}

/// A spec's canonical line, with one kind of quotes.
struct Line<'a> {
    spec: &'a Spec,
    quote: char,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { spec: Spec { preset, pairs, .. }, quote } = self;
        let unnamed = if pairs.iter().any(|(key, _)| key == "layout") { "" } else { STANDARD };
        let first = secret::misplaced(preset.as_deref().unwrap_or(unnamed));
        f.write_str(&first)?;
        let place = |key: &str| match key {
            "layout" => 0,
            "epoch" => 1,
            // Node fields keep their given order, before the other keys.
            _ => KEYS.iter().position(|name| *name == key).map_or(2, |place| place + 1),
        };
        let mut rest = String::new();
        for last in (0..=KEYS.len()).rev() {
            for (key, value) in pairs.iter().rev().filter(|(key, _)| place(key) == last) {
                let shown = shown_value(key, value);
                // The parser refuses a bare URL that seems to continue after the space.
                let is_bare = is_plain(&shown) && !seems_to_continue(&shown, key, &rest);
                rest = format!(" {key}={}{rest}", if is_bare { shown } else { quoted(&shown, *quote) });
            }
        }
        f.write_str(if first.is_empty() { rest.trim_start() } else { &rest })
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Line { spec: self, quote: '"' }.fmt(f)
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spec({self})")
    }
}

/// Returns whether a value needs no quotes.
fn is_plain(value: &str) -> bool {
    !value.is_empty() && !value.contains(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '\\'))
}

fn quoted(value: &str, quote: char) -> String {
    format!("{quote}{}{quote}", value.replace('\\', r"\\").replace(quote, &format!("\\{quote}")))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use frazil_base::error::ErrorKind;

    #[test]
    fn portable_line_may_not_hold_a_secret() {
        for line in ["standard node=7", "leaf store=env:NOWHERE", "orders store=\"file:/a env:B\"", "twitter store=memory detached=true"] {
            assert_eq!(Spec::parse(line).unwrap().portable().as_deref(), Ok(line));
        }
        let refused = |line| Spec::parse(line).unwrap().portable().unwrap_err();
        for line in [
            "standard store=redis://me:secret@a/0",
            "standard store=postgresql://a/b?password=secret",
            "orders store=\"file:/a mysql://me:secret@a/b\"",
            "standard namespace=redis://:secret@a",
        ] {
            let error = refused(line);
            assert_eq!(error.kind(), ErrorKind::Spec);
            assert!(error.to_string().contains("env:NAME") && !error.to_string().contains("secret@"), "{error}");
        }
        assert!(refused("standard node=7 detached=true").to_string().contains("detached=true"));
    }

    #[test]
    fn command_shows_no_secret() {
        let command = |line: &str| {
            let spec = Spec::parse(line).unwrap();
            crate::lease::nodes_command(&spec.shown("store"), "default")
        };
        assert_eq!(command("standard store=env:NOWHERE"), "frazil nodes env:NOWHERE --namespace default");
        let folder = frazil_base::error::shell_word("file:/my ids");
        assert_eq!(command("standard store='file:/my ids'"), format!("frazil nodes {folder} --namespace default"));
        let url = "store=redis://me:secret@h/0";
        let server = frazil_base::error::shell_word("redis://***@h/0");
        assert_eq!(command(&format!("standard {url}")), format!("frazil nodes {server} --namespace default"));
        let crate::spec::NodeSource::Leased(contract) = Spec::parse(&format!("leaf {url} window=20s")).unwrap().plan().unwrap().source
        else {
            panic!("a spec with a store leases");
        };
        let line = frazil_base::error::shell_word("leaf window=20s");
        let expected = format!("`frazil nodes {server} --namespace default --begin {line}`, with the user and the password for ***");
        assert_eq!(contract.terms.beginning(), expected);
    }

    #[test]
    fn backslash_is_literal_except_before_a_quote() {
        for (line, store) in [
            (r"standard store=file:C:\data\ids", r"file:C:\data\ids"),
            (r#"standard store="file:C:\Program Files\ids""#, r"file:C:\Program Files\ids"),
            (r#"standard store='file:C:\\data\\it\'s \"'"#, r#"file:C:\data\it's ""#),
        ] {
            let spec = Spec::parse(line).unwrap();
            assert_eq!(spec.value("store").unwrap().as_deref(), Some(store), "{line}");
            let again = Spec::parse(&spec.to_string()).unwrap();
            assert_eq!(again.value("store").unwrap().as_deref(), Some(store), "{spec}");
        }
    }

    #[test]
    fn spec_line_is_quoted_in_a_command() {
        let spec = Spec::parse(r#"layout="time:41 node:10 sequence:12" clock='a\b it\'s'"#).unwrap();
        let posix = r#"'layout="time:41 node:10 sequence:12" clock="a\\b it'\''s"'"#;
        assert_eq!(spec.word(false), posix);
        let windows = r#""layout='time:41 node:10 sequence:12' clock='a\\b it\'s'""#;
        assert_eq!(spec.word(true), windows);
        let line = windows.trim_matches('"');
        assert_eq!(Spec::parse(line).unwrap().to_string(), spec.to_string());
    }

    /// The parser refuses a bare URL that seems to continue after the space, so such a value is quoted.
    #[test]
    fn every_accepted_line_is_printed_as_one_that_is_accepted() {
        let values = [
            "=",
            "x",
            "a@b",
            "a:b",
            "f://r",
            "f://r?x",
            "redis://u:p",
            "redis://u:p@h/0",
            "redis://h/0?password=s&db=1",
            "redis://h?s",
            "file:/a",
            "env:NOWHERE",
            "'s t'",
            "'redis://h x@y'",
            "''",
            "\"layout=\"",
            "time:@",
        ];
        let keys = ["epoch", "s", "store", "lag", "layout", "namespace"];
        let mut accepted = 0;
        let pairs: Vec<String> = keys.iter().flat_map(|key| values.iter().map(move |value| format!("{key}={value}"))).collect();
        for given in pairs.iter().flat_map(|first| pairs.iter().map(move |second| format!("{first}\n{second}"))) {
            let Ok(spec) = Spec::parse(&given) else { continue };
            let line = spec.to_string();
            let again = Spec::parse(&line).unwrap_or_else(|error| panic!("{given} prints {line}: {error}"));
            assert_eq!(again.to_string(), line, "{given}");
            accepted += 1;
        }
        assert!(accepted > 5_000, "{accepted}");
    }

    #[test]
    fn store_memory_is_for_one_process() {
        let is = |line| Spec::parse(line).unwrap().is_for_one_process();
        assert!(is("standard node=7") && is("standard store=memory") && is("orders store=\"file:/a memory\""));
        // The content of a variable is not known here.
        assert!(is("standard store=env:NOWHERE_AT_ALL"));
        assert!(!is("standard store=local") && !is("orders store=redis://a") && !is("standard node=7 store=file:/a"));
    }
}
