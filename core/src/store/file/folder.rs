//! The folder: where it is, whose it is, and whether its file system can keep a lease.

use super::place::{Folder, Status, is_absent, open_folder};
use super::refusal::{self, Refuse};
use crate::error::{Error, ErrorKind, Result};
use rustix::fs::{Mode, fstat, lstat, mkdirat};
use rustix::process::geteuid;
use std::env;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const WAYS_OUT: &str = "set FRAZIL_HOME, or give store=file:DIR on a volume that lasts, or a node number such as worker=hostname";
const ELSEWHERE: &str = "give store=file:DIR on a local disk or volume, a store on the network, or a node number such as worker=hostname";

/// The requirements on a folder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// The user named it.
    pub(super) explicit: bool,
    /// It is for one account: mode 0700, and nobody else may have a hand in it.
    pub(super) private: bool,
}

/// The folder of `store=local`: `$FRAZIL_HOME`, else `$XDG_STATE_HOME/frazil`, else `$HOME/.local/state/frazil`.
///
/// Never one in /tmp of its own accord: what empties that folder would empty the store.
///
/// # Errors
/// `STORE_UNSUITABLE` where the account has no home, `SPEC` for a `FRAZIL_HOME` that is not absolute.
pub(in crate::store) fn local_dir() -> Result<PathBuf> {
    local_dir_of(|name| env::var_os(name))
}

/// Returns whether the user named the folder of `store=local`.
pub(super) fn is_given() -> bool {
    env::var_os("FRAZIL_HOME").is_some_and(|home| !home.is_empty())
}

