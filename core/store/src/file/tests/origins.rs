//! The file that identifies a lent folder: in an image of several containers, and after a power
//! cut.

use super::super::origin;
use super::platform::run_mounted;
use super::*;

/// A time longer than a step of the kernel's clock.
const LATER: Duration = Duration::from_millis(100);

/// A lent folder is in the image of two containers. Each container then has separate records.
#[test]
fn folder_in_an_image_is_another_one_in_each_container() {
    let mount = "mount -t tmpfs none DIR; cd DIR; mkdir image image/ids; : > image/ids/.lent
        for n in 1 2; do mkdir upper$n work$n merged$n
        mount -t overlay none -o lowerdir=image,upperdir=upper$n,workdir=work$n merged$n; done";
    run_mounted(mount, "image", &Temp::new().0);
}

pub(super) fn in_an_image(dir: &Path) {
    let [one, two] = ["merged1/ids", "merged2/ids"].map(|ids| {
        std::thread::sleep(LATER);
        let found = origin::of(&dir.join(ids));
        std::thread::sleep(LATER);
        assert_eq!(origin::of(&dir.join(ids)), found);
        found
    });
    // Some kernels' tmpfs does not record the time.
    assert!(one.is_none() || one != two, "{one:?}");
}

/// A folder keeps its identity after the machine lost unsynced data, even if the folder is from a
/// container's image.
#[test]
fn folder_keeps_its_identity_after_a_power_cut() {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/loop-control").exists() {
        eprintln!("only root mounts the image of a disk, and not in every container");
        return;
    }
    let mount = "truncate -s 16M DIR/disk; mkdir DIR/before DIR/after
        mkfs.ext4 -qF DIR/disk; mount -o loop DIR/disk DIR/before; cd DIR/before
        mkdir ids image image/ids upper work merged; : > image/ids/.lent; sync -f .";
    run_mounted(&format!("{mount}; {OVERLAY}"), "power cut", &Temp::new().0);
}

/// The overlay of a container's files, in a folder on the disk.
const OVERLAY: &str = "mount -t overlay none -o lowerdir=image,upperdir=upper,workdir=work merged";

pub(super) fn in_a_power_cut(dir: &Path) {
    let identities = |disk: &str| ["ids", "merged/ids"].map(|ids| origin::of(&dir.join(disk).join(ids)).unwrap());
    let before = identities("before");
    fs::copy(dir.join("disk"), dir.join("found")).unwrap();
    let mount = format!("mount -o loop found after; cd after; {OVERLAY}");
    assert!(Command::new("sh").args(["-ec", &mount]).current_dir(dir).status().unwrap().success());
    assert_eq!(identities("after"), before);
}
