//! `frazil merge-audit`: checks databases with IDs of one layout before they are merged.
//!
//! Sources are read one by one. Their IDs, with source and line, become sorted runs on disk ([`read`], [`work`]). The runs are merged, so
//! that all IDs pass once in order and are counted ([`merge`], [`tally`]). The result is reported ([`findings`], [`text`], [`json`],
//! [`html`]), and duplicates get new IDs ([`remap`]).
//!
//! - A source is parsed by its kind (`source`): `table` reads CSV and TSV, `lines` reads lines of IDs, `dump` reads JSON and dumps
//!   of databases, and `rows` reads the result of a query. Each passes its IDs and its broken lines to `intake`.
//! - The findings are computed by `overlaps` (one node number in several sources), `order` (clocks), `hours` (periods) and
//!   `rounding` (rounded IDs). `fields` decodes the IDs.
//! - `sort` sorts records. `run` has the format of a sorted run, and `record` that of an ID in it. `whole` writes files that appear when
//!   they are complete.

mod arguments;
mod dump;
mod failure;
mod fields;
mod findings;
mod hours;
mod html;
mod intake;
mod json;
mod line_reader;
mod lines;
mod merge;
mod order;
mod overlaps;
mod progress;
mod read;
mod reading;
mod record;
mod remap;
mod result;
mod rounding;
mod rows;
mod run;
mod sort;
mod source;
mod sql;
mod svg;
mod table;
mod tally;
mod text;
mod whole;
#[cfg(windows)]
mod windows;
mod work;

pub(super) use arguments::MergeAudit;

use super::interrupt::Interrupt;
use super::screen::{Outcome, Screen, Stop};
use super::status::DONE;
use failure::AuditResult;
use fields::Fields;
use frazil::admin::{LayoutBits, Start, find_preset, first_word, of_layout, shown, system_ms, value};
use frazil::{Error, ErrorKind, Layout, Result, Spec};
use progress::{Progress, counted, grouped};
use record::{IdRecord, MOST_SOURCES};
use remap::Mint;
use result::Audit;
use source::Source;
use std::fs;

use std::path::Path;
use tally::Tally;
use whole::AtomicFile;
use work::Work;

const FOUND: i32 = 3;

const LEAST_MEMORY: u64 = 1 << 16;
/// The number of merged IDs between two checks for an interrupt.
const CHECK_EVERY: u64 = 1 << 16;

/// Runs the command and returns its exit status: 0, or 3 for findings.
pub(super) fn run(arguments: &MergeAudit, screen: &mut Screen<'_>) -> Outcome {
    let _interrupt = Interrupt::listen();
    let now_ms = system_ms();
    let common = parse_layout(&arguments.layout)?;
    let (own, given): (Vec<_>, Vec<_>) =
        arguments.sources.iter().map(|given| with_layout(given)).collect::<Result<Vec<_>>>()?.into_iter().unzip();
    let mut layouts: Vec<Fields> = Vec::new();
    for (layout, start) in own.into_iter().map(|own| own.unwrap_or_else(|| common.clone())) {
        let known = layouts.iter().find(|known| known.layout().shape() == layout.shape());
        layouts.push(Fields::new(known.map_or(layouts.len(), |known| known.number), &layout, start, now_ms));
    }
    let memory = parse_memory(&arguments.memory)?;
    let sources = given.into_iter().map(|given| Source::parse(given, arguments.query.is_some())).collect::<AuditResult<Vec<_>>>()?;
    check_count(&sources)?;
    check_query(&sources, arguments.query.as_deref())?;
    let script = match arguments.apply_to.as_slice() {
        [] => None,
        columns => Some(sql::RemapScript::new(&arguments.dialect, columns)?),
    };
    let identities = sources.iter().map(Source::identity).collect::<AuditResult<Vec<_>>>()?;
    source::check_distinct(&sources, &identities)?;
    let mint = arguments.remap.as_deref().map(|spec| Mint::open(spec, &layouts)).transpose()?;

    let MergeAudit { out, column, query, strict, .. } = arguments;
    fs::create_dir_all(out).map_err(failure::unwritable(out))?;
    if mint.is_some() {
        remap::check_fresh(out)?;
    }
    let folder = arguments.work.clone().unwrap_or_else(|| out.join("work"));
    let delimiter = arguments.delimiter.map(parse_delimiter).transpose()?;
    let names: Vec<_> = sources.iter().map(|source| source.name.as_str()).collect();
    let settings = format!(
        "{:?} {column:?} {delimiter:?} {strict} {:?}",
        layouts.iter().map(|fields| fields.layout().to_string()).collect::<Vec<_>>(),
        sources.len()
    );
    let mut progress = Progress::new();
    let work = Work::open(&folder, settings, identities)?;
    if work.kept() > 0 {
        screen.note(&format!("resuming from {}: {} need not be read again", folder.display(), counted(work.kept(), "ID")))?;
    }
    let how =
        read::ReadOptions { layouts: &layouts, column, delimiter, query: query.as_deref().unwrap_or_default(), strict: *strict, memory };
    let work = read::read(&sources, &how, work, &mut progress)?;
    if work.ids() == 0 && work.states().iter().all(|state| state.reading.broken_lines() == 0) {
        return Err(failure::input("the sources are empty: check whether the exports failed"));
    }

    let list = folder.join("repeats");
    let mut tally = Tally::new(&layouts);
    merge_all(&work, &names, &mut tally, out, &list, &mut progress)?;
    let readings = work.states().iter().map(|state| &state.reading).collect();
    let mut audit = Audit::new(&layouts, now_ms, names, readings, &tally, arguments.shared_nodes, out.clone());
    if let Some(mint) = mint {
        audit.remap = Some(read::interruptible(&work, mint.run(&list, out, &audit, script.as_ref(), &mut progress))?);
    }
    let mut report = AtomicFile::create(out.join("report.html"))?;
    report.write(audit.html())?;
    report.finish()?;
    drop(progress);
    let printed = if arguments.json { screen.json(&audit.json()) } else { audit.print(screen) };
    let printed = printed.and_then(|()| screen.flush());
    let status = if audit.is_clean() { DONE } else { FOUND };
    work.remove();
    printed.map(|()| status).map_err(|stop| match stop {
        Stop::Output(error) => failure::output(format!("the output cannot be written, the report is complete: {error}")),
        other => other,
    })
}

