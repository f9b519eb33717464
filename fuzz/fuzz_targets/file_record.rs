//! The file of a record, in the store's own code on files in memory: after any write that is cut short, a reader finds the old record or
//! the new one, and after any damage of a byte never an older one.
#![no_main]

#[allow(dead_code)]
#[path = "../src/file.rs"]
mod file;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<(u16, String)>, (u16, u8))| file::play(&input.0[..input.0.len().min(8)], input.1));
