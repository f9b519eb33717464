//! Why an audit has no result: an error of frazil's table, or one of the command's own.

use super::super::code;
use frazil::Error;
use std::fmt;
use std::io;

pub(super) type Outcome<T> = Result<T, Failure>;

#[derive(Debug)]
pub(super) enum Failure {
    /// A refusal of the core: a layout, a spec, a store, a broken line under `--strict`.
    Core(Error),
    /// A source that cannot be read or understood.
    Input(String),
    /// A file that is no longer what it was when reading began.
    Changed(String),
    /// A file that cannot be written, or a sorted run that cannot be read back.
    Output(String),
    /// Ctrl-C, or SIGTERM: what is kept.
    Interrupted(String),
}

impl Failure {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Failure::Core(error) => error.kind().name(),
            Failure::Input(_) => code::INPUT,
            Failure::Changed(_) => code::INPUT_CHANGED,
            Failure::Output(_) => code::OUTPUT,
            Failure::Interrupted(_) => code::INTERRUPTED,
        }
    }

    /// Maps the error of a source named `name` that could not be read.
    pub(super) fn input(name: &str) -> impl Fn(io::Error) -> Failure {
        move |error| Failure::Input(format!("the source {name} cannot be read: {error}"))
    }

    /// Maps the error of a file at `path` that could not be written, or read back.
    pub(super) fn output(path: &std::path::Path) -> impl Fn(io::Error) -> Failure {
        move |error| Failure::Output(format!("{}: {error}", path.display()))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Core(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Core(error) => error.fmt(f),
            Failure::Input(why) | Failure::Changed(why) | Failure::Output(why) | Failure::Interrupted(why) => f.write_str(why),
        }
    }
}
