//! The errors of an audit that are not errors of the library.

use super::super::code;
use super::super::screen::Stop;
use std::io;
use std::path::Path;

pub(super) type AuditResult<T> = Result<T, Stop>;

/// A source that cannot be read or understood.
pub(super) fn input(why: impl Into<String>) -> Stop {
    Stop::Failed(code::INPUT, why.into())
}

/// A file that cannot be written, or a sorted run that cannot be read again.
pub(super) fn output(why: impl Into<String>) -> Stop {
    Stop::Failed(code::OUTPUT, why.into())
}

/// Ctrl-C or SIGTERM. The caller that knows the folder adds what is kept.
pub(super) fn interrupted(why: impl Into<String>) -> Stop {
    Stop::Failed(code::INTERRUPTED, why.into())
}

/// Maps the error of a source that cannot be read.
pub(super) fn unreadable(name: &str) -> impl Fn(io::Error) -> Stop {
    move |error| input(format!("the source {name} cannot be read: {error}"))
}

/// Maps the error of a file that cannot be written, or read again.
pub(super) fn unwritable(path: &Path) -> impl Fn(io::Error) -> Stop {
    move |error| output(format!("{}: {error}", path.display()))
}
