//! What a connection remembers.

use crate::tokens::Fingerprint;

#[derive(Default)]
pub struct Session {
    pub id: u64,
    /// Of the token that was given. Whether it is still good is asked for each command: tokens change while a connection is open.
    pub token: Option<Fingerprint>,
    pub label: Vec<u8>,
    /// After this reply the connection is closed.
    pub is_over: bool,
}
