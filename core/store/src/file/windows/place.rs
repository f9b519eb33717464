//! Folders and files. Only a real folder is opened as a folder, and only a regular file as a file.
//!
//! Other accounts may be able to write here, and replace a record by a link or a second name of
//! another file. So every open call opens a link itself, as a reparse point, and the opened file is
//! checked instead of its name. A namespace's folder is held open without `FILE_SHARE_DELETE`, so
//! no other folder can get its name. The files in it are opened by their paths.

use super::super::refusal::{elsewhere, is_absent, misplaced};
use frazil_base::error::ErrorKind;
use frazil_base::os::windows::done;
use frazil_base::time::system_ms;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::os::windows::io::AsRawHandle;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_CRC, ERROR_DELETE_PENDING, ERROR_FILE_CORRUPT, ERROR_INVALID_FUNCTION, ERROR_INVALID_PARAMETER,
    ERROR_IO_DEVICE, ERROR_NOT_SUPPORTED, ERROR_SECTOR_NOT_FOUND, ERROR_SHARING_VIOLATION, ERROR_TOO_MANY_OPEN_FILES, WIN32_ERROR,
};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_REPARSE_POINT, FILE_BASIC_INFO, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT,
    FILE_ID_INFO, FILE_INFO_BY_HANDLE_CLASS, FILE_READ_ATTRIBUTES, FILE_SHARE_READ, FILE_SHARE_WRITE, FILE_STANDARD_INFO, FileBasicInfo,
    FileIdInfo, FileStandardInfo, GetFileInformationByHandleEx, READ_CONTROL,
};

/// The number of attempts to open or rename a file that a scanner or a backup may hold. The pause
/// between two is a millisecond.
const ATTEMPTS: u32 = 200;

/// The errors of a file system for a function that it does not support.
const UNKNOWN: &[WIN32_ERROR] = &[ERROR_INVALID_FUNCTION, ERROR_INVALID_PARAMETER, ERROR_NOT_SUPPORTED];

/// A namespace's folder, held open.
pub(in crate::file) struct Folder {
    handle: File,
    /// The path, for errors, and to check that the name still leads here.
    pub(in crate::file) path: PathBuf,
}

/// The system's facts about a file.
#[derive(Clone, Copy)]
pub(in crate::file) struct Status {
    /// The volume's serial number.
    pub(in crate::file) device: u64,
    /// The file's number, which has 128 bits on ReFS.
    pub(in crate::file) inode: u128,
    pub(in crate::file) size: u64,
    pub(in crate::file) created: i64,
    attributes: u32,
    names: u32,
}

/// Returns one of Windows' structures that describe an open file.
///
/// # Safety
/// `T` is the structure of the class.
unsafe fn ask<T: Default>(file: &File, class: FILE_INFO_BY_HANDLE_CLASS) -> io::Result<T> {
    let mut answer = T::default();
    // SAFETY: the handle is open, and the place has the size that is given.
    done(unsafe { GetFileInformationByHandleEx(file.as_raw_handle(), class, (&raw mut answer).cast(), size_of::<T>() as u32) })?;
    Ok(answer)
}

impl Status {
    pub(in crate::file) fn of(file: &File) -> io::Result<Self> {
        // SAFETY: the structures are those of their classes.
        let (id, standard, basic) = unsafe {
            let id: FILE_ID_INFO = ask(file, FileIdInfo).map_err(without_number)?;
            let standard: FILE_STANDARD_INFO = ask(file, FileStandardInfo)?;
            let basic: FILE_BASIC_INFO = ask(file, FileBasicInfo)?;
            (id, standard, basic)
        };
        Ok(Status {
            device: id.VolumeSerialNumber,
            inode: u128::from_le_bytes(id.FileId.Identifier),
            size: standard.EndOfFile as u64,
            created: basic.CreationTime,
            attributes: basic.FileAttributes,
            names: standard.NumberOfLinks,
        })
    }

