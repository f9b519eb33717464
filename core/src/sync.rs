//! Atomics and locks: the standard ones, or loom's while it explores the interleavings.

#[cfg(not(loom))]
pub(crate) use std::sync::{
    Arc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU64, Ordering},
};

#[cfg(not(loom))]
pub(crate) use std::thread::yield_now;

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU64, Ordering},
};
#[cfg(loom)]
pub(crate) use loom::thread::yield_now;
