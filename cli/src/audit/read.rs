//! Turns sources into sorted runs: one thread reads, another sorts and writes.

use super::super::code;
use super::super::screen::Stop;
use super::failure::{self, AuditResult};
use super::fields::Fields;
use super::intake::{Batch, Intake};
use super::lines::LONGEST_OF_ROWS;
use super::progress::{Progress, grouped};
use super::reading::SourcePosition;
use super::record::IdRecord;
use super::run::RunWriter;
use super::source::{Kind, Source};
use super::work::{State, Work};
use super::{dump, lines, rows, sort, table};
use std::fs::File;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The options for reading sources.
pub(super) struct ReadOptions<'a> {
    pub(super) layouts: &'a [Fields],
    pub(super) column: &'a str,
    /// The delimiter of CSV files, if `--delimiter` gives it.
    pub(super) delimiter: Option<u8>,
    /// The query for databases; empty without `--query`.
    pub(super) query: &'a str,
    pub(super) strict: bool,
    /// The memory for records, in bytes.
    pub(super) memory: u64,
}

/// Reads what the folder of the work does not contain yet.
///
/// # Errors
/// Those of a source and of the folder. IDs that were read before the error are kept.
pub(super) fn read(sources: &[Source], how: &ReadOptions<'_>, work: Work, progress: &mut Progress) -> AuditResult<Work> {
    // Three buffers: one is filled while another is sorted with the help of the third. A quarter is for the rest.
    let capacity = usize::try_from(how.memory / 4 / size_of::<IdRecord>() as u64).unwrap_or(usize::MAX);
    let states = work.states().to_vec();
    // An ID and its line end take at least two bytes. If the number of IDs is unknown, the buffer grows.
    let bytes: u64 = states.iter().flat_map(|state| &state.identity).map(|identity| identity.bytes).sum();
    let most = usize::try_from(bytes / 2 + 1).unwrap_or(usize::MAX);
    let work = Mutex::new(work);
    let read = std::thread::scope(|scope| {
        let (full, batches) = sync_channel::<Batch>(0);
        let (back, empty) = sync_channel::<Vec<IdRecord>>(2);
        for _ in 0..2 {
            // The channel has room for both buffers.
            let _ = back.try_send(Vec::with_capacity(capacity.min(most)));
        }
        let work = &work;
        let sorter = scope.spawn(move || write_runs(batches, &back, work));
        let read = each(sources, how, &states, capacity, &full, &empty, progress);
        drop(full);
        let sorted = sorter.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // If the sorter has ended, its error is the cause of the reader's.
        sorted.and(read)
    });
    let work = work.into_inner().unwrap_or_else(PoisonError::into_inner);
    interruptible(&work, read)?;
    Ok(work)
}

/// Names in the error of an interrupt the work that is kept.
pub(super) fn interruptible<T>(work: &Work, done: AuditResult<T>) -> AuditResult<T> {
    done.map_err(|stop| match stop {
        Stop::Failed(code::INTERRUPTED, _) => failure::interrupted(kept(work)),
        other => other,
    })
}

/// Describes the work that a resumed audit does not repeat.
fn kept(work: &Work) -> String {
    if work.kept() == 0 {
        return "stopped; nothing is kept, because rows of queries are never kept: the same command begins anew".to_owned();
    }
    let complete = work.states().iter().filter(|state| state.complete && state.identity.is_some()).count();
    format!(
        "stopped; {} IDs are read and sorted, {complete} of {} sources complete. They are kept in {}: run the same command to continue",
        grouped(work.kept()),
        work.states().len(),
        work.folder().display()
    )
}

fn write_runs(batches: Receiver<Batch>, back: &SyncSender<Vec<IdRecord>>, work: &Mutex<Work>) -> AuditResult<()> {
    let mut spare = Vec::new();
    for Batch { source, mut records, reading, place, complete } in batches {
        let run = if records.is_empty() {
            None
        } else {
            let (folder, name) = {
                let mut work = work.lock().unwrap_or_else(PoisonError::into_inner);
                (work.folder().to_owned(), work.next_name())
            };
            let mut writer = RunWriter::create(&folder, name)?;
            let mut write = |part: &[IdRecord]| part.iter().try_for_each(|record| writer.push(*record));
            if records.is_sorted() {
                write(&records)?;
            } else {
                // The records come in the order of their lines, which a stable sort keeps.
                let count = records.len();
                spare.resize(spare.len().max(count), IdRecord::ZERO);
                sort::by_id(&mut records, &mut spare[..count], &mut write)?;
            }
            Some(writer.finish()?)
        };
        work.lock().unwrap_or_else(PoisonError::into_inner).add(source, run, reading, place, complete)?;
        records.clear();
        // A reader that has ended does not need the buffer.
        let _ = back.try_send(records);
    }
    Ok(())
}

fn each(
    sources: &[Source],
    how: &ReadOptions<'_>,
    states: &[State],
    capacity: usize,
    full: &SyncSender<Batch>,
    empty: &Receiver<Vec<IdRecord>>,
    progress: &mut Progress,
) -> AuditResult<()> {
    let gone = || failure::output("the sorter has ended".to_owned());
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
            Err(stop) => {
                // The records of a changed file are dropped; those of other files are kept for a resumed audit.
                if !matches!(stop, Stop::Failed(code::INPUT_CHANGED, _)) && !source.is_query() {
                    intake.send(false)?;
                }
                return Err(stop);
            }
        }
        records = intake.records;
    }
    Ok(())
}

fn one(source: &Source, how: &ReadOptions<'_>, state: &State, intake: &mut Intake<'_>) -> AuditResult<()> {
    let identity = state.identity.as_ref();
    type Reader<'r> = &'r dyn Fn(&File, &mut Intake<'_>) -> AuditResult<()>;
    let with_file = |path: &Path, intake: &mut Intake<'_>, read: Reader<'_>| {
        let identity = identity.expect("a file has an identity");
        let file = source.open(path, identity)?;
        read(&file, intake)?;
        source.check(&file, identity)?;
        // Another file may have replaced it under its name.
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
            // A dump is read from its beginning, because a resumed audit must know the current statement.
            lines::each(file, SourcePosition::default(), (LONGEST_OF_ROWS, state.place.row), intake, &mut |line| dump.rows(line))
        }),
        Kind::Csv { path, delimiter } => with_file(path, intake, &|file, intake| {
            table::read(file, how.delimiter.filter(|_| delimiter.is_none()).or(*delimiter), how.column, state.place, intake)
        }),
        Kind::Sqlite(path) => rows::of_sqlite(path, how.query, intake),
        Kind::Query(url) => rows::read(url, how.query, intake),
    }
}
