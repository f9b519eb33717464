//! Daemons: one that has closed its standard descriptors, whose numbers must not be frazil's, as a library may write to them all the same; and one
//! that has closed all descriptors, whose numbers are frazil's no more.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, missing_docs)]

use frazil::Snowflake;
#[cfg(feature = "redis")]
use std::os::unix::fs::FileTypeExt;
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
    let Some(what) = std::env::var_os(VARIABLE) else { return };
    match what.to_str().filter(|what| what.starts_with("redis:")) {
        Some(_store) => {
            #[cfg(feature = "redis")]
            close_all(_store);
        }
        None => write_to_standard(Path::new(&what)),
    }
}

fn write_to_standard(folder: &Path) {
    // SAFETY: plain system calls; what is written is not looked at.
    unsafe {
        (0..3).for_each(|standard| _ = libc::close(standard));
        std::thread::spawn(|| {
            let text = "what a program says";
            loop {
                (1..3).for_each(|standard| _ = libc::write(standard, text.as_ptr().cast(), text.len()));
            }
        });
        let ids = Snowflake::open(&line(folder));
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(1) {
            drop(ids.as_ref().map(Snowflake::next_id));
        }
        libc::_exit(0);
    }
}

/// Closes what it did not open while a store is asked, and has files of its own in the place: they must stay as they are.
#[cfg(feature = "redis")]
fn close_all(store: &str) {
    let spec = frazil::Spec::parse(&format!("standard store={store} renew=1s")).unwrap();
    assert_eq!(Snowflake::open_spec(spec, Duration::from_millis(100)).unwrap_err().kind(), frazil::ErrorKind::WouldBlock);
    // SAFETY: what a daemon does to the descriptors of its libraries. With musl the crate `libc` has no function for it.
    assert_eq!(unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) }, 0);
    let files: Vec<_> = (0..20).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
    std::thread::sleep(Duration::from_secs(3));
    let are_there = files.iter().all(|file| file.metadata().is_ok_and(|found| found.file_type().is_char_device()));
    // SAFETY: ends the process; a descriptor that is closed already is not closed again.
    unsafe { libc::_exit(i32::from(!are_there)) };
}

/// A file in the place of a guard is left alone as well: `guard/linux.rs`.
#[cfg(feature = "redis")]
#[test]
fn a_file_in_the_place_of_a_stores_socket_is_not_closed() {
    // Its queue lets everybody in, and nobody answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut daemon = Command::new(std::env::current_exe().unwrap());
    daemon.args(["--exact", "daemon", "--nocapture", "--quiet"]);
    daemon.env(VARIABLE, format!("redis://{}/0", silent.local_addr().unwrap()));
    assert!(daemon.status().unwrap().success());
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
