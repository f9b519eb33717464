//! The base of [frazil](https://docs.rs/frazil): errors, secrets, time, and what frazil asks of the operating system.
//!
//! This crate has no API: frazil depends on its exact version, and every release may change everything in it.
//!
//! | module | idea |
//! |---|---|
//! | `secret` | texts that are never printed |
//! | `error` | the one error table |
//! | `nearest` | "did you mean", for every unknown name |
//! | `time` | durations, dates, and the system's clock |
//! | `append_map` | a map without removal, and without locks |
//! | `os::cancel` | delays `pthread_cancel` while it would abort the process |
//! | `os::sync` | the standard library's atomics and locks, or loom's |
//! | `os::thread` | frazil's own threads, which block signals; parking and waking |
//! | `os::fork` | notices that the process is a forked child, or a copy of its machine |
//! | `os::host` | the name of the machine; keeps the library loaded |
//! | `os::windows` | the calls of Windows that several modules share |
#![allow(missing_docs, clippy::new_without_default, reason = "no API")]

pub mod append_map;
pub mod error;
pub mod nearest;
pub mod os;
pub mod secret;
pub mod time;
