//! The file system that a folder is on, as macOS and FreeBSD describe it; other systems say nothing of it in the same way, and all pass there.

use crate::error::Result;
use std::path::Path;

/// Refuses what the kernel does not call local, as a network or a daemon stands behind it.
#[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
pub(in crate::store::file) fn check(dir: &Path, existing: &Path, _: bool) -> Result<()> {
    use super::super::folder::ELSEWHERE;
    use super::super::refusal::{self, Refuse};
    use crate::error::ErrorKind;

    let flags = rustix::fs::statfs(existing).map_err(std::io::Error::from).refuse(dir, dir)?.f_flags;
    if u64::from(flags) & libc::MNT_LOCAL as u64 != 0 {
        return Ok(());
    }
    let why = format!("the folder is on a network's file system, which keeps no lease: {ELSEWHERE}");
    Err(refusal::error(dir, ErrorKind::StoreUnsuitable, why))
}

#[cfg(not(any(target_vendor = "apple", target_os = "freebsd")))]
pub(in crate::store::file) fn check(_: &Path, _: &Path, _: bool) -> Result<()> {
    Ok(())
}

/// The file system of a folder, if its files end with the container or the machine's uptime: none is known to here.
#[cfg(feature = "admin")]
pub(in crate::store) fn passing(_: &Path) -> Option<&'static str> {
    None
}
