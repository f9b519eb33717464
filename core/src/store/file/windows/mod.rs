//! The parts of the file store that differ between systems, for Windows: folders and files that are opened as what they are, whose they are,
//! and what they are on.

mod access;
mod home;
mod place;
mod volume;

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

/// The promise that no child has the file. Nothing is forked here, and a child inherits no handle that was not made for it.
pub(super) struct ClosedInChild;

pub(super) fn closed_in_child(_: &File) -> ClosedInChild {
    ClosedInChild
}
