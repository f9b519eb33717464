//! Atomics and locks: the standard ones, or loom's while it explores the interleavings.

#[cfg(not(loom))]
pub(crate) use std::sync::{
    Arc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU64, Ordering},
};

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU64, Ordering},
};

/// A pointer that is read and replaced by any thread.
pub(crate) struct Pointer<T>(#[cfg(not(loom))] arc_swap::ArcSwap<T>, #[cfg(loom)] Mutex<Arc<T>>);

impl<T> Pointer<T> {
    pub(crate) fn new(value: T) -> Self {
        #[cfg(not(loom))]
        return Pointer(arc_swap::ArcSwap::from_pointee(value));
        #[cfg(loom)]
        return Pointer(Mutex::new(Arc::new(value)));
    }

    #[inline]
    pub(crate) fn load(&self) -> impl std::ops::Deref<Target = Arc<T>> + '_ {
        #[cfg(not(loom))]
        return self.0.load();
        #[cfg(loom)]
        return Box::new(Arc::clone(&self.0.lock().expect("no code panics while it holds this lock")));
    }

    pub(crate) fn store(&self, value: Arc<T>) {
        #[cfg(not(loom))]
        self.0.store(value);
        #[cfg(loom)]
        drop(std::mem::replace(&mut *self.0.lock().expect("no code panics while it holds this lock"), value));
    }
}
