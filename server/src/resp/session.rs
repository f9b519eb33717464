//! What a connection remembers.

use crate::lend::Place;
use crate::tokens::Fingerprint;

/// Of a label.
const LONGEST_LABEL: usize = 64;

pub struct Session {
    pub id: u64,
    /// Of the token that was given. Whether it is still good is asked for each command: tokens change while a connection is open.
    pub token: Option<Fingerprint>,
    label: Vec<u8>,
    /// Of the last answer, if that is a store's: it is to be sent, and given back, before anything else is asked.
    pub place: Option<Place>,
    /// After this reply the connection is closed.
    pub is_over: bool,
}

impl Session {
    pub fn new(id: u64) -> Self {
        Session { id, token: None, label: vec![], place: None, is_over: false }
    }

    pub fn label(&self) -> &[u8] {
        &self.label
    }

    /// What the client calls the connection; `false` where that is too long to be kept.
    pub fn set_label(&mut self, label: &[u8]) -> bool {
        let fits = label.len() <= LONGEST_LABEL;
        if fits {
            self.label = label.to_vec();
        }
        fits
    }
}
