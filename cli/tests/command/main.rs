//! The command line.

#![allow(missing_docs)]

mod cli;
mod commands;
mod interrupt;
mod merge_audit;
mod segments;
