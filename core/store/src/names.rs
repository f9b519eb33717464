//! The names of namespaces and tags. They are parts of keys, folders and table rows, so they have only characters
//! that are safe in all of them.

use frazil_base::error::{Error, ErrorKind, Result, shown};

/// The most characters of a name, and of `NAMESPACE~TAG`, because the columns of all stores hold this many.
const LONGEST: usize = 64;

/// Checks the name of a namespace.
///
/// # Errors
/// `SPEC`.
pub fn check_namespace(name: &str) -> Result<()> {
    if is_name(name) {
        return Ok(());
    }
    let why = format!("namespace={} is not a name: 1 to {LONGEST} of a-z, A-Z, 0-9, . _ -", shown(name));
    Err(Error::new(ErrorKind::Spec, why))
}

/// Checks the names of a tag and of its namespace, which a key contains together.
///
/// # Errors
/// `SPEC`, `OUT_OF_RANGE`.
pub fn check_tag(namespace: &str, tag: &str) -> Result<()> {
    if !is_name(tag) {
        let why = format!("tag {} is not a name: 1 to {LONGEST} of a-z, A-Z, 0-9, . _ -", shown(tag));
        return Err(Error::new(ErrorKind::Spec, why));
    }
    check_namespace(namespace)?;
    let length = namespace.len() + 1 + tag.len();
    if length <= LONGEST {
        return Ok(());
    }
    let why = format!("namespace={namespace} and tag={tag} are {} characters: at most {}", length - 1, LONGEST - 1);
    Err(Error::new(ErrorKind::OutOfRange, why))
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !name.is_empty() && name.len() <= LONGEST && name.chars().all(plain) && !name.chars().all(|c| c == '.')
}
