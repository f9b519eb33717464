//! The name of the machine, or of the container, and the number of the process there.

/// Returns the host's name, which is empty where the system has none, as WASI has.
pub(crate) fn name() -> String {
    #[cfg(unix)]
    return rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(windows)]
    return gethostname::gethostname().to_string_lossy().into_owned();
    #[cfg(not(any(unix, windows)))]
    String::new()
}

/// Returns the process ID, which is 1 where the system has none: 0 is nobody's.
pub(crate) fn process_id() -> u32 {
    if cfg!(any(unix, windows)) { std::process::id() } else { 1 }
}
