//! The end of a connection whose client may still be sending.
//!
//! To close it at once would be told to the client by a reset, which also takes answers away that have come there and were not read yet
//! (RFC 9112, section 9.6).

use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

/// How long what comes is read, and thrown away, until the client ends the connection, too.
const LONGEST: Duration = Duration::from_secs(5);

/// To be called when the own end was told.
pub async fn linger(stream: &mut (impl AsyncRead + Unpin)) {
    let mut room = vec![0; 4096];
    let read = async { while matches!(stream.read(&mut room).await, Ok(1..)) {} };
    // Who goes on for longer learns it the hard way.
    let _ = timeout(LONGEST, read).await;
}
