//! The folder of an audit that is under way: sorted runs, and a manifest that says what they are.
//!
//! A run is named in the manifest only once it is complete; so an audit that was killed goes on from there, if its sources are
//! unchanged. The manifest is replaced as a whole. One audit works in a folder at a time.

use super::failure::{Failure, Outcome};
use super::reading::{Place, Reading};
use super::run::Run;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

const MANIFEST: &str = "manifest.json";
/// The time for which another program may keep a file from being replaced.
const HELD: Duration = Duration::from_millis(500);
/// Tells that a folder is an audit's, too.
const LOCK: &str = "merge-audit.lock";

/// The identity of a file that is the same, and unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) path: String,
    pub(super) device: u64,
    /// The file's number, of 128 bits on Windows' ReFS; 0 where the file system has no such number.
    pub(super) inode: u128,
    pub(super) bytes: u64,
    pub(super) modified_ns: u64,
    /// The time of its last change of any kind: `cp -p` and `touch` set the other time as they like. 0 where there is no such time.
    pub(super) changed_ns: i64,
}

/// The position up to which a source was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// `None` for a query, which is made anew.
    pub(super) identity: Option<Identity>,
    pub(super) runs: Vec<Run>,
    /// The findings in the runs' content, and the position at which they end.
    pub(super) reading: Reading,
    pub(super) place: Place,
    pub(super) complete: bool,
}

#[derive(Serialize, Deserialize)]
struct Manifest {
    version: String,
    /// Whatever else a run depends on.
    settings: String,
    runs: u64,
    states: Vec<State>,
}

/// Dropped, it leaves in its folder what a resume can use, if there is anything.
pub(super) struct Work {
    folder: PathBuf,
    manifest: Manifest,
    is_done: bool,
    /// Held as long as it is open.
    lock: Option<File>,
}

impl Work {
    /// Opens a folder, and takes over what an earlier audit of the same sources has left in it.
    ///
    /// # Errors
    /// `OUTPUT`, also where another audit works in it, or it holds something else.
    pub(super) fn open(folder: &Path, settings: String, identities: Vec<Option<Identity>>) -> Outcome<Self> {
        fs::create_dir_all(folder).map_err(Failure::output(folder))?;
        check_ours(folder)?;
        let path = folder.join(LOCK);
        let lock = File::options().create(true).append(true).open(&path).map_err(Failure::output(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Failure::Output(format!("another merge-audit works in {}", folder.display()))),
            Err(TryLockError::Error(error)) => return Err(Failure::output(&path)(error)),
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
        // On a disk that is full, this first.
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

    /// A source's further run, if it gave one, and how far it was read.
    pub(super) fn add(&mut self, source: usize, run: Option<Run>, reading: Reading, place: Place, complete: bool) -> Outcome<()> {
        let state = &mut self.manifest.states[source];
        state.runs.extend(run);
        (state.reading, state.place, state.complete) = (reading, place, complete);
        self.save()
    }

    /// All IDs that were read.
    pub(super) fn ids(&self) -> u64 {
        self.runs().iter().map(|run| run.records).sum()
    }

    /// Those that a resume need not read again.
    pub(super) fn kept(&self) -> u64 {
        let files = self.states().iter().filter(|state| state.identity.is_some());
        files.flat_map(|state| &state.runs).map(|run| run.records).sum()
    }

    fn save(&self) -> Outcome<()> {
        let (new, path) = (self.folder.join("manifest.new"), self.folder.join(MANIFEST));
        let text = serde_json::to_vec(&self.manifest).map_err(|error| Failure::Output(error.to_string()))?;
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(&text)?;
            file.sync_data()?;
            replace(&new, &path)
        };
        write().map_err(Failure::output(&path))
    }

    /// Takes away runs that the manifest does not name: they are incomplete, or of sources that have changed.
    fn sweep(&self) -> Outcome<()> {
        let named = self.runs();
        for entry in fs::read_dir(&self.folder).map_err(Failure::output(&self.folder))? {
            let entry = entry.map_err(Failure::output(&self.folder))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_run(&name) && !named.iter().any(|run| run.name == name) {
                fs::remove_file(entry.path()).map_err(Failure::output(&entry.path()))?;
            }
        }
        Ok(())
    }

    /// The audit is done: nothing of it is left, and nothing else is touched.
    pub(super) fn remove(mut self) {
        self.is_done = true;
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if !self.is_done && self.kept() > 0 {
            // A half run, where the disk is full.
            return drop(self.sweep());
        }
        // What cannot be taken away is in nobody's way.
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_run(&name) || [MANIFEST, "repeats", LOCK].contains(&name.as_str()) {
                drop(fs::remove_file(entry.path()));
            }
        }
        // Windows keeps the lock's name until it is closed. Whoever makes it anew meanwhile keeps the folder.
        drop(self.lock.take());
        // It stays where somebody keeps something else in it.
        drop(fs::remove_dir(&self.folder));
    }
}

/// Renames a file over another. On Windows whoever has that one open, as a scanner or a backup does for a moment, may keep it.
fn replace(new: &Path, path: &Path) -> io::Result<()> {
    let until = Instant::now() + HELD;
    loop {
        match fs::rename(new, path) {
            Err(_) if cfg!(windows) && Instant::now() < until => thread::sleep(Duration::from_millis(1)),
            done => return done,
        }
    }
}

/// Returns whether it is the name of a run: `run-7`, `merged-0`.
fn is_run(name: &str) -> bool {
    let number = name.strip_prefix("run-").or_else(|| name.strip_prefix("merged-"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// # Errors
/// `OUTPUT` for a folder that holds something else: its files may have the names of runs.
fn check_ours(folder: &Path) -> Outcome<()> {
    let mut is_empty = true;
    for entry in fs::read_dir(folder).map_err(Failure::output(folder))? {
        is_empty = false;
        if entry.map_err(Failure::output(folder))?.file_name() == LOCK {
            return Ok(());
        }
    }
    if is_empty {
        return Ok(());
    }
    let why = "holds something else than an audit's work: name an empty folder, or a new one, with --work";
    Err(Failure::Output(format!("the folder {} {why}", folder.display())))
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
