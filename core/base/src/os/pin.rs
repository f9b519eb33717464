//! Keeps the library loaded even when a program unloads it, as Node does at the end of a worker.
//! Its threads may still run, and its record of fixed node numbers must last for the life of the
//! process. On Unix, a linker option does the same.

/// Makes Windows keep the DLL that contains frazil until the process ends.
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
