//! The name of the machine, or of the container, and the number of the process there. Keeps the library loaded.

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

/// Makes Windows keep the DLL that contains frazil until the process ends, even when a program
/// unloads it, as Node does at the end of a worker. Its threads may still run, and its record of
/// fixed node numbers must last for the life of the process. On Unix, a linker option does this.
#[cfg(windows)]
#[doc(hidden)]
pub fn stay() {
    use std::sync::Once;
    use windows_sys::Win32::System::LibraryLoader::{
        GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS as FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_PIN as PIN, GetModuleHandleExW,
    };

    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut module = std::ptr::null_mut();
        // SAFETY: the address is within this module, and the pointer is to a place for its handle,
        // which PIN leaves without an owner.
        unsafe { GetModuleHandleExW(PIN | FROM_ADDRESS, stay as fn() as *const u16, &raw mut module) };
    });
}

#[cfg(not(windows))]
#[doc(hidden)]
pub fn stay() {}
