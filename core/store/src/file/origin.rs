//! The identity of a folder. It shows a server that lends the folder whether this is a copy, or a
//! folder of the same name on another machine or in another container.
//!
//! A copy has the same records, and would have the same text in any file. So the identity is a file
//! itself: its inode, and the time at which the kernel made it. A copy differs in at least one of
//! them, and both stay when the volume is mounted elsewhere. The folder's own inode is not used,
//! because the folder may be part of an image of many containers. (A snapshot of a file system, or
//! a cloned disk, has the same identity.)

use super::system::sync_folder;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

const MARK: &str = ".lent";

/// Makes the file if it does not exist, and returns its identity. `None` if that is not possible,
/// or if the file system does not record the time.
pub(super) fn of(dir: &Path) -> Option<String> {
    let mark = dir.join(MARK);
    birth(&mark, dir).or_else(|| {
        match File::create_new(&mark) {
            Ok(made) => drop(sync(&made, dir)),
            // Another server may have made it first.
            Err(why) if why.kind() == ErrorKind::AlreadyExists => {}
            Err(_) => return None,
        }
        birth(&mark, dir)
    })
}

/// Makes the origin durable, because a different one after a power cut would look like another
/// folder.
fn sync(made: &File, dir: &Path) -> io::Result<()> {
    made.sync_all()?;
    sync_folder(dir)
}

#[cfg(target_os = "linux")]
fn birth(mark: &Path, dir: &Path) -> Option<String> {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    let found = shown(mark);
    // In a container, the file may belong to the image, and be the same in many containers, until
    // it is opened for writing. Then the overlay makes a separate copy.
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let own = openat(CWD, mark, flags, Mode::empty());
    let shown_first = shown(mark);
    if shown_first != found
        && let Ok(own) = own
    {
        drop(sync(&own.into(), dir));
    }
    shown_first
}

#[cfg(target_os = "linux")]
fn shown(mark: &Path) -> Option<String> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    // std is not used, because a preloaded library may fake the time for it.
    let status = statx(CWD, mark, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::INO | StatxFlags::BTIME).ok()?;
    let has_birth = StatxFlags::from_bits_retain(status.stx_mask).contains(StatxFlags::BTIME);
    has_birth.then(|| format!("{:x}-{:x}-{:x}", status.stx_ino, status.stx_btime.tv_sec, status.stx_btime.tv_nsec))
}

#[cfg(all(unix, not(target_os = "linux")))]
fn birth(mark: &Path, _dir: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let status = mark.symlink_metadata().ok()?;
    let made = status.created().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(format!("{:x}-{:x}-{:x}", status.ino(), made.as_secs(), made.subsec_nanos()))
}

#[cfg(windows)]
fn birth(mark: &Path, _dir: &Path) -> Option<String> {
    let status = super::system::Status::at(mark).ok().filter(|status| !status.is_link())?;
    Some(format!("{:x}-{:x}-{:x}", status.device, status.inode, status.created))
}
