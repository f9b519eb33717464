//! Codes of what only a command can meet: no rows of the library's table, of which every language has a class.

/// An input cannot be read, or is not what it must be.
pub(super) const INPUT: &str = "INPUT";
/// A file is no longer what it was when reading began.
pub(super) const INPUT_CHANGED: &str = "INPUT_CHANGED";
/// An output cannot be written, or what was written cannot be read back.
pub(super) const OUTPUT: &str = "OUTPUT";
/// Ctrl-C, or SIGTERM.
pub(super) const INTERRUPTED: &str = "INTERRUPTED";
