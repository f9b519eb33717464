//! A file that is there only once it is complete: an audit that is stopped leaves no half of it.

use super::failure::{Failure, Outcome};
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Written beside its place, which it takes in [`finish`](Whole::finish). Dropped before that, it leaves nothing.
pub(super) struct Whole {
    file: BufWriter<File>,
    path: PathBuf,
    new: PathBuf,
}

impl Whole {
    pub(super) fn create(path: PathBuf) -> Outcome<Self> {
        let mut new = path.clone().into_os_string();
        new.push(".new");
        let new = PathBuf::from(new);
        let file = File::create(&new).map_err(Failure::output(&path))?;
        Ok(Whole { file: BufWriter::new(file), path, new })
    }

    #[inline]
    pub(super) fn write(&mut self, text: impl Display) -> Outcome<()> {
        write!(self.file, "{text}").map_err(Failure::output(&self.path))
    }

    /// Puts it on the disk, and in its place.
    pub(super) fn finish(mut self) -> Outcome<PathBuf> {
        let done = self.file.flush().and_then(|()| self.file.get_ref().sync_data()).and_then(|()| fs::rename(&self.new, &self.path));
        done.map_err(Failure::output(&self.path))?;
        Ok(self.path.clone())
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        // After `finish` it is not there.
        let _ = fs::remove_file(&self.new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_or_not_at_all() {
        let folder = std::env::temp_dir().join(format!("frazil-audit-whole-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.csv");
        fs::write(&path, "before").unwrap();
        let mut file = Whole::create(path.clone()).unwrap();
        file.write("half").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        let mut file = Whole::create(path.clone()).unwrap();
        file.write("all").unwrap();
        assert_eq!(file.finish().unwrap(), path);
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), fs::read_dir(&folder).unwrap().count()), ("all", 1));
        fs::remove_dir_all(&folder).unwrap();
    }
}
