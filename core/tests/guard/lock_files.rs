//! Names that are locked files, seen by a test.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

const START: &str = "/var/tmp/frazil-";

/// Returns whether a descriptor may belong to a name, judging by its link in `/proc`.
pub(crate) fn is_name(link: &Path) -> bool {
    link.to_string_lossy().starts_with(START)
}

/// The names of descriptors, from their links in `/proc`.
pub(crate) fn of(links: impl Iterator<Item = PathBuf>) -> Vec<String> {
    let name = |link: &PathBuf| link.file_name().unwrap().to_string_lossy().replace('-', "/");
    links.filter(|link| is_name(link)).map(|link| name(&link)).collect()
}

fn path_of(name: &str) -> String {
    format!("/var/tmp/{}", name.replace('/', "-"))
}

/// Holds a name like another copy of the library.
pub(crate) fn hold(name: &str) -> File {
    let mut file = squat(name);
    writeln!(file, "{} {} test", std::process::id(), 0).unwrap();
    file
}

/// Holds a name without a description.
pub(crate) fn squat(name: &str) -> File {
    let file = File::create(path_of(name)).unwrap();
    file.try_lock().unwrap();
    file
}

/// Closes the names of this process, as `closefrom` does. Removes their files, as the command does
/// with unused ones.
pub(crate) fn lose() -> String {
    let link =
        |fd: &i32| std::fs::read_link(format!("/proc/self/fd/{fd}")).ok().filter(|link| link.to_string_lossy().contains("frazil-opens-"));
    let (fd, watch) = (3..64).find_map(|fd| Some((fd, link(&fd)?))).expect("the watch");
    // SAFETY: this is a plain system call.
    assert_eq!(unsafe { libc::close(fd) }, 0);
    let guard = watch.to_str().unwrap().replace("opens", "issues");
    for file in [watch, guard.into()] {
        let _ = std::fs::remove_file(file);
    }
    "removed".to_owned()
}

/// The end of a message with the command that shows the holder of a name.
pub(crate) fn shown_by(name: &str) -> String {
    format!("`lsof {}` shows it", path_of(name))
}
