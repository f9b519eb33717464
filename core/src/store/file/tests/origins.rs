//! The file that tells a lent folder from others.

use super::super::origin;
use super::*;

/// What was told of a folder holds after the machine has lost what was not on its disk.
#[test]
fn a_power_cut_makes_no_other_folder() {
    // Where this may not be mounted, it cannot be seen.
    let mount = "truncate -s 16M DIR/disk; mkdir DIR/before DIR/after
        { mkfs.ext4 -qF DIR/disk && mount -o loop DIR/disk DIR/before; } || { echo 1 passed; exit; }
        mkdir DIR/before/ids; sync -f DIR/before";
    run_mounted(mount, "power cut", &Temp::new().0);
}

pub(super) fn in_a_power_cut(dir: &Path) {
    let before = origin::of(&dir.join("before/ids")).unwrap();
    fs::copy(dir.join("disk"), dir.join("found")).unwrap();
    let (found, after) = (dir.join("found"), dir.join("after"));
    assert!(Command::new("mount").args(["-o", "loop"]).args([&found, &after]).status().unwrap().success());
    assert_eq!(origin::of(&after.join("ids")), Some(before));
}
