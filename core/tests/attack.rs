//! What a hostile reviewer tried, through the public interface.

#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

use frazil::{ErrorKind, Snowflake};
use std::time::{Duration, Instant};

#[test]
fn a_layout_that_has_expired_is_told_at_once() {
    let since = Instant::now();
    let error = Snowflake::open("layout='time:24@1ms node:4 sequence:12 epoch:2025-01-01' store=memory namespace=expired").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LayoutExpired, "{error} after {:?}", since.elapsed());
    assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
}
