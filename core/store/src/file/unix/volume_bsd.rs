//! The file system of a folder, by the functions of macOS and FreeBSD. Other systems have other
//! functions, so every folder is accepted there.

use frazil_base::error::Result;
use std::path::Path;

/// Refuses a file system that the kernel does not call local, because it depends on a network or a
/// daemon.
#[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
pub(in crate::file) fn check(dir: &Path, existing: &Path, _: bool) -> Result<()> {
    use super::super::folder::ELSEWHERE;
    use super::super::refusal::{self, Refuse};
    use frazil_base::error::ErrorKind;

    let flags = rustix::fs::statfs(existing).map_err(std::io::Error::from).refuse(dir, dir)?.f_flags;
    if u64::from(flags) & libc::MNT_LOCAL as u64 != 0 {
        return Ok(());
    }
    let why = format!("the folder is on a network's file system, which keeps no lease: {ELSEWHERE}");
    Err(refusal::error(dir, ErrorKind::StoreUnsuitable, why))
}

#[cfg(not(any(target_vendor = "apple", target_os = "freebsd")))]
pub(in crate::file) fn check(_: &Path, _: &Path, _: bool) -> Result<()> {
    Ok(())
}

/// The file system of a folder, if its files end with the container or the machine's uptime. No
/// such file system is known here.
pub(crate) fn passing(_: &Path) -> Option<&'static str> {
    None
}
