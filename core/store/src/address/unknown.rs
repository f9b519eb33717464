//! The hint for a text that is not a store.

use super::{KINDS, Kind};
use frazil_base::error::{Error, ErrorKind, shown};
use frazil_base::nearest::{did_you_mean, nearest};

/// Refuses a text that is not a store, and suggests the likely meaning. The text may hold a
/// password, so only its scheme is shown.
pub(super) fn unknown(text: &str) -> Error {
    let scheme = text.split(':').next().unwrap_or_default();
    let folder = text.strip_prefix("file://").unwrap_or(text);
    let given = match text {
        _ if !folder.contains(['@', ':']) => shown(text),
        _ if text.contains("://") => shown(scheme),
        _ => "...".to_owned(),
    };
    let driver = KINDS.iter().find(|(name, _)| name.ends_with("://") && names_driver(text, name));
    let meant = match (scheme, driver) {
        _ if folder.starts_with('/') && !folder.contains('@') => format!(": write store=file:{folder}"),
        (_, Some((name, _))) => format!(": that is another library's way to name its driver: write {name}..."),
        ("sqlite", _) => ": write store=local, or store=file:DIR".to_owned(),
        ("http" | "https", _) => ": write etcd[s]://HOST:PORT for etcd, frazil[s]://HOST:PORT for a frazil-server".to_owned(),
        _ if folder.starts_with(['.', '~']) => ": write store=file:DIR, with the folder's whole path".to_owned(),
        _ => match example(scheme) {
            Some(example) if !text.contains("://") => format!(": write store={example}"),
            _ => did_you_mean(scheme, words().map(|(name, _)| name)),
        },
    };
    let why = format!(
        "store={given} is none of: local, file:DIR, memory, redis[s]://, postgresql://, mysql://, etcd[s]://, zookeeper://, frazil[s]://{meant}"
    );
    Error::new(ErrorKind::Spec, why)
}

/// The kinds by their names, as words.
fn words() -> impl Iterator<Item = (&'static str, Kind)> {
    KINDS.iter().map(|&(name, kind)| (name.trim_end_matches([':', '/']), kind))
}

/// An example address, on this machine, of the server that a perhaps misspelt word names.
fn example(word: &str) -> Option<String> {
    let near = nearest(word, words().map(|(name, _)| name))?;
    let (name, kind) = words().find(|(name, _)| *name == near)?;
    let path = match kind {
        Kind::Memory | Kind::Local => return None,
        Kind::File => return Some("file:DIR, with the folder's whole path".to_owned()),
        Kind::Redis => "/0",
        Kind::Sql => "/app",
        _ => "",
    };
    Some(format!("{name}://localhost{path}"))
}

/// Returns whether a URL has one of these names with a driver in its scheme: SQLAlchemy's
/// `postgresql+psycopg://`, `jdbc:postgresql://`.
fn names_driver(text: &str, name: &str) -> bool {
    let (Some(base), Some((scheme, _))) = (name.strip_suffix("://"), text.split_once("://")) else { return false };
    let scheme = scheme.to_ascii_lowercase();
    scheme.split_once('+').is_some_and(|(before, _)| before == base) || scheme.strip_prefix("jdbc:") == Some(base)
}
