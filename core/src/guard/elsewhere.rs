//! The guard on a system without names that end with their process, such as WASI: each number is unguarded, and an event reports it.

use super::{NotTaken, Peer, TakenName};
use std::io;

/// A name, of which no value exists.
pub(super) enum Name {}

pub(super) fn take(_: &str) -> TakenName {
    Err(NotTaken::Refused("this system has no names that end with their process".to_owned()))
}

pub(super) use take as take_watch;

impl Name {
    pub(super) fn is_intact(&self) -> bool {
        match *self {}
    }

    pub(super) fn is_rung(&self) -> bool {
        match *self {}
    }
}

pub(super) fn ring(_: &str) -> io::Result<()> {
    Ok(())
}

pub(super) fn peer(_: &str) -> Option<Peer> {
    None
}

pub(super) fn shown_by(_: &str) -> String {
    "nothing shows it".to_owned()
}
