//! The parts of the file store for Unix: opening folders and files without following links, their
//! owners, and their file systems.

mod access;
mod home;
mod place;
#[cfg_attr(not(target_os = "linux"), path = "volume_bsd.rs")]
mod volume;

pub(super) use access::{make, namespace, open};
pub(super) use frazil_base::os::fork::ClosedInChild;
pub(super) use home::home;
#[cfg(test)]
pub(super) use place::bad_disk;
pub(super) use place::sync_folder;
pub(super) use place::{Folder, Status, hint, is_at, is_bad_disk, now_ms, read_clock, sync_names, write_at};
pub(super) use volume::check as check_volume;
pub(crate) use volume::passing;

use std::fs::File;
use std::os::fd::AsFd;

/// Closes the file's descriptor in a forked child.
pub(super) fn closed_in_child(file: &File) -> ClosedInChild {
    ClosedInChild::new(file.as_fd())
}
