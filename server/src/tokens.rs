//! Tokens with rights on names, from a file that a reload reads again.

use crate::lend::ALL;
use crate::log;
use crate::rate::Rate;
use crate::refusal::{self, Refusal};
use crate::settings::{line_of, spec_error};
use arc_swap::ArcSwap;
use frazil::bindings::did_you_mean;
use frazil::{Error, ErrorKind, Result};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// The minimum length of a token, because a shorter one could be guessed.
const SHORTEST: usize = 16;
/// The prefix of a secret that is kept in the environment.
const ENV: &str = "env:";

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// The right to mint IDs.
    Mint,
    /// The right to take ranges of numbers, which the client hands out itself.
    Lease,
    /// The right to read metrics.
    Admin,
}

/// The stored form of a token: equal for equal tokens, and not reversible.
pub type Fingerprint = [u8; 32];

pub fn fingerprint(secret: &[u8]) -> Fingerprint {
    Sha256::digest(secret).into()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    secret: String,
    #[serde(default)]
    mint: BTreeSet<String>,
    #[serde(default)]
    lease: BTreeSet<String>,
    #[serde(default)]
    admin: bool,
    #[serde(rename = "ids-per-second")]
    ids_per_second: Option<i64>,
}

pub struct Token {
    /// The operator's name for the token.
    pub label: String,
    fingerprint: Fingerprint,
    mint: BTreeSet<String>,
    lease: BTreeSet<String>,
    admin: bool,
    rate: Option<Rate>,
}

impl Token {
    pub fn may(&self, right: Right, name: &str) -> bool {
        let covers = |names: &BTreeSet<String>| names.contains(name) || names.contains(ALL);
        match right {
            Right::Mint => covers(&self.mint),
            Right::Lease => covers(&self.lease),
            Right::Admin => self.admin,
        }
    }

    /// Makes the refusal of a request for which the token lacks the right.
    fn lacks(&self, right: Right, name: &str) -> Refusal {
        let name: String = name.chars().take(64).collect();
        let wanted = match right {
            Right::Mint => format!("mint {name:?}"),
            Right::Lease => format!("lease ranges of {name:?}"),
            Right::Admin => "read metrics".to_owned(),
        };
        Refusal::forbidden(format!("the token {:?} does not have the right to {wanted}", self.label))
    }

    /// Takes `count` IDs of its rate.
    ///
    /// # Errors
    /// Those of [`Rate::take`].
    fn take(&self, count: NonZeroU32) -> refusal::Result<()> {
        self.rate.as_ref().map_or(Ok(()), |rate| rate.take(count, format_args!("the token {:?}", self.label)))
    }
}

/// The tokens of a file.
#[derive(Default)]
pub struct Tokens(Vec<Token>);

impl Tokens {
    /// Reads the file. A token with a label of `before` keeps the used part of its rate.
    fn read(path: &Path, before: &Tokens) -> Result<Self> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| spec_error(format!("{shown}: {error}")))?;
        // The parser's own text would show the line, and with it the secret.
        let parsed: BTreeMap<String, Entry> = toml::from_str(&text).map_err(|error| {
            let form = "each token is a table: [LABEL], with secret=, mint=[names], lease=[names], admin=true or false, ids-per-second=N";
            spec_error(format!("{shown}{}: {form}", line_of(&text, &error)))
        })?;
        if parsed.values().any(|entry| !entry.secret.starts_with(ENV)) {
            warn_of_readers(path);
        }
        let mut tokens = vec![];
        for (label, entry) in parsed {
            let secret = match entry.secret.strip_prefix(ENV) {
                None => entry.secret,
                Some(variable) => std::env::var(variable).map_err(|_| {
                    Error::new(ErrorKind::Spec, format!("{shown}: [{label}] secret=env:{variable}: there is no such variable in UTF-8"))
                })?,
            };
            if secret.len() < SHORTEST {
                let why = format!("{shown}: the secret of [{label}] has {} bytes: at least {SHORTEST}", secret.len());
                return Err(Error::new(ErrorKind::OutOfRange, why));
            }
            // For example the line end of a file: HTTP would strip it from the header.
            if secret.trim_ascii() != secret || secret.contains(|letter: char| letter.is_ascii_control()) {
                let why = "begins or ends with white space, or has a control character, such as the end of a line";
                return Err(spec_error(format!("{shown}: the secret of [{label}] {why}")));
            }
            let fingerprint = fingerprint(secret.as_bytes());
            let rate_before = before.0.iter().find(|token| token.label == label).and_then(|token| token.rate.as_ref());
            let most = entry.ids_per_second.map(|most| {
                u32::try_from(most).ok().and_then(NonZeroU32::new).ok_or_else(|| {
                    let why = format!("{shown}: [{label}] ids-per-second={most} is out of range: 1 to {}; without it, no limit", u32::MAX);
                    Error::new(ErrorKind::OutOfRange, why)
                })
            });
            let rate = most.transpose()?.map(|most| rate_before.map_or_else(|| Rate::new(most), |rate| rate.changed_to(most)));
            tokens.push(Token { label, fingerprint, mint: entry.mint, lease: entry.lease, admin: entry.admin, rate });
        }
        let mut seen = BTreeMap::new();
        for token in &tokens {
            if let Some(other) = seen.insert(token.fingerprint, &token.label) {
                return Err(spec_error(format!("{shown}: [{other}] and [{}] have the same secret", token.label)));
            }
        }
        if tokens.is_empty() {
            return Err(spec_error(format!("{shown}: the file has no token: add one, or leave --tokens out")));
        }
        Ok(Tokens(tokens))
    }

    /// Returns the token of a fingerprint. Takes the same time for every result: compares all of them, each in constant time.
    pub fn find(&self, fingerprint: &Fingerprint) -> Option<&Token> {
        let mut found = None;
        for token in &self.0 {
            if bool::from(token.fingerprint.ct_eq(fingerprint)) {
                found = Some(token);
            }
        }
        found
    }
}

