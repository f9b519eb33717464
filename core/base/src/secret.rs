//! Texts that hold a password: a type that cannot be printed, and the parts of a store's address that may
//! be shown.
//!
//! Only parts that are known to be harmless are shown: the scheme, hosts, ports, the path, and parameters
//! on a list. The rest is shown as `***`, and so is an address whose parts cannot be separated, as with
//! an unescaped `/` in a password.

use std::borrow::Cow;
use std::fmt;

/// A text that is not shown. It has no `Display`, and its `Debug` shows nothing.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// The text itself, for code that must parse or send it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// The replacement of a text that is not shown.
const HIDDEN: &str = "***";

/// The parameters whose values are not secret. A private key is secret unless it is the name of a
/// file.
const SHOWN: &[&str] = &[
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "sslca",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "application_name",
    "options",
    "charset",
    "collation",
    "socket",
    "db",
    "ca",
    "cert",
    "key",
];

/// Returns the part of a store's address that may be shown.
pub fn address(text: &str) -> String {
    understood(text).unwrap_or_else(|| misplaced_or_hidden(text))
}

/// Returns the part of several addresses, separated by spaces, that may be shown: each hides its own secret.
pub fn addresses(value: &str) -> String {
    let mut stores: Vec<String> = Vec::new();
    for word in value.split_inclusive(char::is_whitespace) {
        match stores.last_mut() {
            // The word is part of a folder's name, or of a password, with a space in it. A hidden address stays one.
            Some(store) if !begins_an_address(word.trim_end()) && word.trim_end() != HIDDEN => store.push_str(word),
            _ => stores.push(word.to_owned()),
        }
    }
    let parts = stores.iter().map(|store| store.split_at(store.trim_end().len()));
    // After an address that cannot be parsed, a word like an address may be the rest of its
    // password.
    let all = parts.clone().all(|(store, _)| understood(store).is_some());
    let show = |store: &str| understood(store).filter(|_| all || is_plain(store)).unwrap_or_else(|| misplaced_or_hidden(store));
    parts.map(|(store, space)| show(store) + space).collect()
}

/// Returns the part of a file's name that may be shown, because the name may contain the file's
/// content by mistake.
pub fn file(name: &str) -> &str {
    if name.contains("-----") || name.contains(char::is_control) || name.len() > 255 { HIDDEN } else { name }
}

/// Returns whether a value names one store or several, and nothing else.
pub fn are_addresses(value: &str) -> bool {
    value.split_whitespace().all(|word| understood(word).is_some())
}

/// Returns the part of a text that may be shown, because it may contain a URL by mistake.
pub fn misplaced(text: &str) -> Cow<'_, str> {
    match text.split_once("://") {
        None => text.into(),
        Some((scheme, _)) if is_scheme(scheme) => format!("{scheme}://{HIDDEN}").into(),
        Some(_) => HIDDEN.into(),
    }
}

/// Returns whether an address without quotes seems to continue after the space that ended it.
pub fn continues_after_space(address: &str, rest: &str) -> bool {
    if is_plain(address) || !(address.contains("://") || address.contains([':', '@'])) {
        return false;
    }
    let after = address.split_once("://").map_or(address, |(_, after)| after);
    let query = after.split_once('?').map(|(_, query)| query).unwrap_or_default();
    let last = query.rsplit('&').next().unwrap_or_default();
    let layout = |word: &str| word.starts_with("layout=") || word.trim_start_matches(['\'', '"']).starts_with("time:");
    let more = || rest.split_whitespace().any(|word| word.contains('@') && !layout(word));
    !rest.trim().is_empty() && (understood(address).is_none() || parameter(last).ends_with(HIDDEN) || more())
}

/// Returns whether a word begins a store's address.
fn begins_an_address(word: &str) -> bool {
    word.contains("://") || is_plain(word)
}

fn misplaced_or_hidden(text: &str) -> String {
    if text.contains("://") { misplaced(text).into_owned() } else { HIDDEN.to_owned() }
}

/// Returns whether an address has no place for a secret.
fn is_plain(text: &str) -> bool {
    matches!(text, "local" | "memory") || ((text.starts_with("file:") || text.starts_with("env:")) && !text.contains("://"))
}

fn is_scheme(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'+';
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.len() <= 16 && text.bytes().all(plain)
}

/// The address as it is shown; `None` if its parts cannot be separated.
fn understood(text: &str) -> Option<String> {
    if is_plain(text) {
        return Some(text.to_owned());
    }
    let (scheme, rest) = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme))?;
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (path, rest) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let (login, hosts) = authority.rsplit_once('@').map_or(("", authority), |(_, hosts)| ("***@", hosts));
    // A later @ may end a password that contains a slash.
    if path.contains('@') || rest.contains('@') || !hosts.split(',').all(is_host) {
        return None;
    }
    let (query, fragment) = rest.split_once('#').map_or((rest, ""), |(query, _)| (query, "#***"));
    let query = query.strip_prefix('?').map(|query| query.split('&').map(parameter).collect::<Vec<_>>().join("&"));
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    Some(format!("{scheme}://{login}{hosts}{path}{query}{fragment}"))
}

/// Returns whether a text is a host with its port. A text of another form may be part of a login.
fn is_host(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':').filter(|_| !host.ends_with(']')) {
        Some((name, port)) => (name, Some(port)),
        None => (host, None),
    };
    let inside = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_%~".contains(&byte) || (inside.is_some() && byte == b':');
    let port_is_one = port.is_none_or(|port| port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit()));
    inside.unwrap_or(name).bytes().all(allowed) && port_is_one
}

/// A parameter, with its value unless that is secret.
fn parameter(text: &str) -> String {
    match text.split_once('=') {
        _ if text.is_empty() => String::new(),
        Some((name, value)) if SHOWN.contains(&name) && is_harmless(value) => format!("{name}={value}"),
        Some((name, _)) if is_name(name) => format!("{name}={HIDDEN}"),
        _ => HIDDEN.to_owned(),
    }
}

/// Returns whether a text can be a parameter's name, and is not part of a password.
pub fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_');
    !text.is_empty() && text.len() <= 24 && text.bytes().all(plain)
}

/// Returns whether a value is not secret. It may be a file's content instead of its name (a key in
/// PEM), or contain a further parameter after another separator than `&`.
fn is_harmless(value: &str) -> bool {
    let decoded = percent_decoded(value).to_ascii_lowercase();
    !["-----", "pass", "pwd", "secret", "token", "private"].iter().any(|part| decoded.contains(part))
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16)).and_then(|digit| u8::try_from(digit).ok());
        (bytes, rest) = match (byte, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => ([bytes, vec![high * 16 + low]].concat(), &after[2..]),
            _ => ([bytes, vec![*byte]].concat(), after),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