    pub(in crate::file) fn at(path: &Path) -> io::Result<Self> {
        Self::of(&itself().access_mode(FILE_READ_ATTRIBUTES).open(path)?)
    }

    pub(in crate::file) fn is_link(&self) -> bool {
        self.attributes & FILE_ATTRIBUTE_REPARSE_POINT != 0
    }

    pub(in crate::file) fn is_folder(&self) -> bool {
        self.attributes & FILE_ATTRIBUTE_DIRECTORY != 0
    }

    pub(in crate::file) fn is_same_file(&self, other: &Status) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// # Errors
    /// Returns an error for anything but a file, and for a file with a second name, which may
    /// belong to another program.
    fn check_file(&self) -> io::Result<()> {
        self.check_link()?;
        match self.names {
            _ if self.is_folder() => Err(io::ErrorKind::IsADirectory.into()),
            0 | 1 => Ok(()),
            names => {
                Err(misplaced(format!("the file has {names} names (hard links), and may be something else as well: replace it by a copy")))
            }
        }
    }

    fn check_link(&self) -> io::Result<()> {
        if self.is_link() { Err(misplaced("no link is followed here: stop all processes and remove it")) } else { Ok(()) }
    }
}

/// The options that open a link itself, or a folder.
fn itself() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT | FILE_FLAG_BACKUP_SEMANTICS);
    options
}

/// Opens a folder by its path, and follows links, to find its owner.
pub(super) fn open_folder(path: &Path) -> io::Result<File> {
    let folder = OpenOptions::new().access_mode(FILE_READ_ATTRIBUTES | READ_CONTROL).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path)?;
    if Status::of(&folder)?.is_folder() { Ok(folder) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

impl Folder {
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let mut options = itself();
        options.access_mode(FILE_READ_ATTRIBUTES | READ_CONTROL).share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE);
        let handle = options.open(&path)?;
        let status = Status::of(&handle)?;
        status.check_link()?;
        if status.is_folder() { Ok(Folder { handle, path }) } else { Err(io::ErrorKind::NotADirectory.into()) }
    }

    pub(super) fn handle(&self) -> &File {
        &self.handle
    }

    /// The names in the folder that are text.
    pub(in crate::file) fn names(&self) -> io::Result<impl Iterator<Item = io::Result<String>>> {
        Ok(self.path.read_dir()?.filter_map(|entry| match entry {
            Ok(entry) => entry.file_name().into_string().ok().map(Ok),
            Err(why) => Some(Err(why)),
        }))
    }

    /// Opens an existing file.
    pub(in crate::file) fn read(&self, name: &str) -> io::Result<File> {
        self.open_file(name, itself().read(true)).map(|(file, _)| file)
    }

    /// Opens an existing file for writing, without truncating it.
    pub(in crate::file) fn write(&self, name: &str) -> io::Result<File> {
        self.open_file(name, itself().read(true).write(true)).map(|(file, _)| file)
    }

    /// Opens a file, or makes it. Returns its status, too.
    pub(in crate::file) fn find_or_make(&self, name: &str) -> io::Result<(File, Status)> {
        self.open_file(name, itself().read(true).write(true).create(true))
    }

    /// Makes a file in place of one that an interrupted call may have left.
    pub(in crate::file) fn make_anew(&self, name: &str) -> io::Result<File> {
        self.try_make_anew(name).map_err(|why| elsewhere(self.path.join(name), why))
    }

    fn try_make_anew(&self, name: &str) -> io::Result<File> {
        let path = self.path.join(name);
        match Status::at(&path) {
            Ok(left) => {
                left.check_file()?;
                with_retries(|| fs::remove_file(&path))?;
            }
            Err(why) if is_absent(&why) => {}
            Err(why) => return Err(why),
        }
        self.open_file(name, itself().write(true).create_new(true)).map(|(file, _)| file)
    }

    /// Renames a file, and replaces the file that has the new name.
    pub(in crate::file) fn rename(&self, old: &str, new: &str) -> io::Result<()> {
        with_retries(|| fs::rename(self.path.join(old), self.path.join(new)))
    }

    fn open_file(&self, name: &str, options: &OpenOptions) -> io::Result<(File, Status)> {
        let path = self.path.join(name);
        let file = with_retries(|| match options.open(&path) {
            // Windows returns this error for a folder that is opened for writing.
            Err(why) if is(&why, &[ERROR_ACCESS_DENIED]) && path.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            opened => opened,
        })?;
        let status = Status::of(&file)?;
        status.check_file()?;
        Ok((file, status))
    }
}

