//! Atomics, locks and threads: the standard ones, or loom's while it explores the interleavings.

#[cfg(not(loom))]
pub use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU64, Ordering},
};

#[cfg(not(loom))]
pub use std::thread::yield_now;

#[cfg(loom)]
pub use loom::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU64, Ordering},
};
#[cfg(loom)]
pub use loom::thread::yield_now;

/// Locks a standard mutex, even a poisoned one, because only a defect panics while it holds one of
/// these locks.
pub fn locked<T: ?Sized>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Atomics that a static can hold. loom explores those that a model makes with `modelled`. The
/// others are the standard ones, because otherwise all other models would explore them, too.
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicPtr as StaticPtr, AtomicU64 as StaticU64};

#[cfg(loom)]
pub use modelled::{StaticPtr, StaticU64};

#[cfg(loom)]
mod modelled {
    use super::{AtomicPtr, AtomicU64, Ordering};
    use std::sync::atomic;

    #[derive(Debug)]
    pub enum Static<S, M> {
        Standard(S),
        Modelled(M),
    }

    pub type StaticU64 = Static<atomic::AtomicU64, AtomicU64>;
    pub type StaticPtr<T> = Static<atomic::AtomicPtr<T>, AtomicPtr<T>>;

    macro_rules! calls {
        ($($call:ident($($name:ident: $argument:ty),*) $(-> $result:ty)?;)*) => {
            $(pub fn $call(&self, $($name: $argument),*) $(-> $result)? {
                match self {
                    Static::Standard(atomic) => atomic.$call($($name),*),
                    Static::Modelled(atomic) => atomic.$call($($name),*),
                }
            })*
        };
    }

    impl StaticU64 {
        pub const fn new(value: u64) -> Self {
            Static::Standard(atomic::AtomicU64::new(value))
        }

        pub fn modelled(value: u64) -> Self {
            Static::Modelled(AtomicU64::new(value))
        }

        calls! {
            load(order: Ordering) -> u64;
            store(value: u64, order: Ordering);
            compare_exchange(old: u64, new: u64, done: Ordering, failed: Ordering) -> Result<u64, u64>;
        }
    }

    impl<T> StaticPtr<T> {
        pub const fn new(value: *mut T) -> Self {
            Static::Standard(atomic::AtomicPtr::new(value))
        }

        pub fn modelled(value: *mut T) -> Self {
            Static::Modelled(AtomicPtr::new(value))
        }

        calls! {
            load(order: Ordering) -> *mut T;
            compare_exchange(old: *mut T, new: *mut T, done: Ordering, failed: Ordering) -> Result<*mut T, *mut T>;
        }
    }
}