fn local_dir_of(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    let path = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(home) = path("FRAZIL_HOME") {
        return if home.is_absolute() {
            Ok(home)
        } else {
            let why = format!("FRAZIL_HOME={home:?} is not an absolute path: processes in other folders would not meet there");
            Err(Error::new(ErrorKind::Spec, why))
        };
    }
    // The XDG specification has relative paths ignored.
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

/// Makes the folder if it is not there, and refuses one that does not follow the rules.
pub(super) fn prepare(dir: &Path, rules: Rules) -> Result<()> {
    // What is there already says which file system it will be; a folder that is then refused is not left behind.
    let existing = dir.ancestors().find(|folder| folder.exists()).unwrap_or(dir);
    check_file_system(dir, existing, rules.explicit)?;
    // The folders on the way to a private one are the user's own too, as those of the XDG specification.
    let mode = if rules.private { 0o700 } else { 0o777 };
    DirBuilder::new().recursive(true).mode(mode).create(dir).refuse(dir, dir)?;
    match open(dir, rules)? {
        Some(_) => Ok(()),
        None => Err(io::Error::from(io::ErrorKind::NotFound)).refuse(dir, dir),
    }
}

/// The store's folder, held open, if it is there.
///
/// # Errors
/// `STORE_UNSUITABLE` for one that does not follow the rules.
fn open(dir: &Path, rules: Rules) -> Result<Option<(OwnedFd, Status)>> {
    // A link may lead to it where an administrator, or this account, has put it there.
    match lstat(dir).map(Status::new) {
        Ok(link) if link.is_link() && !is_trusted(link.owner) => {
            let why = format!("{} is a link of account {}, and this is account {}", dir.display(), link.owner, geteuid().as_raw());
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
            "the folder belongs to account {owner}, which could do with it as it likes, and this is account {account}: \
             chown it to this account, or to root, with a group that may write, where several accounts share it"
        );
        return Err(refusal::error(dir, ErrorKind::StoreUnsuitable, why));
    }
    Ok(Some((opened, status)))
}

/// Returns whether files of the account can be trusted: as for ssh and sudo, one's own and root's.
fn is_trusted(owner: u32) -> bool {
    owner == geteuid().as_raw() || owner == 0
}

/// A namespace's folder, if it is there; with `make`, it is made where it is not, with the rights that the account's
/// umask leaves.
///
/// # Errors
/// `STORE_UNSUITABLE` for one that another account has put there, unless it belongs to the group with which the store's folder is shared.
pub(super) fn namespace(dir: &Path, name: &str, rules: Rules, make: bool) -> Result<Option<Folder>> {
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
    Err(refusal::error(dir, ErrorKind::StoreUnsuitable, why + ": remove it, or use another namespace"))
}

/// Asks the kernel what file system a folder is on. Only Linux has numbers for them; elsewhere all pass,
/// and a folder on a network is the user's to avoid.
#[cfg(target_os = "linux")]
fn check_file_system(dir: &Path, existing: &Path, explicit: bool) -> Result<()> {
    let kind = rustix::fs::statfs(existing).map_err(io::Error::from).refuse(dir, dir)?.f_type;
    judge(dir, explicit, kind as u32)
}

#[cfg(not(target_os = "linux"))]
fn check_file_system(_: &Path, _: &Path, _: bool) -> Result<()> {
    Ok(())
}

/// File systems with a network or a daemon behind them: their locks may not reach the other machines, their fsync
/// may promise nothing, and a call to them may never return.
const REMOTE: &[(u32, &str)] = &[
    (0x6969, "NFS"),
    (0x6573_5546, "FUSE"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x517b, "SMB"),
    (0x0102_1997, "9P"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x786f_4256, "a VirtualBox share"),
];

/// File systems that end with the container or the machine's uptime.
const PASSING: &[(u32, &str)] = &[
    (0x794c_7630, "an overlay, which ends with its container"),
    (0x6175_6673, "an overlay, which ends with its container"),
    (0x0102_1994, "a tmpfs, which ends at the next boot"),
    (0x8584_58f6, "a ramfs, which ends at the next boot"),
];

/// The kernel's own file systems, which keep no file of a program.
const KERNEL: &[(u32, &str)] = &[
    (0x9fa0, "procfs"),
    (0x6265_6572, "sysfs"),
    (0x1cd1, "devpts"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x7363_6673, "securityfs"),
    (0x6265_6570, "configfs"),
    (0xcafe_4a11, "bpf"),
];

fn name_in(table: &[(u32, &'static str)], kind: u32) -> Option<&'static str> {
    table.iter().find(|row| row.0 == kind).map(|row| row.1)
}

fn judge(dir: &Path, explicit: bool, kind: u32) -> Result<()> {
    let why = match (name_in(REMOTE, kind).or(name_in(KERNEL, kind)), name_in(PASSING, kind)) {
        (Some(name), _) => format!("the folder is on {name}, which keeps no lease: {ELSEWHERE}"),
        (_, Some(name)) if !explicit => format!("the folder is on {name}: {WAYS_OUT}"),
        _ => return Ok(()),
    };
    Err(refusal::error(dir, ErrorKind::StoreUnsuitable, why))
}

/// The file system of a folder, if its files end with the container or the machine's uptime.
#[cfg(all(feature = "admin", target_os = "linux"))]
pub(in crate::store) fn passing(dir: &Path) -> Option<&'static str> {
    rustix::fs::statfs(dir).ok().and_then(|found| name_in(PASSING, found.f_type as u32))
}

#[cfg(all(feature = "admin", not(target_os = "linux")))]
pub(in crate::store) fn passing(_: &Path) -> Option<&'static str> {
    None
}

/// Checks the file system on which a missing folder would be made.
///
/// # Errors
/// `STORE_UNSUITABLE` for one that keeps no lease.
#[cfg(feature = "admin")]
pub(in crate::store) fn check_place(dir: &Path) -> Result<()> {
    let existing = dir.ancestors().find(|folder| folder.exists()).unwrap_or(dir);
    check_file_system(dir, existing, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(variables: &[(&str, &str)]) -> Result<PathBuf> {
        local_dir_of(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn the_first_variable_wins() {
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
            for way in ["FRAZIL_HOME", "store=file:", "worker=hostname"] {
                assert!(error.to_string().contains(way), "{error}");
            }
        }
        assert_eq!(local(&[("FRAZIL_HOME", "f"), ("HOME", "/h")]).unwrap_err().kind(), ErrorKind::Spec);
        assert_eq!(local(&[("FRAZIL_HOME", "/tmp/f")]).unwrap(), Path::new("/tmp/f"), "the user may");
    }

    #[test]
    fn what_a_network_or_a_daemon_stands_behind_is_refused() {
        let dir = Path::new("/d");
        for (kind, name) in REMOTE.iter().chain(KERNEL) {
            for explicit in [true, false] {
                let error = judge(dir, explicit, *kind).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::StoreUnsuitable);
                let text = error.to_string();
                assert!(["file:/d", name, "store=file:", "worker=hostname"].iter().all(|part| text.contains(part)), "{error}");
            }
        }
        for (kind, _) in PASSING {
            judge(dir, true, *kind).unwrap();
            let error = judge(dir, false, *kind).unwrap_err();
            assert!(error.to_string().contains("worker=hostname") && error.to_string().contains("store=file:"), "{error}");
        }
        judge(dir, false, 0xef53).unwrap();
    }
}
