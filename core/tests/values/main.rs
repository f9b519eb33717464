//! Values and rules that need no separate process. They form one program, because linking it with
//! the clients of all stores takes longer than compiling it.

#![allow(clippy::unwrap_used, missing_docs)]

mod advice;
mod check;
#[path = "../common/mod.rs"]
mod common;
mod documented;
mod edges;
mod models;
mod roundtrip;
mod vectors;
