//! Folders and files that are opened as what they are, or not at all.
//!
//! Other accounts may be able to write here, and put a link, a FIFO or a second name of somebody's file in the place of
//! a record: what is opened through it would be read, waited for or overwritten. So a namespace's folder is held open, and files are
//! opened in it without following links and without waiting; then the file that was opened is looked at, not its name.

use super::super::refusal::{elsewhere, misplaced};
use crate::error::ErrorKind;
use crate::fork::off_the_standard_streams;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, lstat, openat, renameat, statat, unlinkat};
#[cfg(target_os = "linux")]
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A namespace's folder, held open.
pub(in crate::store::file) struct Folder {
    fd: OwnedFd,
    /// The path, for errors and to check that the name still leads here.
    pub(in crate::store::file) path: PathBuf,
}

/// The kernel's facts about a file, in the same types on every system.
#[derive(Clone, Copy)]
pub(in crate::store::file) struct Status {
    pub(in crate::store::file) device: u64,
    pub(in crate::store::file) inode: u64,
    pub(in crate::store::file) owner: u32,
    pub(in crate::store::file) group: u32,
    /// Without the type.
    pub(in crate::store::file) mode: u32,
    pub(in crate::store::file) size: u64,
    pub(in crate::store::file) modified_ms: i64,
    kind: FileType,
    names: u64,
}

impl Status {
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion, reason = "the types differ from system to system")]
    pub(in crate::store::file) fn new(stat: Stat) -> Self {
        Status {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            owner: stat.st_uid,
            group: stat.st_gid,
            mode: u32::from(stat.st_mode) & 0o7777,
            size: stat.st_size as u64,
            modified_ms: stat.st_mtime as i64 * 1000 + stat.st_mtime_nsec as i64 / 1_000_000,
            kind: FileType::from_raw_mode(stat.st_mode),
            names: stat.st_nlink as u64,
        }
    }

    pub(in crate::store::file) fn is_link(&self) -> bool {
        self.kind == FileType::Symlink
    }

    pub(in crate::store::file) fn is_same_file(&self, other: &Status) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// # Errors
    /// For what is no file, or a file that has another name, where it may be somebody else's.
    fn check_file(&self) -> io::Result<()> {
        match self.kind {
            FileType::RegularFile if self.names <= 1 => Ok(()),
            FileType::RegularFile => Err(misplaced(format!(
                "the file has {} names (hard links), and may be something else as well: replace it by a copy",
                self.names
            ))),
            FileType::Directory => Err(io::ErrorKind::IsADirectory.into()),
            _ => Err(misplaced("a file is needed here, and this is a FIFO, a socket or a device: stop all and remove it")),
        }
    }
}

/// Opens a folder by its path, on which links are followed.
pub(in crate::store::file) fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    // Where passing through it is all that the account may do, and the system has a way to say so.
    #[cfg(target_os = "linux")]
    let access = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let access = OFlags::RDONLY;
    Ok(openat(CWD, path, access | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

impl Folder {
    pub(in crate::store::file) fn open(above: &OwnedFd, name: &str, path: PathBuf) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(Folder { fd: openat(above, name, flags, Mode::empty())?, path })
    }

    pub(in crate::store::file) fn status(&self) -> io::Result<Status> {
        Ok(Status::new(fstat(&self.fd)?))
    }

    /// The names of all that is in it, those that are text.
    pub(in crate::store::file) fn names(&self) -> io::Result<impl Iterator<Item = io::Result<String>>> {
        let entries = Dir::read_from(&self.fd)?;
        Ok(entries.filter_map(|entry| match entry {
            Ok(entry) => entry.file_name().to_str().ok().map(|name| Ok(name.to_owned())),
            Err(why) => Some(Err(why.into())),
        }))
    }

    /// Opens a file that is there.
    pub(in crate::store::file) fn read(&self, name: &str) -> io::Result<File> {
        self.open_file(name, OFlags::RDONLY).map(|(file, _)| file)
    }

    /// Opens a file that is there, to write to it; nothing is cut off.
    pub(in crate::store::file) fn write(&self, name: &str) -> io::Result<File> {
        // For writing alone a FIFO cannot be opened without a reader.
        self.open_file(name, OFlags::RDWR).map(|(file, _)| file)
    }

    /// Opens a file, or makes it, and says what it is.
    pub(in crate::store::file) fn find_or_make(&self, name: &str) -> io::Result<(File, Status)> {
        self.open_file(name, OFlags::RDWR | OFlags::CREATE)
    }

    /// Makes a file in the place of one that an interrupted call may have left.
    pub(in crate::store::file) fn make_anew(&self, name: &str) -> io::Result<File> {
        self.try_make_anew(name).map_err(|why| elsewhere(self.path.join(name), why))
    }

    fn try_make_anew(&self, name: &str) -> io::Result<File> {
        match statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).map(Status::new) {
            Ok(left) if left.is_link() => {
                return Err(misplaced("no link is followed here: stop all and remove it"));
            }
            Ok(left) => {
                left.check_file()?;
                unlinkat(&self.fd, name, AtFlags::empty())?;
            }
            Err(Errno::NOENT) => {}
            Err(why) => return Err(why.into()),
        }
        self.open_file(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL).map(|(file, _)| file)
    }

    /// Gives a file another name, in the place of what has that name.
    pub(in crate::store::file) fn rename(&self, old: &str, new: &str) -> io::Result<()> {
        Ok(renameat(&self.fd, old, &self.fd, new)?)
    }

    fn open_file(&self, name: &str, flags: OFlags) -> io::Result<(File, Status)> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = off_the_standard_streams(openat(self.fd.as_fd(), name, flags, Mode::from_raw_mode(0o666))?)?;
        let status = Status::new(fstat(&file)?);
        status.check_file()?;
        Ok((file.into(), status))
    }
}

