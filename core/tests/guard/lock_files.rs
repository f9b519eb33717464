//! Names that are locked files, as a test sees them.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

const START: &str = "/var/tmp/frazil-";

/// Returns whether a descriptor may stand for a name, by its link in `/proc`.
pub(crate) fn is_name(link: &Path) -> bool {
    link.to_string_lossy().starts_with(START)
}

/// The names for which descriptors stand, by their links in `/proc`.
pub(crate) fn of(links: impl Iterator<Item = PathBuf>) -> Vec<String> {
    let name = |link: &PathBuf| link.file_name().unwrap().to_string_lossy().replace('-', "/");
    links.filter(|link| is_name(link)).map(|link| name(&link)).collect()
}

fn path_of(name: &str) -> String {
    format!("/var/tmp/{}", name.replace('/', "-"))
}

/// Holds a name as another copy of the library does.
pub(crate) fn hold(name: &str) -> File {
    let mut file = squat(name);
    writeln!(file, "{} {} test", std::process::id(), 0).unwrap();
    file
}

/// Holds a name, and does not say who it is.
pub(crate) fn squat(name: &str) -> File {
    let file = File::create(path_of(name)).unwrap();
    file.try_lock().unwrap();
    file
}

/// Closes the names of this process, as `closefrom` does, and removes their files, as the command does with what nobody holds.
pub(crate) fn lose() -> String {
    let link =
        |fd: &i32| std::fs::read_link(format!("/proc/self/fd/{fd}")).ok().filter(|link| link.to_string_lossy().contains("frazil-opens-"));
    let (fd, watch) = (3..64).find_map(|fd| Some((fd, link(&fd)?))).expect("the watch");
    // SAFETY: a plain system call.
    assert_eq!(unsafe { libc::close(fd) }, 0);
    let guard = watch.to_str().unwrap().replace("opens", "issues");
    for file in [watch, guard.into()] {
        let _ = std::fs::remove_file(file);
    }
    "removed".to_owned()
}

/// The end of a command that shows who has a name.
pub(crate) fn shown_by(name: &str) -> String {
    format!("`lsof {}` shows it", path_of(name))
}
