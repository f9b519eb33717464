//! Folders and files. Only a real folder is opened as a folder, and only a regular file as a file.
//!
//! Other accounts may be able to write here, and replace a record by a link, a FIFO or a second
//! name of another file. Opening it would then read, wait for or overwrite something else. So a
//! namespace's folder is held open. Files are opened in it without following links and without
//! waiting. Then the opened file is checked, and not its name.

use super::super::refusal::{elsewhere, misplaced};
use frazil_base::error::ErrorKind;
use frazil_base::os::fork::off_the_standard_streams;
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
pub(in crate::file) struct Folder {
    fd: OwnedFd,
    /// The path, for errors, and to check that the name still leads here.
    pub(in crate::file) path: PathBuf,
}

/// The kernel's facts about a file, in the same types on every system.
#[derive(Clone, Copy)]
pub(in crate::file) struct Status {
    pub(in crate::file) device: u64,
    pub(in crate::file) inode: u64,
    pub(in crate::file) owner: u32,
    pub(in crate::file) group: u32,
    /// The permissions, without the type.
    pub(in crate::file) mode: u32,
    pub(in crate::file) size: u64,
    pub(in crate::file) modified_ms: i64,
    kind: FileType,
    names: u64,
}

impl Status {
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion, reason = "the types differ from system to system")]
    pub(in crate::file) fn new(stat: Stat) -> Self {
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

    pub(in crate::file) fn is_link(&self) -> bool {
        self.kind == FileType::Symlink
    }

    pub(in crate::file) fn is_same_file(&self, other: &Status) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// # Errors
    /// Returns an error for anything but a file, and for a file with a second name, which may
    /// belong to another program.
    fn check_file(&self) -> io::Result<()> {
        match self.kind {
            FileType::RegularFile if self.names <= 1 => Ok(()),
            FileType::RegularFile => Err(misplaced(format!(
                "the file has {} names (hard links), and may be something else as well: replace it by a copy",
                self.names
            ))),
            FileType::Directory => Err(io::ErrorKind::IsADirectory.into()),
            _ => Err(misplaced("a file is needed here, not a FIFO, a socket or a device: stop all processes and remove it")),
        }
    }
}

