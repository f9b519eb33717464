//! Error codes of the command line, which the library does not have.

/// An input cannot be read or understood.
pub(super) const INPUT: &str = "INPUT";
/// A file changed after reading began.
pub(super) const INPUT_CHANGED: &str = "INPUT_CHANGED";
/// An output cannot be written, or a temporary file cannot be read again.
pub(super) const OUTPUT: &str = "OUTPUT";
/// Ctrl-C, or SIGTERM.
pub(super) const INTERRUPTED: &str = "INTERRUPTED";
