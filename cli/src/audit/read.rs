//! Sources into sorted runs: one thread reads, another sorts and writes.

use super::failure::{Failure, Outcome};
use super::fields::Fields;
use super::intake::{Batch, Intake};
use super::lines::LONGEST_OF_ROWS;
use super::progress::{Progress, grouped};
use super::reading::Place;
use super::record::Record;
use super::run::Writer;
use super::source::{Kind, Source};
use super::work::{State, Work};
use super::{dump, lines, rows, table};
use std::fs::File;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The options for reading sources.
pub(super) struct How<'a> {
    pub(super) layouts: &'a [Fields],
    pub(super) column: &'a str,
    /// The delimiter of CSV files, where it was given.
    pub(super) delimiter: Option<u8>,
    /// The query for databases; `None` where there is none.
    pub(super) query: &'a str,
    pub(super) strict: bool,
    /// Bytes for the records that are in memory.
    pub(super) memory: u64,
}

/// Reads what the folder does not hold yet.
///
/// # Errors
/// Those of a source, and of the folder. After each, what was read before it is kept.
pub(super) fn read(sources: &[Source], how: &How<'_>, work: Work, progress: &mut Progress) -> Outcome<Work> {
    // One is filled while the other is sorted.
    let capacity = usize::try_from(how.memory / 2 / Record::BYTES as u64).unwrap_or(usize::MAX);
    let states = work.states().to_vec();
    // An ID and the end of its line are two bytes at least. Where the number of IDs is not known, the buffer grows.
    let bytes: u64 = states.iter().flat_map(|state| &state.identity).map(|identity| identity.bytes).sum();
    let most = usize::try_from(bytes / 2 + 1).unwrap_or(usize::MAX);
    let work = Mutex::new(work);
    let read = std::thread::scope(|scope| {
        let (full, batches) = sync_channel::<Batch>(0);
        let (back, empty) = sync_channel::<Vec<Record>>(2);
        for _ in 0..2 {
            // It has room for both.
            let _ = back.try_send(Vec::with_capacity(capacity.min(most)));
        }
        let work = &work;
        let sorter = scope.spawn(move || sort(batches, &back, work));
        let read = each(sources, how, &states, capacity, &full, &empty, progress);
        drop(full);
        let sorted = sorter.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // A reader that finds nobody to send to has no better reason than the sorter's.
        sorted.and(read)
    });
    let work = work.into_inner().unwrap_or_else(PoisonError::into_inner);
    match read {
        Ok(()) => Ok(work),
        Err(Failure::Interrupted(_)) => Err(Failure::Interrupted(kept(&work))),
        Err(failure) => Err(failure),
    }
}

/// The work that a resume need not do again.
pub(super) fn kept(work: &Work) -> String {
    if work.kept() == 0 {
        return "stopped; nothing is kept, as of a query nothing is: the same command begins anew".to_owned();
    }
    let complete = work.states().iter().filter(|state| state.complete && state.identity.is_some()).count();
    format!(
        "stopped; {} IDs are read and sorted, {complete} of {} sources complete. They are kept in {}: the same command goes on from there",
        grouped(work.kept()),
        work.states().len(),
        work.folder().display()
    )
}

fn sort(batches: Receiver<Batch>, back: &SyncSender<Vec<Record>>, work: &Mutex<Work>) -> Outcome<()> {
    for Batch { source, mut records, reading, place, complete } in batches {
        let run = if records.is_empty() {
            None
        } else {
            records.sort_unstable();
            let (folder, name) = {
                let mut work = work.lock().unwrap_or_else(PoisonError::into_inner);
                (work.folder().to_owned(), work.next_name())
            };
            let mut writer = Writer::create(&folder, name)?;
            records.iter().try_for_each(|record| writer.push(*record))?;
            Some(writer.finish()?)
        };
        work.lock().unwrap_or_else(PoisonError::into_inner).add(source, run, reading, place, complete)?;
        records.clear();
        // A reader that has ended needs it no more.
        let _ = back.try_send(records);
    }
    Ok(())
}

fn each(
    sources: &[Source],
    how: &How<'_>,
    states: &[State],
    capacity: usize,
    full: &SyncSender<Batch>,
    empty: &Receiver<Vec<Record>>,
    progress: &mut Progress,
) -> Outcome<()> {
    let gone = || Failure::Output("the sorter has ended".to_owned());
    let buffer = || empty.recv().map_err(|_| gone());
    let mut records = buffer()?;
    for (number, (source, state)) in sources.iter().zip(states).enumerate() {
        if state.complete {
            continue;
        }
        let mut send = |batch| {
            full.send(batch).map_err(|_| gone())?;
            buffer()
        };
        let mut intake = Intake {
            source: number,
            name: &source.name,
            fields: &how.layouts[number],
            strict: how.strict,
            reading: state.reading.clone(),
            records,
            capacity: capacity.max(1),
            progress: &mut *progress,
            begun: Instant::now(),
            bytes: state.identity.as_ref().map(|identity| identity.bytes),
            seen: 0,
            send: &mut send,
            place: state.place,
        };
        match one(source, how, state, &mut intake) {
            Ok(()) => intake.send(true)?,
            Err(failure) => {
                // What a changed file has given so far is worth nothing; otherwise a resume goes on behind it.
                if !matches!(failure, Failure::Changed(_)) && !source.is_query() {
                    intake.send(false)?;
                }
                return Err(failure);
            }
        }
        records = intake.records;
    }
    Ok(())
}

fn one(source: &Source, how: &How<'_>, state: &State, intake: &mut Intake<'_>) -> Outcome<()> {
    let identity = state.identity.as_ref();
    type Reader<'r> = &'r dyn Fn(&File, &mut Intake<'_>) -> Outcome<()>;
    let with_file = |path: &Path, intake: &mut Intake<'_>, read: Reader<'_>| {
        let identity = identity.expect("a file has an identity");
        let file = source.open(path, identity)?;
        read(&file, intake)?;
        source.check(&file, identity)?;
        // Another file may have taken its name.
        match source.identity()? {
            Some(now) if now == *identity => Ok(()),
            _ => source.changed(),
        }
    };
    match &source.kind {
        Kind::Text(path) => with_file(path, intake, &|file, intake| lines::read(file, state.place, intake)),
        Kind::Json(path) => with_file(path, intake, &|file, intake| {
            lines::each(file, state.place, (LONGEST_OF_ROWS, 0), intake, &mut |line| dump::of_json(line, how.column))
        }),
        Kind::Dump(path) => with_file(path, intake, &|file, intake| {
            let mut dump = dump::Dump::new(how.column);
            // A resume needs to know in which statement it is.
            lines::each(file, Place::default(), (LONGEST_OF_ROWS, state.place.row), intake, &mut |line| dump.rows(line))
        }),
        Kind::Csv { path, delimiter } => with_file(path, intake, &|file, intake| {
            table::read(file, how.delimiter.filter(|_| delimiter.is_none()).or(*delimiter), how.column, state.place, intake)
        }),
        Kind::Sqlite(path) => rows::of_sqlite(path, how.query, intake),
        Kind::Query(url) => rows::read(url, how.query, intake),
    }
}