/// An empty byte more or less: it takes no space, so a full disk does not stop the clock. Where another process is faster
/// the size may not change here, but then it has changed since this call began.
pub(in crate::store::file) fn read_clock(file: &File) -> io::Result<i64> {
    let empty = fstat(file)?.st_size == 0;
    file.set_len(u64::from(empty))?;
    Ok(Status::new(fstat(file)?).modified_ms)
}

/// The clock that [`read_clock`] reads, where there is no file. On Linux a new file in memory has the kernel's time, too, which no preloaded
/// library turns.
pub(in crate::store::file) fn now_ms() -> io::Result<i64> {
    #[cfg(target_os = "linux")]
    return Ok(Status::new(fstat(memfd_create("frazil", MemfdFlags::CLOEXEC)?)?).modified_ms);
    #[cfg(not(target_os = "linux"))]
    Ok(crate::clock::system_ms())
}

/// Returns whether a name leads to this very file.
pub(in crate::store::file) fn is_at(path: &Path, status: &Status) -> bool {
    lstat(path).is_ok_and(|there| Status::new(there).is_same_file(status))
}

/// Writes all of the bytes to a place in a file.
pub(in crate::store::file) fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    file.write_all_at(bytes, at)
}

/// Puts a folder's entries on the disk; for the first record of all, also the entries of the folders that lead
/// to it, as whoever made them may have been interrupted.
pub(in crate::store::file) fn sync_names(folder: &Folder, all: bool) -> io::Result<()> {
    let device = folder.status()?.device;
    for (distance, folder) in folder.path.ancestors().enumerate().take_while(|(distance, _)| all || *distance == 0) {
        match File::open(folder) {
            Ok(entries) if entries.metadata()?.dev() == device => entries.sync_all()?,
            Ok(_) => break,
            // A folder that may be passed through but not read is not of our making.
            Err(why) if distance > 1 && why.kind() == io::ErrorKind::PermissionDenied => {}
            Err(why) => return Err(why),
        }
    }
    Ok(())
}

/// Puts a folder's entries on the disk.
#[cfg(feature = "lend")]
pub(in crate::store::file) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Returns whether the error is of a disk that cannot read or write a place.
pub(in crate::store::file) fn is_bad_disk(why: &io::Error) -> bool {
    why.raw_os_error() == Some(Errno::IO.raw_os_error())
}

/// The error of such a disk.
#[cfg(test)]
pub(in crate::store::file) fn bad_disk() -> io::Error {
    Errno::IO.into()
}

/// The row of the error table and the fix for errors that std has no kind for.
pub(in crate::store::file) fn hint(why: &io::Error) -> Option<(ErrorKind, &'static str)> {
    match Errno::from_io_error(why)? {
        // EMLINK is FreeBSD's word for the first.
        Errno::LOOP | Errno::MLINK => Some((ErrorKind::StoreUnsuitable, "no link is followed here: stop all and remove it")),
        // A socket, or a device without a driver.
        Errno::NXIO | Errno::NODEV | Errno::OPNOTSUPP => {
            Some((ErrorKind::StoreUnsuitable, "a file is needed here: stop all and remove it"))
        }
        Errno::MFILE | Errno::NFILE => Some((ErrorKind::StoreUnreachable, "raise the limit of open files (ulimit -n), or close some")),
        _ => None,
    }
}
