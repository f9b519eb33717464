//! The place of `store=local`.

use super::super::folder::WAYS_OUT;
use frazil_base::error::{Error, ErrorKind, Result};
use std::path::PathBuf;

/// `%LOCALAPPDATA%\frazil`, which does not roam to other machines as `%APPDATA%` does.
///
/// # Errors
/// `STORE_UNSUITABLE` if the account has no such folder.
pub(in crate::file) fn home(path: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf> {
    let profile = || path("USERPROFILE").map(|profile| profile.join(r"AppData\Local"));
    match path("LOCALAPPDATA").or_else(profile).filter(|path| path.is_absolute()) {
        Some(local) => Ok(local.join("frazil")),
        None => Err(Error::new(ErrorKind::StoreUnsuitable, format!("store=local: this account has no profile folder: {WAYS_OUT}"))),
    }
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
        let all = [("FRAZIL_HOME", r"F:\f"), ("LOCALAPPDATA", r"C:\l"), ("USERPROFILE", r"C:\u")];
        assert_eq!(local(&all).unwrap(), Path::new(r"F:\f"));
        assert_eq!(local(&all[1..]).unwrap(), Path::new(r"C:\l\frazil"));
        assert_eq!(local(&all[2..]).unwrap(), Path::new(r"C:\u\AppData\Local\frazil"));
        assert_eq!(local(&[("FRAZIL_HOME", ""), ("LOCALAPPDATA", r"C:\l")]).unwrap(), Path::new(r"C:\l\frazil"));
    }

    #[test]
    fn no_home_names_the_ways_out() {
        for variables in [&[][..], &[("LOCALAPPDATA", "")], &[("LOCALAPPDATA", "relative")], &[("USERPROFILE", r"\u")]] {
            let error = local(variables).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StoreUnsuitable);
            for way in ["FRAZIL_HOME", "store=file:", "one for all processes", "worker=hostname"] {
                assert!(error.to_string().contains(way), "{error}");
            }
        }
        for relative in ["f", r"\f", "F:f"] {
            assert_eq!(local(&[("FRAZIL_HOME", relative)]).unwrap_err().kind(), ErrorKind::Spec);
        }
    }
}
