//! The file system that a folder is on, by its number in Linux.

use super::super::folder::{ELSEWHERE, WAYS_OUT};
use super::super::refusal::{self, Refuse};
use frazil_base::error::{ErrorKind, Result};
use std::io;
use std::path::Path;

/// Checks the file system of a folder.
pub(in crate::file) fn check(dir: &Path, existing: &Path, explicit: bool) -> Result<()> {
    let kind = rustix::fs::statfs(existing).map_err(io::Error::from).refuse(dir, dir)?.f_type;
    judge(dir, explicit, kind as u32)
}

/// File systems that depend on a network or a daemon. Their locks may not reach other machines,
/// their fsync may have no effect, and their calls may never return.
const REMOTE: &[(u32, &str)] = &[
    (0x6969, "NFS"),
    (0x6573_5546, "FUSE"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x517b, "SMB"),
    (0x0102_1997, "9P"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x786f_4256, "a VirtualBox share"),
];

/// File systems that end with the container or the machine's uptime.
const PASSING: &[(u32, &str)] = &[
    (0x794c_7630, "an overlay, which ends with its container"),
    (0x6175_6673, "an overlay, which ends with its container"),
    (0x0102_1994, "a tmpfs, which ends at the next boot"),
    (0x8584_58f6, "a ramfs, which ends at the next boot"),
];

/// The kernel's own file systems, which keep no files of programs.
const KERNEL: &[(u32, &str)] = &[
    (0x9fa0, "procfs"),
    (0x6265_6572, "sysfs"),
    (0x1cd1, "devpts"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x7363_6673, "securityfs"),
    (0x6265_6570, "configfs"),
    (0xcafe_4a11, "bpf"),
];

fn name_in(table: &[(u32, &'static str)], kind: u32) -> Option<&'static str> {
    table.iter().find(|row| row.0 == kind).map(|row| row.1)
}

fn judge(dir: &Path, explicit: bool, kind: u32) -> Result<()> {
    let why = match (name_in(REMOTE, kind).or(name_in(KERNEL, kind)), name_in(PASSING, kind)) {
        (Some(name), _) => format!("the folder is on {name}, which keeps no lease: {ELSEWHERE}"),
        (_, Some(name)) if !explicit => format!("the folder is on {name}: {WAYS_OUT}"),
        _ => return Ok(()),
    };
    Err(refusal::error(dir, ErrorKind::StoreUnsuitable, why))
}

/// The file system of a folder, if its files end with the container or the machine's uptime.
pub(crate) fn passing(dir: &Path) -> Option<&'static str> {
    rustix::fs::statfs(dir).ok().and_then(|found| name_in(PASSING, found.f_type as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_of_a_network_or_a_daemon_are_refused() {
        let dir = Path::new("/d");
        for (kind, name) in REMOTE.iter().chain(KERNEL) {
            for explicit in [true, false] {
                let error = judge(dir, explicit, *kind).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::StoreUnsuitable);
                let text = error.to_string();
                assert!(["file:/d", name, "store=file:", "worker=hostname"].iter().all(|part| text.contains(part)), "{error}");
            }
        }
        for (kind, _) in PASSING {
            judge(dir, true, *kind).unwrap();
            let error = judge(dir, false, *kind).unwrap_err();
            assert!(error.to_string().contains("worker=hostname") && error.to_string().contains("store=file:"), "{error}");
        }
        judge(dir, false, 0xef53).unwrap();
    }
}
