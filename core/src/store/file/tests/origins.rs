//! The file that tells a lent folder from others: in the image of many containers, and when the power fails.

use super::super::origin;
use super::platform::run_mounted;
use super::*;

/// Longer than the kernel's clock stands still.
const LATER: Duration = Duration::from_millis(100);

/// A lent folder in the image of two containers, each with records of its own from then on.
#[test]
fn a_folder_in_an_image_is_another_one_in_each_container() {
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
    // Not every kernel's tmpfs says when.
    assert!(one.is_none() || one != two, "{one:?}");
}

/// A folder keeps its identity after the machine lost what was not on its disk, also one from a container's image.
#[test]
fn a_power_cut_makes_no_other_folder() {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/loop-control").exists() {
        eprintln!("only root mounts the image of a disk, and not in every container");
        return;
    }
    let mount = "truncate -s 16M DIR/disk; mkdir DIR/before DIR/after
        mkfs.ext4 -qF DIR/disk; mount -o loop DIR/disk DIR/before; cd DIR/before
        mkdir ids image image/ids upper work merged; : > image/ids/.lent; sync -f .";
    run_mounted(&format!("{mount}; {OVERLAY}"), "power cut", &Temp::new().0);
}

/// A container's files, in a disk's folder.
const OVERLAY: &str = "mount -t overlay none -o lowerdir=image,upperdir=upper,workdir=work merged";

pub(super) fn in_a_power_cut(dir: &Path) {
    let told = |disk: &str| ["ids", "merged/ids"].map(|ids| origin::of(&dir.join(disk).join(ids)).unwrap());
    let before = told("before");
    fs::copy(dir.join("disk"), dir.join("found")).unwrap();
    let mount = format!("mount -o loop found after; cd after; {OVERLAY}");
    assert!(Command::new("sh").args(["-ec", &mount]).current_dir(dir).status().unwrap().success());
    assert_eq!(told("after"), before);
}
