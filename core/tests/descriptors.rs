//! A daemon that has closed its standard descriptors, and a library in it that writes to them all the same: their numbers must not be frazil's.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, missing_docs)]

use frazil::Snowflake;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const VARIABLE: &str = "FRAZIL_TEST_DESCRIPTORS";

fn line(folder: &Path) -> String {
    format!("standard store=file:{} renew=100ms window=2s", folder.display())
}

/// The other end of the tests.
#[test]
fn daemon() {
    let Some(folder) = std::env::var_os(VARIABLE) else { return };
    // SAFETY: plain system calls; what is written is not looked at.
    unsafe {
        (0..3).for_each(|standard| drop(libc::close(standard)));
        std::thread::spawn(|| {
            let text = "what a program says";
            loop {
                (1..3).for_each(|standard| drop(libc::write(standard, text.as_ptr().cast(), text.len())));
            }
        });
        let ids = Snowflake::open(&line(Path::new(&folder)));
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(1) {
            drop(ids.as_ref().map(Snowflake::next_id));
        }
        libc::_exit(0);
    }
}

/// Another process finds the folder in order.
#[test]
fn what_a_daemon_writes_to_its_standard_descriptors_gets_into_no_store() {
    let folder = std::env::temp_dir().join(format!("frazil-descriptors-{}", std::process::id()));
    drop(std::fs::remove_dir_all(&folder));
    let mut daemon = Command::new(std::env::current_exe().unwrap());
    daemon.args(["--exact", "daemon", "--nocapture", "--quiet"]).env(VARIABLE, &folder);
    assert!(daemon.status().unwrap().success());
    let after = Snowflake::open(&line(&folder)).and_then(|ids| ids.next_id());
    drop(std::fs::remove_dir_all(&folder));
    after.unwrap();
}
