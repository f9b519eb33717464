//! The identity of a file on Windows.

use std::fs::File;
use std::io;
use std::os::windows::io::AsRawHandle;
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_BASIC_INFO, FILE_ID_INFO, FILE_INFO_BY_HANDLE_CLASS, FileBasicInfo, FileIdInfo,
    GetFileInformationByHandle, GetFileInformationByHandleEx,
};

/// Returns the volume's serial number, the file's number, which all of its names share, and the time of its last change.
pub(super) fn identity(file: &File) -> io::Result<(u64, u128, i64)> {
    // SAFETY: the structures are those of their classes.
    let (number, times) = unsafe { (ask::<FILE_ID_INFO>(file, FileIdInfo), ask::<FILE_BASIC_INFO>(file, FileBasicInfo)?) };
    let (device, inode) = match number {
        Ok(number) => (number.VolumeSerialNumber, u128::from_le_bytes(number.FileId.Identifier)),
        // FAT and some network drives have only the short form.
        Err(_) => short_number(file)?,
    };
    Ok((device, inode, times.ChangeTime.saturating_mul(100)))
}

fn short_number(file: &File) -> io::Result<(u64, u128)> {
    let mut answer = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open, and the pointer is to the call's structure.
    done(unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut answer) })?;
    let inode = u128::from(answer.nFileIndexHigh) << 32 | u128::from(answer.nFileIndexLow);
    Ok((answer.dwVolumeSerialNumber.into(), inode))
}

/// Queries one of the structures in which Windows describes an open file.
///
/// # Safety
/// `T` is the structure of the class.
unsafe fn ask<T: Default>(file: &File, class: FILE_INFO_BY_HANDLE_CLASS) -> io::Result<T> {
    let mut answer = T::default();
    // SAFETY: the handle is open, and the pointer is to a value of the size that is passed.
    done(unsafe { GetFileInformationByHandleEx(file.as_raw_handle(), class, (&raw mut answer).cast(), size_of::<T>() as u32) })?;
    Ok(answer)
}

fn done(returned: i32) -> io::Result<()> {
    if returned == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
