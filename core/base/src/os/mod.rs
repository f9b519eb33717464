//! The operating system: forks, threads, atomics, cancellation, the name of the host.

pub mod cancel;
pub mod fork;
pub mod host;
pub mod sync;
pub mod thread;
#[cfg(windows)]
pub mod windows;
