//! Daemons. One has closed its standard descriptors, whose numbers frazil must not use, because a
//! library may still write to them. The other has closed all descriptors, so that their numbers no
//! longer belong to frazil.

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

/// The process that the tests run.
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
    // SAFETY: these are plain system calls. The written bytes do not matter.
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

/// Closes descriptors that it did not open, during a call of a store. Opens other files under their
/// numbers, which must stay unchanged.
#[cfg(feature = "redis")]
fn close_all(store: &str) {
    let spec = frazil::Spec::parse(&format!("standard store={store} renew=1s")).unwrap();
    assert_eq!(Snowflake::open_spec(spec, Duration::from_millis(100)).unwrap_err().kind(), frazil::ErrorKind::WouldBlock);
    // SAFETY: daemons do this to the descriptors of their libraries. With musl, the crate `libc` has no function for it.
    assert_eq!(unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) }, 0);
    let files: Vec<_> = (0..20).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
    std::thread::sleep(Duration::from_secs(3));
    let are_there = files.iter().all(|file| file.metadata().is_ok_and(|found| found.file_type().is_char_device()));
    // SAFETY: this ends the process. A closed descriptor is not closed again.
    unsafe { libc::_exit(i32::from(!are_there)) };
}

/// A file under the number of a guard's descriptor is left alone, too: see `guard/linux.rs`.
#[cfg(feature = "redis")]
#[test]
fn file_in_the_place_of_a_stores_socket_is_not_closed() {
    // The kernel accepts connections, and no answer arrives.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut daemon = Command::new(std::env::current_exe().unwrap());
    daemon.args(["--exact", "daemon", "--nocapture", "--quiet"]);
    daemon.env(VARIABLE, format!("redis://{}/0", silent.local_addr().unwrap()));
    assert!(daemon.status().unwrap().success());
}

/// Another process finds the folder intact.
#[test]
fn daemons_output_gets_into_no_store() {
    let folder = std::env::temp_dir().join(format!("frazil-descriptors-{}", std::process::id()));
    drop(std::fs::remove_dir_all(&folder));
    let mut daemon = Command::new(std::env::current_exe().unwrap());
    daemon.args(["--exact", "daemon", "--nocapture", "--quiet"]).env(VARIABLE, &folder);
    assert!(daemon.status().unwrap().success());
    let after = Snowflake::open(&line(&folder)).and_then(|ids| ids.next_id());
    drop(std::fs::remove_dir_all(&folder));
    after.unwrap();
}
