//! The folder of a store: its place, and the requirements on it.

use super::refusal::Refuse;
use super::system;
use frazil_base::error::{Error, ErrorKind, Result};
use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

pub(super) const WAYS_OUT: &str = "set FRAZIL_HOME, or give store=file:DIR on a volume that lasts, one for all processes, or give each \
     process its own node number (worker=hostname, if host names end in different numbers)";
pub(super) const ELSEWHERE: &str = "give a store on the network; or, if all processes are on this machine, one store=file:DIR on a \
     local disk or volume; or give each process its own node number (worker=hostname, if host names end in different numbers)";

/// The requirements on a folder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// True if the user named it.
    pub(super) explicit: bool,
    /// True if it is for one account, and other accounts must not write to it.
    pub(super) private: bool,
}

/// The folder of `store=local`: `FRAZIL_HOME`, or else the system's folder for the state of an
/// account's programs.
///
/// # Errors
/// `STORE_UNSUITABLE` if the account has no such folder, `SPEC` for a `FRAZIL_HOME` that is not
/// absolute.
pub(crate) fn local_dir() -> Result<PathBuf> {
    local_dir_of(|name| env::var_os(name))
}

/// Returns whether the user named the folder of `store=local`.
pub(super) fn is_given() -> bool {
    env::var_os("FRAZIL_HOME").is_some_and(|home| !home.is_empty())
}

pub(super) fn local_dir_of(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    match path("FRAZIL_HOME") {
        Some(home) if home.is_absolute() => Ok(home),
        Some(home) => {
            let why = format!("FRAZIL_HOME={home:?} is not an absolute path: processes in other folders would use different stores");
            Err(Error::new(ErrorKind::Spec, why))
        }
        None => system::home(path),
    }
}

/// Makes the folder if it does not exist, and refuses a folder that breaks the rules.
pub(super) fn prepare(dir: &Path, rules: Rules) -> Result<()> {
    // An existing parent shows the file system of the new folder. So a refused folder is never
    // made.
    system::check_volume(dir, existing(dir), rules.explicit)?;
    system::make(dir, rules.private).refuse(dir, dir)?;
    match system::open(dir, rules)? {
        Some(_) => Ok(()),
        None => Err(io::Error::from(io::ErrorKind::NotFound)).refuse(dir, dir),
    }
}

/// The nearest existing folder on the path of this one.
fn existing(dir: &Path) -> &Path {
    dir.ancestors().find(|folder| folder.exists()).unwrap_or(dir)
}

/// Checks the file system on which a missing folder would be made.
///
/// # Errors
/// `STORE_UNSUITABLE` for a file system that keeps no lease.
pub(crate) fn check_place(dir: &Path) -> Result<()> {
    system::check_volume(dir, existing(dir), true)
}
