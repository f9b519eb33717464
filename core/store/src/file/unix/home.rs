//! The place of `store=local`.

use super::super::folder::WAYS_OUT;
use frazil_base::error::{Error, ErrorKind, Result};
use std::path::PathBuf;

/// `$XDG_STATE_HOME/frazil`, or else `$HOME/.local/state/frazil`.
///
/// A folder in /tmp is never chosen, because programs empty /tmp, and would empty the store.
///
/// # Errors
/// `STORE_UNSUITABLE` if the account has no home, or one whose files do not last.
pub(in crate::file) fn home(path: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf> {
    // The XDG specification ignores relative paths.
    let state = path("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let home = || path("HOME").filter(|path| path.is_absolute()).map(|home| home.join(".local/state"));
    let Some(state) = state.or_else(home) else {
        return Err(Error::new(ErrorKind::StoreUnsuitable, format!("store=local: this account has no home folder: {WAYS_OUT}")));
    };
    if ["/tmp", "/var/tmp"].iter().any(|tmp| state.starts_with(tmp)) {
        let why = format!("store=local would be in {}, where files do not last: {WAYS_OUT}", state.display());
        return Err(Error::new(ErrorKind::StoreUnsuitable, why));
    }
    Ok(state.join("frazil"))
}

#[cfg(test)]
mod tests {
    use super::super::super::folder::local_dir_of;
    use super::*;
    use std::path::Path;

    fn local(variables: &[(&str, &str)]) -> Result<PathBuf> {
        local_dir_of(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn first_variable_wins() {
        let all = [("FRAZIL_HOME", "/f"), ("XDG_STATE_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(local(&all).unwrap(), Path::new("/f"));
        assert_eq!(local(&all[1..]).unwrap(), Path::new("/x/frazil"));
        assert_eq!(local(&all[2..]).unwrap(), Path::new("/h/.local/state/frazil"));
        let empty = [("FRAZIL_HOME", ""), ("XDG_STATE_HOME", ""), ("HOME", "/h")];
        assert_eq!(local(&empty).unwrap(), Path::new("/h/.local/state/frazil"));
        assert_eq!(local(&[("XDG_STATE_HOME", "x"), ("HOME", "/h")]).unwrap(), Path::new("/h/.local/state/frazil"));
    }

    #[test]
    fn no_home_names_the_ways_out() {
        for variables in [&[][..], &[("HOME", "")], &[("HOME", "relative")], &[("HOME", "/tmp")], &[("XDG_STATE_HOME", "/var/tmp/x")]] {
            let error = local(variables).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StoreUnsuitable);
            for way in ["FRAZIL_HOME", "store=file:", "one for all processes", "worker=hostname"] {
                assert!(error.to_string().contains(way), "{error}");
            }
        }
        assert_eq!(local(&[("FRAZIL_HOME", "f"), ("HOME", "/h")]).unwrap_err().kind(), ErrorKind::Spec);
        assert_eq!(local(&[("FRAZIL_HOME", "/tmp/f")]).unwrap(), Path::new("/tmp/f"), "the user may");
    }
}
