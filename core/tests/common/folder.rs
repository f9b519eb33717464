//! A file store of a test, which may hold the store's locks.

use std::fs::File;
use std::path::{Path, PathBuf};

/// A folder that is removed at the end of the test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("frazil-folder-{name}-{}", std::process::id()));
        drop(std::fs::remove_dir_all(&path));
        Folder(path)
    }

    /// The store's option in a spec line.
    pub fn store(&self) -> String {
        format!("store=file:{}", self.0.display())
    }

    /// Holds all locks of the store, so that its calls wait.
    pub fn lock(&self) -> Vec<File> {
        let mut held = Vec::new();
        lock_in(&self.0, &mut held, ".lock");
        assert!(!held.is_empty(), "there are locks in {}", self.0.display());
        held
    }
}

/// Adds the files whose names begin with `name` to `held`.
pub fn lock_in(path: &Path, held: &mut Vec<File>, name: &str) {
    for found in std::fs::read_dir(path).unwrap() {
        let found = found.unwrap();
        if found.file_type().unwrap().is_dir() {
            lock_in(&found.path(), held, name);
        } else if found.file_name().to_string_lossy().starts_with(name) {
            let file = File::options().read(true).write(true).open(found.path()).unwrap();
            file.lock().unwrap();
            held.push(file);
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}
