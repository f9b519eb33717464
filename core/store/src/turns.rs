//! Servers that answer in turn, as through a balancer. Each looks like one that was promoted in
//! place of the other.

use frazil_base::error::{Error, ErrorKind, Result};

/// The servers through which a start has written.
#[derive(Clone, Debug, Default)]
pub struct Turns(Vec<String>);

impl Turns {
    pub fn note(&mut self, server: &str) {
        self.0.retain(|known| known != server);
        self.0.push(server.to_owned());
    }

    /// Refuses a server that answers again after another one has written. A fail-over does not come back within a start.
    ///
    /// # Errors
    /// `STORE_UNSUITABLE`.
    pub fn check(&mut self, other: &str, server: &str) -> Result<()> {
        if other == server || !self.0.iter().any(|known| known == server) {
            return Ok(());
        }
        self.0.clear();
        let why =
            format!("the servers {other} and {server} answer in turn: name one of them, or make the others the balancer's backup servers");
        Err(Error::new(ErrorKind::StoreUnsuitable, why))
    }
}