/// Counts all IDs in order, and writes the duplicates to files.
fn merge_all(work: &Work, names: &[&str], tally: &mut Tally<'_>, out: &Path, list: &Path, progress: &mut Progress) -> AuditResult<()> {
    let (mut duplicates, mut repeats) = (AtomicFile::create(out.join("duplicates.csv"))?, AtomicFile::create(list.to_owned())?);
    let names: Vec<_> = names.iter().map(|name| csv_field(name)).collect();
    duplicates.write("id,source,line\n")?;
    let total = work.ids();
    let mut merged = 0;
    let mut write = |record: IdRecord| duplicates.write(format_args!("{},{},{}\n", record.id, names[record.source()], record.line()));
    let took = merge::each(work.folder(), &work.runs(), merge::FAN_IN, |record| {
        let status = tally.take(record);
        if status.is_duplicate {
            status.first.map_or(Ok(()), &mut write)?;
            write(record)?;
        }
        if let Some(repeat) = status.repeat {
            repeats.write(format_args!("{},{}\n", repeat.id, repeat.source))?;
        }
        merged += 1;
        if merged % CHECK_EVERY == 0 {
            progress.say(|| format!("comparing: {} %, {} IDs", merged * 100 / total, grouped(merged)))?;
        }
        Ok(())
    });
    tally.finish();
    read::interruptible(work, took)?;
    duplicates.finish()?;
    repeats.finish().map(drop)
}

/// Parses the layout of a spec, and the start policy if the spec or its preset names one. Other presets may be those of another system.
fn parse_layout(text: &str) -> Result<Parsed> {
    let (layout, policies) = of_layout(text)?;
    let named = |name: &str| find_preset(name).is_ok_and(|preset| preset.policies.iter().any(|(key, _)| *key == "start"));
    let is_known = |spec: &Spec| first_word(spec).is_some_and(named) || value(spec, "start").is_ok_and(|start| start.is_some());
    let start = Spec::parse(text).ok().filter(is_known).map(|_| policies.start);
    Ok((layout, start))
}

/// A layout, and its start policy if known.
type Parsed = (Layout, Option<Start>);

/// Splits LAYOUT=SOURCE into the layout and the source.
///
/// # Errors
/// Those of the layout in front of an existing file.
fn with_layout(given: &str) -> Result<(Option<Parsed>, &str)> {
    // The name of a file may contain `=`.
    let places = given.match_indices('=').filter(|(at, _)| (1..given.len() - 1).contains(at) && !Path::new(given).exists());
    let mut mistake = None;
    for (layout, source) in places.map(|(at, _)| (&given[..at], &given[at + 1..])) {
        match parse_layout(layout) {
            Ok(layout) => return Ok((Some(layout), source)),
            Err(error) if Path::new(source).exists() => mistake = Some(error),
            Err(_) => {}
        }
    }
    mistake.map_or(Ok((None, given)), Err)
}

fn check_count(sources: &[Source]) -> AuditResult<()> {
    if sources.len() <= MOST_SOURCES {
        return Ok(());
    }
    let why = format!("{} sources are too many: at most {MOST_SOURCES}", sources.len());
    Err(Error::new(ErrorKind::OutOfRange, why).into())
}

/// Rejects a query without a database, and the reverse, before hours of reading.
fn check_query(sources: &[Source], query: Option<&str>) -> AuditResult<()> {
    let database = sources.iter().find(|source| source.is_query());
    let why = match (database, query) {
        (Some(source), None) => format!("source={} is a database: add --query 'select id from items'", source.name),
        (None, Some(_)) => "--query is for databases, but no source is one".to_owned(),
        _ => return Ok(()),
    };
    Err(Error::new(ErrorKind::Spec, why).into())
}

fn parse_delimiter(given: char) -> AuditResult<u8> {
    u8::try_from(given).ok().filter(|byte| byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"\"\r\n".contains(byte)).ok_or_else(|| {
        let why = format!("--delimiter={given:?} is not allowed: use an ASCII character that is not a letter, digit, quote or line end");
        Error::new(ErrorKind::OutOfRange, why).into()
    })
}

/// `512M` in bytes.
fn parse_memory(text: &str) -> AuditResult<u64> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let shift = match unit.to_ascii_uppercase().as_str() {
        "K" | "KIB" => Some(10),
        "M" | "MIB" => Some(20),
        "G" | "GIB" => Some(30),
        _ => None,
    };
    let bytes = digits.parse::<u64>().ok().zip(shift).and_then(|(number, shift)| number.checked_mul(1 << shift));
    bytes.filter(|bytes| *bytes >= LEAST_MEMORY).ok_or_else(|| {
        Error::new(ErrorKind::OutOfRange, format!("--memory={} must be a size of at least 64K, such as 512M or 2G", shown(text))).into()
    })
}

/// Quotes a source's name for a CSV file.
fn csv_field(name: &str) -> String {
    if name.contains([',', '"', '\n', '\r']) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.to_owned() }
}