/// Logs a warning where every account of the machine may read the secrets.
fn warn_of_readers(path: &Path) {
    let may_others = std::fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o004 != 0);
    if may_others {
        let text = format!("every account of this machine may read {0}: chmod o-r {0}", path.display());
        log::warning("tokens.exposed", [("text", text.into())]);
    }
}

/// The check that admits or refuses requests.
pub struct Gate {
    path: Option<PathBuf>,
    /// The served names.
    names: Vec<String>,
    tokens: ArcSwap<Tokens>,
}

impl Gate {
    /// Reads the file of tokens. Without a file every request is admitted.
    ///
    /// # Errors
    /// `SPEC`, `OUT_OF_RANGE` for an invalid file; `UNKNOWN_KEY` for a right on a name that is not served.
    pub fn new(path: Option<PathBuf>, names: Vec<String>) -> Result<Self> {
        let gate = Gate { path, names, tokens: ArcSwap::default() };
        if let Some(path) = &gate.path {
            let tokens = Tokens::read(path, &Tokens::default())?;
            if let Some(why) = gate.unserved(path, &tokens) {
                return Err(Error::new(ErrorKind::UnknownKey, why));
            }
            gate.tokens.store(Arc::new(tokens));
        }
        Ok(gate)
    }

    /// Reads the file again and returns the number of tokens; an invalid file changes nothing. A right on a name that is not served is only
    /// logged. Otherwise the revocation of a token in the same file would have to wait until the name is corrected.
    ///
    /// # Errors
    /// `SPEC`, `OUT_OF_RANGE` for an invalid file.
    pub fn reload(&self) -> Result<usize> {
        let Some(path) = &self.path else { return Ok(0) };
        let tokens = Tokens::read(path, &self.tokens.load())?;
        if let Some(why) = self.unserved(path, &tokens) {
            log::warning("tokens.unserved", [("text", why.into())]);
        }
        let count = tokens.0.len();
        self.tokens.store(Arc::new(tokens));
        Ok(count)
    }

    /// Describes a name that a token has a right on and that is not served here, if there is one.
    fn unserved(&self, path: &Path, tokens: &Tokens) -> Option<String> {
        let rights = tokens.0.iter().flat_map(|token| token.mint.iter().chain(&token.lease));
        // Where all namespaces are lent, `*` is a name as well.
        let is_served = |name: &String| self.names.iter().any(|served| served == name || served == ALL);
        let name = rights.into_iter().find(|right| *right != ALL && !is_served(right))?;
        let near = did_you_mean(name, self.names.iter().map(String::as_str));
        Some(format!("{}: a token has a right on {name:?}, which is not served here{near}", path.display()))
    }

    /// Returns whether a token is needed.
    pub fn is_closed(&self) -> bool {
        self.path.is_some()
    }

    /// Returns whether a token has a rate.
    pub fn has_rates(&self) -> bool {
        self.is_closed() && self.tokens.load().0.iter().any(|token| token.rate.is_some())
    }

