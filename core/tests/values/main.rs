//! Values and rules: what needs no process of its own. Together, because to link a program with all stores' clients takes longer than
//! to compile it.

#![allow(clippy::unwrap_used, missing_docs)]

mod advice;
#[path = "../common/mod.rs"]
mod common;
mod documented;
mod edges;
mod end;
mod models;
mod roundtrip;
mod vectors;
