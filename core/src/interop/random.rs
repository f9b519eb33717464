//! Random bytes from the operating system.
//!
//! Never from a generator in this process: a forked child would inherit its state and repeat what the parent draws.

use crate::error::{Error, ErrorKind, Result};

/// # Errors
/// `INTERNAL` where the system has none to give, such as under a sandbox that forbids the call.
pub(super) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::new(ErrorKind::Internal, format!("the operating system gives no random bytes: {error}")))?;
    Ok(bytes)
}