    /// Returns whether the token exists.
    pub fn knows(&self, fingerprint: &Fingerprint) -> bool {
        self.tokens.load().find(fingerprint).is_some()
    }

    /// Returns whether a token has a right on a name.
    pub fn may(&self, fingerprint: Option<&Fingerprint>, right: Right, name: &str) -> bool {
        self.with_token(fingerprint, |token| Ok(token.may(right, name))).is_ok_and(|may| may.unwrap_or(true))
    }

    /// Returns the most IDs that the token may take at once.
    pub fn most(&self, fingerprint: Option<&Fingerprint>) -> Option<NonZeroU32> {
        self.with_token(fingerprint, |token| Ok(token.rate.as_ref().map(|rate| rate.most))).ok()??
    }

    /// Takes `count` IDs of the token's rate.
    ///
    /// # Errors
    /// `UNAUTHORIZED` without a known token; those of [`Rate::take`].
    pub fn take(&self, fingerprint: Option<&Fingerprint>, count: NonZeroU32) -> refusal::Result<()> {
        self.with_token(fingerprint, |token| token.take(count)).map(drop)
    }

    /// Returns the IDs of a refused request to the rate.
    pub fn refund(&self, fingerprint: Option<&Fingerprint>, count: NonZeroU32) {
        let _ = self.with_token(fingerprint, |token| {
            token.rate.iter().for_each(|rate| rate.refund(count));
            Ok(())
        });
    }

    /// Checks a right on a name, and takes one ID of the token's rate. Metrics take none, because a client that has used up its rate must
    /// not hide them.
    ///
    /// # Errors
    /// `UNAUTHORIZED` without a known token, `FORBIDDEN` without the right. Neither reveals whether the name is served. Those of [`Rate::take`].
    pub fn check(&self, fingerprint: Option<&Fingerprint>, right: Right, name: &str) -> refusal::Result<()> {
        self.with_token(fingerprint, |token| {
            if !token.may(right, name) {
                return Err(token.lacks(right, name));
            }
            if right == Right::Admin { Ok(()) } else { token.take(NonZeroU32::MIN) }
        })
        .map(drop)
    }

    /// Calls a function with the token; returns `None` where no token is needed.
    fn with_token<T>(
        &self,
        fingerprint: Option<&Fingerprint>,
        call: impl FnOnce(&Token) -> refusal::Result<T>,
    ) -> refusal::Result<Option<T>> {
        if !self.is_closed() {
            return Ok(None);
        }
        let tokens = self.tokens.load();
        let Some(token) = fingerprint.and_then(|fingerprint| tokens.find(fingerprint)) else {
            return Err(Refusal::unauthorized("a known token is required"));
        };
        call(token).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Tokens> {
        static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("frazil-tokens-{}-{number}.toml", std::process::id()));
        std::fs::write(&path, text).unwrap();
        let tokens = Tokens::read(&path, &Tokens::default());
        std::fs::remove_file(path).unwrap();
        tokens
    }

    #[test]
    fn a_token_has_the_rights_it_was_given() {
        let tokens =
            read("[shop]\nsecret='0123456789abcdef'\nmint=['a']\n[ops]\nsecret='fedcba9876543210'\nlease=['*']\nadmin=true").unwrap();
        let find = |secret: &[u8]| tokens.find(&fingerprint(secret));
        let (shop, ops) = (find(b"0123456789abcdef").unwrap(), find(b"fedcba9876543210").unwrap());
        assert!(shop.may(Right::Mint, "a") && !shop.may(Right::Mint, "b") && !shop.may(Right::Lease, "a") && !shop.may(Right::Admin, "a"));
        assert!(ops.may(Right::Lease, "b") && ops.may(Right::Admin, "") && !ops.may(Right::Mint, "b"));
        assert!(find(b"0123456789abcdeg").is_none() && find(b"").is_none());
    }

    #[test]
    fn a_wrong_file_is_refused_and_shows_no_secret() {
        for text in [
            "",
            "[a]\nsecret='s3cret'",
            "[a]\nsecret='s3cret-s3cret-s3cret'\nmints=['a']",
            "[a]\nsecret='s3cret-s3cret-s3cret'\n[b]\nsecret='s3cret-s3cret-s3cret'",
            "[a]\nsecret='s3cret-s3cret-s3cret",
            "[a]\nsecret='env:FRAZIL_TEST_NO_SUCH_VARIABLE'",
            "[a]\nsecret=\"s3cret-s3cret-s3cret\\n\"",
        ] {
            let error = read(text).err().unwrap().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
