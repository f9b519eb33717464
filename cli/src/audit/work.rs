//! The folder of an unfinished audit: sorted runs, and a manifest that lists them.
//!
//! The manifest names a run only when it is complete. So an audit that was killed continues from there, if its sources are
//! unchanged. The manifest is replaced atomically. One audit works in a folder at a time.

use super::failure::{self, AuditResult};
use super::reading::{Reading, SourcePosition};
use super::run::Run;
use super::whole::AtomicFile;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

const MANIFEST: &str = "manifest.json";

/// The lock of the folder. It also marks the folder as an audit's.
const LOCK: &str = "merge-audit.lock";

/// The identity by which an unchanged file is recognized.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) path: String,
    pub(super) device: u64,
    /// The file's number, of 128 bits on Windows' ReFS; 0 where the file system has no such number.
    pub(super) inode: u128,
    pub(super) bytes: u64,
    pub(super) modified_ns: u64,
    /// The time of the last change of content or metadata, because `cp -p` and `touch` set the other time. 0 if unknown.
    pub(super) changed_ns: i64,
}

/// The position up to which a source was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// `None` for a query, which runs again when an audit is resumed.
    pub(super) identity: Option<Identity>,
    pub(super) runs: Vec<Run>,
    /// The reading up to `place`.
    pub(super) reading: Reading,
    pub(super) place: SourcePosition,
    pub(super) complete: bool,
}

#[derive(Serialize, Deserialize)]
struct Manifest {
    version: String,
    /// The options on which the content of a run depends.
    settings: String,
    runs: u64,
    states: Vec<State>,
}

/// The work of an audit. Dropping it leaves in the folder what a resumed audit can use.
pub(super) struct Work {
    folder: PathBuf,
    manifest: Manifest,
    is_done: bool,
    /// Locked as long as it is open.
    lock: Option<File>,
}

impl Work {
    /// Opens a folder, and continues the work that an earlier audit of the same sources has left in it.
    ///
    /// # Errors
    /// `OUTPUT`, also if another audit works in the folder, or it contains other files.
    pub(super) fn open(folder: &Path, settings: String, identities: Vec<Option<Identity>>) -> AuditResult<Self> {
        fs::create_dir_all(folder).map_err(failure::unwritable(folder))?;
        check_ours(folder)?;
        let path = folder.join(LOCK);
        let lock = File::options().create(true).append(true).open(&path).map_err(failure::unwritable(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(failure::output(format!("another merge-audit works in {}", folder.display()))),
            Err(TryLockError::Error(error)) => return Err(failure::unwritable(&path)(error)),
        }
        let version = env!("CARGO_PKG_VERSION");
        let before = fs::read(folder.join(MANIFEST)).ok().and_then(|bytes| serde_json::from_slice::<Manifest>(&bytes).ok());
        let mut before = before.filter(|manifest| manifest.version == version && manifest.settings == settings);
        let states = identities.into_iter().enumerate().map(|(number, identity)| {
            let left = before.as_mut().and_then(|manifest| manifest.states.get_mut(number)).map(std::mem::take);
            let usable =
                |state: &State| identity.is_some() && state.identity == identity && state.runs.iter().all(|run| run.is_there(folder));
            left.filter(usable).unwrap_or(State { identity, ..State::default() })
        });
        let states: Vec<_> = states.collect();
        let runs = before.map_or(0, |manifest| manifest.runs);
        let manifest = Manifest { version: version.to_owned(), settings, runs, states };
        let work = Work { folder: folder.to_owned(), manifest, is_done: false, lock: Some(lock) };
        // Sweeping first makes room on a full disk.
        work.sweep()?;
        work.save()?;
        Ok(work)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn states(&self) -> &[State] {
        &self.manifest.states
    }

    pub(super) fn runs(&self) -> Vec<Run> {
        self.manifest.states.iter().flat_map(|state| state.runs.iter().cloned()).collect()
    }

    /// The name of the next run.
    pub(super) fn next_name(&mut self) -> String {
        self.manifest.runs += 1;
        format!("run-{}", self.manifest.runs)
    }

    /// Adds the next run of a source, if there is one, and the position up to which it was read.
    pub(super) fn add(
        &mut self,
        source: usize,
        run: Option<Run>,
        reading: Reading,
        place: SourcePosition,
        complete: bool,
    ) -> AuditResult<()> {
        let state = &mut self.manifest.states[source];
        state.runs.extend(run);
        (state.reading, state.place, state.complete) = (reading, place, complete);
        self.save()
    }

    /// The number of IDs that were read.
    pub(super) fn ids(&self) -> u64 {
        self.runs().iter().map(|run| run.records).sum()
    }

    /// The number of IDs that a resumed audit does not read again.
    pub(super) fn kept(&self) -> u64 {
        let files = self.states().iter().filter(|state| state.identity.is_some());
        files.flat_map(|state| &state.runs).map(|run| run.records).sum()
    }

    fn save(&self) -> AuditResult<()> {
        let mut file = AtomicFile::create(self.folder.join(MANIFEST))?;
        file.write(serde_json::to_string(&self.manifest).map_err(|error| failure::output(error.to_string()))?)?;
        file.finish().map(drop)
    }

    /// Removes runs that the manifest does not name: they are incomplete, or their sources have changed.
    fn sweep(&self) -> AuditResult<()> {
        let named = self.runs();
        for entry in fs::read_dir(&self.folder).map_err(failure::unwritable(&self.folder))? {
            let entry = entry.map_err(failure::unwritable(&self.folder))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_run(&name) && !named.iter().any(|run| run.name == name) {
                fs::remove_file(entry.path()).map_err(failure::unwritable(&entry.path()))?;
            }
        }
        Ok(())
    }

    /// Removes the work of a complete audit, and no other files.
    pub(super) fn remove(mut self) {
        self.is_done = true;
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if !self.is_done && self.kept() > 0 {
            // A full disk may have left a partial run.
            return drop(self.sweep());
        }
        // A file that cannot be removed does no harm.
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_run(&name) || [MANIFEST, "repeats", LOCK].contains(&name.as_str()) {
                drop(fs::remove_file(entry.path()));
            }
        }
        // Windows keeps the name of the lock until it is closed. If another audit creates it again, the folder stays.
        drop(self.lock.take());
        // The folder stays if it contains other files.
        drop(fs::remove_dir(&self.folder));
    }
}

/// Returns whether a file's name is that of a run: `run-7`, `merged-0`.
fn is_run(name: &str) -> bool {
    let number = name.strip_prefix("run-").or_else(|| name.strip_prefix("merged-"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// # Errors
/// `OUTPUT` for a folder with other files, which may have the names of runs.
fn check_ours(folder: &Path) -> AuditResult<()> {
    let mut is_empty = true;
    for entry in fs::read_dir(folder).map_err(failure::unwritable(folder))? {
        is_empty = false;
        if entry.map_err(failure::unwritable(folder))?.file_name() == LOCK {
            return Ok(());
        }
    }
    if is_empty {
        return Ok(());
    }
    let why = "contains files that are not an audit's work: name an empty or new folder with --work";
    Err(failure::output(format!("the folder {} {why}", folder.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_number_of_128_bits_is_kept() {
        let identity =
            Identity { path: r"\\?\C:\a b".to_owned(), device: u64::MAX, inode: u128::MAX, bytes: 1, modified_ns: 2, changed_ns: -3 };
        let again: Identity = serde_json::from_str(&serde_json::to_string(&identity).unwrap()).unwrap();
        assert_eq!(again, identity);
    }
}
