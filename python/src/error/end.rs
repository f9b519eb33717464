//! The interpreter's end, and its other threads.
//!
//! Before 3.14, CPython calls `pthread_exit` in a thread that takes the GIL while the interpreter ends. glibc then unwinds the stack of the thread,
//! and a frame of Rust aborts the process. So calls that may run Python code, during which other threads get the GIL, register a handler with
//! `pthread_cleanup_push`, which blocks the thread for ever, as 3.14 does.
//!
//! glibc calls a handler when it unwinds the frame that contains it, which it finds by the handler's address. A handler outside the stack is
//! called first, before any frame is unwound.

/// Runs a call that may run Python code.
#[inline]
pub(crate) fn held<T>(body: impl FnOnce() -> T) -> T {
    let _held = imp::Held::new();
    body()
}

#[cfg(target_os = "linux")]
mod imp {
    use std::cell::{Cell, UnsafeCell};
    use std::ffi::{c_int, c_void};
    use std::ptr;

    /// `struct _pthread_cleanup_buffer` of glibc. musl's `struct __ptcb` begins with the same two words, and ends with a third.
    #[repr(C)]
    struct Handler {
        call: Option<extern "C" fn(*mut c_void)>,
        argument: *mut c_void,
        cancel_type: c_int,
        before: *mut c_void,
    }

    // The functions of the macros in pthread.h, defined by the Linux Standard Base.
    unsafe extern "C" {
        fn _pthread_cleanup_push(handler: *mut Handler, call: extern "C" fn(*mut c_void), argument: *mut c_void);
        fn _pthread_cleanup_pop(handler: *mut Handler, runs: c_int);
    }

    /// A thread's handler, and the number of calls that use it. They are counted, because calls of several greenlets may overlap.
    struct Thread {
        handler: Box<UnsafeCell<Handler>>,
        calls: Cell<usize>,
    }

    thread_local! {
        static THREAD: Thread = Thread {
            handler: Box::new(UnsafeCell::new(Handler { call: None, argument: ptr::null_mut(), cancel_type: 0, before: ptr::null_mut() })),
            calls: const { Cell::new(0) },
        };
    }

    pub(super) struct Held;

    impl Held {
        #[inline]
        pub(super) fn new() -> Self {
            // A thread whose thread-local variables are gone has also left Python.
            let _ = THREAD.try_with(|thread| {
                if thread.calls.replace(thread.calls.get() + 1) == 0 {
                    // SAFETY: the handler belongs to this thread, is on the heap, and is removed before it is freed.
                    unsafe { _pthread_cleanup_push(thread.handler.get(), hold, ptr::null_mut()) };
                }
            });
            Held
        }
    }

    impl Drop for Held {
        #[inline]
        fn drop(&mut self) {
            let _ = THREAD.try_with(|thread| {
                thread.calls.set(thread.calls.get() - 1);
                if thread.calls.get() == 0 {
                    // SAFETY: the first of these calls has added the handler.
                    unsafe { _pthread_cleanup_pop(thread.handler.get(), 0) };
                }
            });
        }
    }

    extern "C" fn hold(_: *mut c_void) {
        loop {
            std::thread::park();
        }
    }
}

/// On other systems, ending a thread unwinds nothing.
#[cfg(not(target_os = "linux"))]
mod imp {
    pub(super) struct Held;

    impl Held {
        pub(super) fn new() -> Self {
            Held
        }
    }
}
