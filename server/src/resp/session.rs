//! The state of a connection.

use crate::lend::QuestionPermit;
use crate::peer::Peer;
use crate::share::Taken;
use crate::shared::Client;
use crate::tokens::Fingerprint;

/// The longest label, in bytes.
const LONGEST_LABEL: usize = 64;

pub struct Session {
    pub id: u64,
    pub peer: Peer,
    /// The fingerprint of the client's token. Each command checks it again, because tokens change while a connection is open.
    pub token: Option<Fingerprint>,
    label: Vec<u8>,
    /// The slot of a store's answer. The answer is sent and the slot released before the next question.
    pub permit: Option<QuestionPermit>,
    /// The room of a batch. The batch is sent and its room released before the next command, which may need the same room.
    pub room: Option<Taken>,
    /// The connection is closed after this reply.
    pub is_over: bool,
}

impl Session {
    pub fn new(id: u64, peer: Peer) -> Self {
        Session { id, peer, token: None, label: vec![], permit: None, room: None, is_over: false }
    }

    pub fn client(&self) -> Client {
        Client { address: self.peer.address(), token: self.token }
    }

    pub fn label(&self) -> &[u8] {
        &self.label
    }

    /// Sets the client's name for the connection; returns `false` if the name is too long.
    pub fn set_label(&mut self, label: &[u8]) -> bool {
        let fits = label.len() <= LONGEST_LABEL;
        if fits {
            self.label = label.to_vec();
        }
        fits
    }
}
