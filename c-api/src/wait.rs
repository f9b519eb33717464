//! Waits of the whole process: what a start waits for, and the end of a program.
#![allow(non_camel_case_types)]

use crate::convert::max_wait;
use crate::error::{c_string, frazil_status, guard};
use std::ffi::{c_char, c_void};

/// Closes every generator of this process that leases its number, and gives the numbers back: for the end
/// of a program, as at SIGTERM, so that the next one need not wait for a number of its own. Call it from
/// a thread, not from within a signal handler; it waits at most so many ms for all stores together. The
/// handles are freed as ever. Given numbers, segments and tickets have nothing to give back, and stay open.
///
/// FRAZIL_WOULD_BLOCK where a store has not been told yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_close_all(max_wait_ms: i64) -> frazil_status {
    guard(|| frazil_core::close_all(max_wait(max_wait_ms)?))
}

/// What frazil_on_wait() has called, with the text and the pointer that was given there. The text is valid
/// during the call.
pub type frazil_wait_hook = Option<unsafe extern "C" fn(text: *const c_char, data: *mut c_void)>;

/// Has a function told, once for each start that takes longer than a second, what it waits for and until
/// when: a server that stands in a console for a minute can say why. It is called on the thread that waits,
/// under no lock, possibly on several at once, and may call frazil. A later hook takes its place; NULL: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_on_wait(hook: frazil_wait_hook, data: *mut c_void) -> frazil_status {
    /// The user's pointer, of which the header says that several threads may use it.
    struct Data(*mut c_void);
    // SAFETY: only the hook uses it, which is made for that.
    unsafe impl Send for Data {}
    // SAFETY: as above.
    unsafe impl Sync for Data {}

    let data = Data(data);
    guard(|| {
        frazil_core::on_wait(move |text| {
            let (data, text) = (&data, c_string(text.to_owned()));
            if let Some(hook) = hook {
                // SAFETY: the caller's function, with what it wants.
                unsafe { hook(text.as_ptr(), data.0) };
            }
        });
        Ok(())
    })
}
