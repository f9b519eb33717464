//! The interpreter's end, and its other threads.
//!
//! Before 3.14 CPython ends a thread that comes back for the GIL while the interpreter ends, with `pthread_exit`, in the midst of whatever called it.
//! glibc unwinds the thread's stack for that, which no frame of Rust survives: the process would be aborted. So what may run code of Python, where
//! other threads get the GIL, is done behind a handler of `pthread_cleanup_push`, which holds the thread for ever, as 3.14 does.
//!
//! glibc calls a handler when it leaves the frame in which the handler stands, which it knows by its address. So one that stands outside of the
//! stack is called first of all, before any frame is left.

/// Does what may run code of Python.
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

    // What the macros of pthread.h stand for; the Linux Standard Base has them.
    unsafe extern "C" {
        fn _pthread_cleanup_push(handler: *mut Handler, call: extern "C" fn(*mut c_void), argument: *mut c_void);
        fn _pthread_cleanup_pop(handler: *mut Handler, runs: c_int);
    }

    /// A thread's handler, and how many calls stand behind it: counted, because a greenlet of another may come back between them.
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
            // A thread that has given its own variables up has left Python, too.
            let _ = THREAD.try_with(|thread| {
                if thread.calls.replace(thread.calls.get() + 1) == 0 {
                    // SAFETY: it is this thread's own, on the heap, and is taken away again before it is freed.
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
                    // SAFETY: it was put there by the first of these calls.
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

/// Elsewhere a thread that is ended so unwinds nothing.
#[cfg(not(target_os = "linux"))]
mod imp {
    pub(super) struct Held;

    impl Held {
        pub(super) fn new() -> Self {
            Held
        }
    }
}
