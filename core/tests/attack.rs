//! What a hostile reviewer tried, through the public interface.

#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

use frazil::{ErrorKind, Snowflake};
use std::path::PathBuf;
use std::time::{Duration, Instant};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("frazil-attack-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_layout_that_has_expired_is_told_at_once() {
    let since = Instant::now();
    let error = Snowflake::open("layout='time:24@1ms node:4 sequence:12 epoch:2025-01-01' store=memory namespace=expired").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LayoutExpired, "{error} after {:?}", since.elapsed());
    assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
}

#[test]
fn a_store_has_one_keeper_however_it_is_spelled() {
    let folder = Folder::new("spell");
    let line = |end| {
        format!("layout='time:41@1ms node:1 sequence:12 epoch:2025-01-01' node=1 store=file:{}{end} window=3s renew=1s", folder.0.display())
    };
    let first = Snowflake::open(&line("")).unwrap();
    let second = Snowflake::open(&line("/"));
    assert!(second.is_ok(), "{}", second.unwrap_err());
    drop(first);
}
