//! The name of the machine, or of the container, and the number of the process there.

/// Returns the host's name, or an empty text on a system without one, such as WASI.
pub fn name() -> String {
    #[cfg(unix)]
    return rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(windows)]
    return gethostname::gethostname().to_string_lossy().into_owned();
    #[cfg(not(any(unix, windows)))]
    String::new()
}

/// Returns the process ID, or 1 on a system without one, because no process has 0.
pub fn process_id() -> u32 {
    if cfg!(any(unix, windows)) { std::process::id() } else { 1 }
}