/// Opens a folder by its path, and follows links.
pub(in crate::file) fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    // This flag allows folders that the account may only pass through.
    #[cfg(target_os = "linux")]
    let access = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let access = OFlags::RDONLY;
    Ok(openat(CWD, path, access | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

impl Folder {
    pub(in crate::file) fn open(above: &OwnedFd, name: &str, path: PathBuf) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(Folder { fd: openat(above, name, flags, Mode::empty())?, path })
    }

    pub(in crate::file) fn status(&self) -> io::Result<Status> {
        Ok(Status::new(fstat(&self.fd)?))
    }

    /// The names in the folder that are text.
    pub(in crate::file) fn names(&self) -> io::Result<impl Iterator<Item = io::Result<String>>> {
        let entries = Dir::read_from(&self.fd)?;
        Ok(entries.filter_map(|entry| match entry {
            Ok(entry) => entry.file_name().to_str().ok().map(|name| Ok(name.to_owned())),
            Err(why) => Some(Err(why.into())),
        }))
    }

    /// Opens an existing file.
    pub(in crate::file) fn read(&self, name: &str) -> io::Result<File> {
        self.open_file(name, OFlags::RDONLY).map(|(file, _)| file)
    }

    /// Opens an existing file for writing, without truncating it.
    pub(in crate::file) fn write(&self, name: &str) -> io::Result<File> {
        // A FIFO without a reader could not be opened for writing alone.
        self.open_file(name, OFlags::RDWR).map(|(file, _)| file)
    }

    /// Opens a file, or makes it. Returns its status, too.
    pub(in crate::file) fn find_or_make(&self, name: &str) -> io::Result<(File, Status)> {
        self.open_file(name, OFlags::RDWR | OFlags::CREATE)
    }

    /// Makes a file in place of one that an interrupted call may have left.
    pub(in crate::file) fn make_anew(&self, name: &str) -> io::Result<File> {
        self.try_make_anew(name).map_err(|why| elsewhere(self.path.join(name), why))
    }

    fn try_make_anew(&self, name: &str) -> io::Result<File> {
        match statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).map(Status::new) {
            Ok(left) if left.is_link() => {
                return Err(misplaced("no link is followed here: stop all processes and remove it"));
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

    /// Renames a file, and replaces the file that has the new name.
    pub(in crate::file) fn rename(&self, old: &str, new: &str) -> io::Result<()> {
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

/// Adds or removes an empty byte, and reads the file's time. The byte takes no space, so a full
/// disk does not stop the clock. If another process is faster, this call may not change the size,
/// but the other one has changed it since this call began.
pub(in crate::file) fn read_clock(file: &File) -> io::Result<i64> {
    let empty = fstat(file)?.st_size == 0;
    file.set_len(u64::from(empty))?;
    Ok(Status::new(fstat(file)?).modified_ms)
}

/// The clock that [`read_clock`] reads, for calls without a file. On Linux a new file in memory
/// has the kernel's time, too, which no preloaded library changes.
pub(in crate::file) fn now_ms() -> io::Result<i64> {
    #[cfg(target_os = "linux")]
    return Ok(Status::new(fstat(memfd_create("frazil", MemfdFlags::CLOEXEC)?)?).modified_ms);
    #[cfg(not(target_os = "linux"))]
    Ok(frazil_base::time::system_ms())
}

/// Returns whether a name leads to this file.
pub(in crate::file) fn is_at(path: &Path, status: &Status) -> bool {
    lstat(path).is_ok_and(|there| Status::new(there).is_same_file(status))
}

/// Writes all bytes at a position of a file.
pub(in crate::file) fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    file.write_all_at(bytes, at)
}

/// Puts a folder's entries on the disk. For the first record, does this for the parents, too,
/// because their maker may have been interrupted.
pub(in crate::file) fn sync_names(folder: &Folder, all: bool) -> io::Result<()> {
    let device = folder.status()?.device;
    for (distance, folder) in folder.path.ancestors().enumerate().take_while(|(distance, _)| all || *distance == 0) {
        match File::open(folder) {
            Ok(entries) if entries.metadata()?.dev() == device => entries.sync_all()?,
            Ok(_) => break,
            // frazil does not make folders that it may pass through but not read.
            Err(why) if distance > 1 && why.kind() == io::ErrorKind::PermissionDenied => {}
            Err(why) => return Err(why),
        }
    }
    Ok(())
}

/// Puts a folder's entries on the disk.
pub(in crate::file) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Returns whether the error means that a disk cannot read or write at a position.
pub(in crate::file) fn is_bad_disk(why: &io::Error) -> bool {
    why.raw_os_error() == Some(Errno::IO.raw_os_error())
}

/// The error of a bad disk.
#[cfg(test)]
pub(in crate::file) fn bad_disk() -> io::Error {
    Errno::IO.into()
}

/// The row of the error table and the fix for errors that std has no kind for.
pub(in crate::file) fn hint(why: &io::Error) -> Option<(ErrorKind, &'static str)> {
    match Errno::from_io_error(why)? {
        // FreeBSD returns EMLINK for a link.
        Errno::LOOP | Errno::MLINK => Some((ErrorKind::StoreUnsuitable, "no link is followed here: stop all processes and remove it")),
        // A socket, or a device without a driver.
        Errno::NXIO | Errno::NODEV | Errno::OPNOTSUPP => {
            Some((ErrorKind::StoreUnsuitable, "a file is needed here: stop all processes and remove it"))
        }
        Errno::MFILE | Errno::NFILE => Some((ErrorKind::StoreUnreachable, "raise the limit of open files (ulimit -n), or close some")),
        _ => None,
    }
}
