//! Servers that answer in turn, as behind a balancer: each looks like one that was promoted in place of the other.

use crate::error::{Error, ErrorKind, Result};
use std::collections::BTreeSet;

/// The servers through which a start has written.
#[derive(Clone, Default)]
pub(crate) struct Turns(BTreeSet<String>);

impl Turns {
    pub(crate) fn note(&mut self, server: &str) {
        self.0.insert(server.to_owned());
    }

    /// Refuses a server that answers again after another one has written. A fail-over does not come back within a start.
    ///
    /// # Errors
    /// `STORE_UNSUITABLE`.
    pub(crate) fn check(&mut self, other: &str, server: &str) -> Result<()> {
        if other == server || !self.0.remove(server) {
            return Ok(());
        }
        let why =
            format!("the servers {other} and {server} answer in turn: name one of them, or make the others the balancer's backup servers");
        Err(Error::new(ErrorKind::StoreUnsuitable, why))
    }
}
