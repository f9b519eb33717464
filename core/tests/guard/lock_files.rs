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

/// The end of a command that shows who has a name.
pub(crate) fn shown_by(name: &str) -> String {
    format!("`lsof {}` shows it", path_of(name))
}
