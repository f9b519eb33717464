//! A library of frazil's stays where it was loaded, also when a program unloads it, as Node does at the end of a worker: its threads may still run, and
//! what it knows of numbers given by hand holds for the life of the process. On Unix the linker is told so.

/// Has Windows keep the DLL that frazil is linked into, as long as the process runs.
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
        // SAFETY: an address within this module, and a place for its handle, which PIN leaves to nobody.
        unsafe { GetModuleHandleExW(PIN | FROM_ADDRESS, stay as fn() as *const u16, &raw mut module) };
    });
}

#[cfg(not(windows))]
#[doc(hidden)]
pub fn stay() {}
