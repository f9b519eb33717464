//! The parts of the file store that differ between systems, for Unix: folders and files that are opened as what they are, whose they are,
//! and what they are on.

mod access;
mod home;
mod place;
#[cfg_attr(not(target_os = "linux"), path = "volume_bsd.rs")]
mod volume;

pub(super) use crate::fork::ClosedInChild;
pub(super) use access::{make, namespace, open};
pub(super) use home::home;
#[cfg(test)]
pub(super) use place::bad_disk;
#[cfg(feature = "lend")]
pub(super) use place::sync_folder;
pub(super) use place::{Folder, Status, hint, is_at, is_bad_disk, now_ms, read_clock, sync_names, write_at};
pub(super) use volume::check as check_volume;
#[cfg(feature = "admin")]
pub(in crate::store) use volume::passing;

use std::fs::File;
use std::os::fd::AsFd;

/// Has a child that is forked close its copy of the file's descriptor.
pub(super) fn closed_in_child(file: &File) -> ClosedInChild {
    ClosedInChild::new(file.as_fd())
}
