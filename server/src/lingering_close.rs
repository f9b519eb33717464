//! The end of a connection whose client may still be sending.
//!
//! An immediate close resets the connection, which discards answers that the client has received but not read yet (RFC 9112, section
//! 9.6).

use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

/// The longest time for which input is read and discarded until the client closes its side.
const LONGEST: Duration = Duration::from_secs(5);

/// Discards input until the client closes its side; called after our side is shut down.
pub async fn lingering_close(stream: &mut (impl AsyncRead + Unpin)) {
    let mut room = vec![0; 4096];
    let read = async { while matches!(stream.read(&mut room).await, Ok(1..)) {} };
    // A client that continues for longer gets the reset.
    let _ = timeout(LONGEST, read).await;
}
