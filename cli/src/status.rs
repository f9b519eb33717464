//! The exit statuses.

pub(super) const DONE: i32 = 0;
pub(super) const FAILED: i32 = 1;
pub(super) const USAGE: i32 = 2;
/// The status that shells report for a program that Ctrl-C ended.
pub(super) const INTERRUPTED: i32 = 130;
