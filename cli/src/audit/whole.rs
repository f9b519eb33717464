//! Files that appear only when they are complete, so that a stopped audit leaves no partial file.

use super::failure::{self, AuditResult};
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The time for which another program may prevent the replacement of a file.
const HELD: Duration = Duration::from_millis(500);

/// A file that is written under a temporary name until [`finish`](AtomicFile::finish) renames it. Dropping it removes the temporary file.
pub(super) struct AtomicFile {
    file: BufWriter<File>,
    path: PathBuf,
    new: PathBuf,
}

impl AtomicFile {
    pub(super) fn create(path: PathBuf) -> AuditResult<Self> {
        let mut new = path.clone().into_os_string();
        new.push(".new");
        let new = PathBuf::from(new);
        let file = File::create(&new).map_err(failure::unwritable(&path))?;
        Ok(AtomicFile { file: BufWriter::new(file), path, new })
    }

    #[inline]
    pub(super) fn write(&mut self, text: impl Display) -> AuditResult<()> {
        write!(self.file, "{text}").map_err(failure::unwritable(&self.path))
    }

    /// Writes the file to the disk and renames it.
    pub(super) fn finish(mut self) -> AuditResult<PathBuf> {
        let done = self.file.flush().and_then(|()| self.file.get_ref().sync_data()).and_then(|()| replace(&self.new, &self.path));
        done.map_err(failure::unwritable(&self.path))?;
        Ok(self.path.clone())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // `finish` has renamed it already.
        let _ = fs::remove_file(&self.new);
    }
}

/// Renames a file over another. On Windows, a scanner or a backup that has the old file open may prevent it for a moment.
fn replace(new: &Path, path: &Path) -> io::Result<()> {
    let until = Instant::now() + HELD;
    loop {
        match fs::rename(new, path) {
            Err(_) if cfg!(windows) && Instant::now() < until => thread::sleep(Duration::from_millis(1)),
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_finished_leaves_the_old_one() {
        let folder = std::env::temp_dir().join(format!("frazil-audit-whole-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.csv");
        fs::write(&path, "before").unwrap();
        let mut file = AtomicFile::create(path.clone()).unwrap();
        file.write("half").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        let mut file = AtomicFile::create(path.clone()).unwrap();
        file.write("all").unwrap();
        assert_eq!(file.finish().unwrap(), path);
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), fs::read_dir(&folder).unwrap().count()), ("all", 1));
        fs::remove_dir_all(&folder).unwrap();
    }
}
