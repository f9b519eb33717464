//! A library of frazil's stays where it was loaded, also when a program unloads it, as Node does at the end of a worker: its threads may still run, and
//! what it knows of numbers given by hand holds for the life of the process. On Unix the linker is told so.

/// Has Windows keep the DLL that frazil is linked into, as long as the process runs.
#[cfg(windows)]
#[doc(hidden)]
pub fn stay() {
    use std::ffi::c_void;
    use std::sync::Once;

    const PIN: u32 = 1;
    const FROM_ADDRESS: u32 = 4;

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GetModuleHandleExW(flags: u32, address: *const c_void, module: *mut *mut c_void) -> i32;
    }

    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut module = std::ptr::null_mut();
        // SAFETY: an address within this module, and a place for its handle, which PIN leaves to nobody.
        unsafe { GetModuleHandleExW(PIN | FROM_ADDRESS, stay as fn() as *const c_void, &raw mut module) };
    });
}

#[cfg(not(windows))]
#[doc(hidden)]
pub fn stay() {}
