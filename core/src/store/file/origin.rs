//! Which folder this is: for who lends it, to be told from a copy, and from another machine's or container's of the same name.
//!
//! The records are the same in a copy, and what a file could say would be, too. So it is the file itself: its inode, and when the kernel
//! made it, which no copy has both the same, and which stay as they are when the volume is mounted elsewhere. Not the folder's
//! own: that may stand in the image of many containers. (A file system's snapshot, or a cloned disk, has both.)

use super::system::sync_folder;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

const MARK: &str = ".lent";

/// Makes the file where there is none. `None` where that cannot be, or where the file system does not say when.
pub(super) fn of(dir: &Path) -> Option<String> {
    let mark = dir.join(MARK);
    birth(&mark, dir).or_else(|| {
        match File::create_new(&mark) {
            Ok(made) => drop(sync(&made, dir)),
            // Another server may have been first.
            Err(why) if why.kind() == ErrorKind::AlreadyExists => {}
            Err(_) => return None,
        }
        birth(&mark, dir)
    })
}

/// Makes the origin durable: a different one after a power cut would look like another folder.
fn sync(made: &File, dir: &Path) -> io::Result<()> {
    made.sync_all()?;
    sync_folder(dir)
}

#[cfg(target_os = "linux")]
fn birth(mark: &Path, dir: &Path) -> Option<String> {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    let found = shown(mark);
    // In a container it may be the image's, and so the same in many, until it is opened to be written: then the overlay makes one of its own.
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let own = openat(CWD, mark, flags, Mode::empty());
    let told = shown(mark);
    if told != found
        && let Ok(own) = own
    {
        drop(sync(&own.into(), dir));
    }
    told
}

#[cfg(target_os = "linux")]
fn shown(mark: &Path) -> Option<String> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    // Not by std, for which a preloaded library may fake the time.
    let status = statx(CWD, mark, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::INO | StatxFlags::BTIME).ok()?;
    let is_told = StatxFlags::from_bits_retain(status.stx_mask).contains(StatxFlags::BTIME);
    is_told.then(|| format!("{:x}-{:x}-{:x}", status.stx_ino, status.stx_btime.tv_sec, status.stx_btime.tv_nsec))
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
