//! The owner of a folder, and the other accounts that may write to it.

use super::super::folder::{Rules, WAYS_OUT};
use super::super::refusal::{self, Refuse, is_absent};
use super::place::{Folder, Status, open_folder};
use frazil_base::error::{ErrorKind, Result};
use rustix::fs::{Mode, fstat, lstat, mkdirat};
use rustix::process::geteuid;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Makes a folder and its parents. If `private`, only this account may use them.
pub(in crate::file) fn make(dir: &Path, private: bool) -> io::Result<()> {
    // The parents of a private folder also belong to the user alone, as in the XDG specification.
    let mode = if private { 0o700 } else { 0o777 };
    DirBuilder::new().recursive(true).mode(mode).create(dir)
}

/// The store's folder, held open, if it exists.
///
/// # Errors
/// `STORE_UNSUITABLE` for a folder that breaks the rules.
pub(in crate::file) fn open(dir: &Path, rules: Rules) -> Result<Option<(OwnedFd, Status)>> {
    // A link may lead to the folder if an administrator or this account has made it.
    match lstat(dir).map(Status::new) {
        Ok(link) if link.is_link() && !is_trusted(link.owner) => {
            let why =
                format!("{} is a link that belongs to account {}, and this is account {}", dir.display(), link.owner, geteuid().as_raw());
            return Err(refusal::error(dir, ErrorKind::StoreUnsuitable, why));
        }
        _ => {}
    }
    let opened = match open_folder(dir) {
        Err(why) if is_absent(&why) => return Ok(None),
        opened => opened.refuse(dir, dir)?,
    };
    let status = Status::new(fstat(&opened).map_err(io::Error::from).refuse(dir, dir)?);
    let (owner, account, mode) = (status.owner, geteuid().as_raw(), status.mode);
    if rules.private && owner != account {
        let why = format!("the folder belongs to account {owner}, and this is {account}: {WAYS_OUT}");
        return Err(refusal::error(dir, ErrorKind::StoreUnsuitable, why));
    }
    if rules.private && mode & 0o022 != 0 {
        let why = format!("other accounts may write to the folder (mode {mode:04o}): chmod 700 it, or name it with store=file:");
        return Err(refusal::error(dir, ErrorKind::StoreUnsuitable, why));
    }
    if !is_trusted(owner) {
        let why = format!(
            "the folder belongs to account {owner}, and this is account {account}: \
             chown it to this account, or for several accounts to root with a group that may write"
        );
        return Err(refusal::error(dir, ErrorKind::StoreUnsuitable, why));
    }
    Ok(Some((opened, status)))
}

/// Returns whether files of the account can be trusted: this account's and root's, as for ssh and
/// sudo.
fn is_trusted(owner: u32) -> bool {
    owner == geteuid().as_raw() || owner == 0
}

/// A namespace's folder, if it exists. `make` makes a missing folder, with the rights that the
/// account's umask leaves.
///
/// # Errors
/// `STORE_UNSUITABLE` for a folder of another account, unless it belongs to the group with which
/// the store's folder is shared.
pub(in crate::file) fn namespace(dir: &Path, name: &str, rules: Rules, make: bool) -> Result<Option<Folder>> {
    let path = dir.join(name);
    let Some((above, shared)) = open(dir, rules)? else { return Ok(None) };
    if make {
        match mkdirat(&above, name, Mode::from_raw_mode(0o777)) {
            Err(rustix::io::Errno::EXIST) => {}
            made => made.map_err(io::Error::from).refuse(dir, &path)?,
        }
    }
    let folder = match Folder::open(&above, name, path.clone()) {
        Err(why) if is_absent(&why) => return Ok(None),
        opened => opened.refuse(dir, &path)?,
    };
    let status = folder.status().refuse(dir, &path)?;
    let of_the_group = shared.mode & 0o020 != 0 && status.group == shared.group;
    if is_trusted(status.owner) || of_the_group {
        return Ok(Some(folder));
    }
    let why = format!("{} belongs to account {}, and this is account {}", path.display(), status.owner, geteuid().as_raw());
    let fix = ": use one account or a group (docs/stores.md), or another namespace=NAME for other tables";
    Err(refusal::error(dir, ErrorKind::StoreUnsuitable, why + fix))
}