/// The error of a file system that does not support a request.
fn without_number(why: io::Error) -> io::Error {
    if is(&why, UNKNOWN) {
        return misplaced("the file system gives files no numbers, as FAT does not: name a folder on NTFS or ReFS");
    }
    why
}

fn is(why: &io::Error, among: &[WIN32_ERROR]) -> bool {
    why.raw_os_error().is_some_and(|code| among.contains(&(code as u32)))
}

/// Retries while another program has the file open exclusively, or while its name disappears with
/// its last handle.
fn with_retries<T>(work: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let mut left = ATTEMPTS;
    loop {
        match work() {
            Err(why) if left > 0 && is(&why, &[ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION, ERROR_DELETE_PENDING]) => left -= 1,
            done => return done,
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// The system's clock. The lock file's time is not used, because a lock keeps other processes from
/// writing to the file.
pub(in crate::file) fn read_clock(_: &File) -> io::Result<i64> {
    now_ms()
}

/// The system's clock, which is the same for all processes of the machine.
pub(in crate::file) fn now_ms() -> io::Result<i64> {
    Ok(system_ms())
}

/// Returns whether a name leads to this file.
pub(in crate::file) fn is_at(path: &Path, status: &Status) -> bool {
    Status::at(path).is_ok_and(|there| there.is_same_file(status))
}

/// Writes all bytes at a position of a file.
pub(in crate::file) fn write_at(file: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = file.seek_write(bytes, at)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[written..];
        at += written as u64;
    }
    Ok(())
}

/// Puts a folder's entries on the disk. For the first record, does this for the parents, too,
/// because their maker may have been interrupted.
pub(in crate::file) fn sync_names(folder: &Folder, all: bool) -> io::Result<()> {
    for (distance, folder) in folder.path.ancestors().enumerate().take_while(|(distance, _)| all || *distance == 0) {
        match sync_folder(folder) {
            // This account did not make a folder that it may not write to.
            Err(why) if distance > 0 && is(&why, &[ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION]) => break,
            done => done?,
        }
    }
    Ok(())
}

/// Puts a folder's entries on the disk, if the file system has a call for it.
pub(in crate::file) fn sync_folder(folder: &Path) -> io::Result<()> {
    let opened = OpenOptions::new().write(true).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(folder)?;
    match opened.sync_all() {
        Err(why) if is(&why, UNKNOWN) => Ok(()),
        done => done,
    }
}

/// Returns whether the error means that a disk cannot read or write at a position.
pub(in crate::file) fn is_bad_disk(why: &io::Error) -> bool {
    is(why, &[ERROR_CRC, ERROR_SECTOR_NOT_FOUND, ERROR_IO_DEVICE, ERROR_FILE_CORRUPT])
}

/// The error of a bad disk.
#[cfg(test)]
pub(in crate::file) fn bad_disk() -> io::Error {
    io::Error::from_raw_os_error(ERROR_IO_DEVICE as i32)
}

/// The row of the error table and the fix for errors that std has no kind for.
pub(in crate::file) fn hint(why: &io::Error) -> Option<(ErrorKind, &'static str)> {
    if is(why, &[ERROR_SHARING_VIOLATION, ERROR_DELETE_PENDING]) {
        return Some((
            ErrorKind::StoreUnreachable,
            "another program has it open and does not share it: exclude the folder from virus scanners and indexers",
        ));
    }
    is(why, &[ERROR_TOO_MANY_OPEN_FILES]).then_some((ErrorKind::StoreUnreachable, "close some"))
}
