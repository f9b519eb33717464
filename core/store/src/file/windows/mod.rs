//! The parts of the file store for Windows: opening folders and files without following links,
//! their owners, and their file systems.

mod access;
mod home;
mod place;
mod volume;

pub(super) use access::{make, namespace, open};
pub(super) use home::home;
#[cfg(test)]
pub(super) use place::bad_disk;
pub(super) use place::sync_folder;
pub(super) use place::{Folder, Status, hint, is_at, is_bad_disk, now_ms, read_clock, sync_names, write_at};
pub(super) use volume::check as check_volume;
pub(crate) use volume::passing;

use std::fs::File;

/// A guarantee that no child process has the file. Windows does not fork, and a child inherits only
/// handles that were made for it.
pub(super) struct ClosedInChild;

pub(super) fn closed_in_child(_: &File) -> ClosedInChild {
    ClosedInChild
}
