//! The drive that a folder is on.

use super::super::folder::{ELSEWHERE, WAYS_OUT};
use super::super::refusal::{self, Refuse};
use super::place::open_folder;
use frazil_base::error::{ErrorKind, Result};
use std::io;
use std::os::windows::io::AsRawHandle;
use std::path::Path;
use windows_sys::Wdk::Storage::FileSystem::{FileFsDeviceInformation, NtQueryVolumeInformationFile};
use windows_sys::Win32::Foundation::RtlNtStatusToDosError;
use windows_sys::Win32::Storage::FileSystem::FILE_DEVICE_CD_ROM;
use windows_sys::Win32::System::IO::IO_STATUS_BLOCK;
use windows_sys::Win32::System::Ioctl::{FILE_DEVICE_NETWORK_FILE_SYSTEM, FILE_DEVICE_VIRTUAL_DISK};

/// The flag of a network device, Windows' `FILE_REMOTE_DEVICE`.
const REMOTE: u32 = 0x10;

/// Windows' structure `FILE_FS_DEVICE_INFORMATION`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Device {
    kind: u32,
    characteristics: u32,
}

/// Refuses a network drive, and a drive that keeps no files.
pub(in crate::file) fn check(dir: &Path, existing: &Path, explicit: bool) -> Result<()> {
    judge(dir, explicit, device(existing).refuse(dir, existing)?)
}

/// The device at the end of all links, mounts and `subst`. `GetDriveType` also derives the kind of
/// a drive from it.
fn device(folder: &Path) -> io::Result<Device> {
    let opened = open_folder(folder)?;
    let (mut device, mut status) = (Device::default(), IO_STATUS_BLOCK::default());
    // SAFETY: the handle is open, and the place has the size that is given.
    let failed = unsafe {
        NtQueryVolumeInformationFile(
            opened.as_raw_handle(),
            &raw mut status,
            (&raw mut device).cast(),
            size_of::<Device>() as u32,
            FileFsDeviceInformation,
        )
    };
    if failed < 0 {
        // SAFETY: the function accepts any number.
        return Err(io::Error::from_raw_os_error(unsafe { RtlNtStatusToDosError(failed) } as i32));
    }
    Ok(device)
}

fn judge(dir: &Path, explicit: bool, device: Device) -> Result<()> {
    let is_remote = device.kind == FILE_DEVICE_NETWORK_FILE_SYSTEM || device.characteristics & REMOTE != 0;
    let why = match device.kind {
        _ if is_remote => format!("the folder is on a network drive, which keeps no lease: {ELSEWHERE}"),
        FILE_DEVICE_CD_ROM => format!("the folder is on a CD, which keeps no lease: {ELSEWHERE}"),
        FILE_DEVICE_VIRTUAL_DISK if !explicit => format!("the folder is on a RAM disk, which ends at the next boot: {WAYS_OUT}"),
        _ => return Ok(()),
    };
    Err(refusal::error(dir, ErrorKind::StoreUnsuitable, why))
}

/// The drive of a folder, if its files end at the next boot.
pub(crate) fn passing(dir: &Path) -> Option<&'static str> {
    (device(dir).ok()?.kind == FILE_DEVICE_VIRTUAL_DISK).then_some("a RAM disk, which ends at the next boot")
}

#[cfg(test)]
mod tests {
    use super::*;
    use windows_sys::Win32::Storage::FileSystem::FILE_DEVICE_DISK;

    #[test]
    fn network_drive_is_refused() {
        let dir = Path::new(r"C:\d");
        let disk = |characteristics| Device { kind: FILE_DEVICE_DISK, characteristics };
        let device = |kind| Device { kind, characteristics: 0 };
        for (device, explicit, name) in [
            (disk(REMOTE), true, "network"),
            (device(FILE_DEVICE_NETWORK_FILE_SYSTEM), false, "network"),
            (device(FILE_DEVICE_CD_ROM), true, "CD"),
            (device(FILE_DEVICE_VIRTUAL_DISK), false, "RAM"),
        ] {
            let error = judge(dir, explicit, device).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StoreUnsuitable);
            let text = error.to_string();
            assert!([r"file:C:\d", name, "store=file:", "worker=hostname"].iter().all(|part| text.contains(part)), "{error}");
        }
        judge(dir, true, device(FILE_DEVICE_VIRTUAL_DISK)).unwrap();
        judge(dir, false, disk(0)).unwrap();
        check(dir, &std::env::temp_dir(), false).unwrap();
    }
}
