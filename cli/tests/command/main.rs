//! The command line.

#![allow(missing_docs)]

mod cli;
mod commands;
mod merge_audit;
mod segments;
