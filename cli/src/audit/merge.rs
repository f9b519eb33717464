//! Merges sorted runs into one sorted stream.

use super::super::interrupt;
use super::failure::{self, AuditResult};
use super::record::IdRecord;
use super::run::{Run, RunReader, RunWriter};
use std::path::Path;

/// The number of files that are open at once.
pub(super) const FAN_IN: usize = 64;

/// Passes all records of the runs in order. Merges runs into larger ones first if there are more than `fan_in`.
pub(super) fn each(folder: &Path, runs: &[Run], fan_in: usize, mut take: impl FnMut(IdRecord) -> AuditResult<()>) -> AuditResult<()> {
    let mut runs = runs.to_vec();
    let mut merged = 0;
    while runs.len() > fan_in {
        let rest = runs.split_off(fan_in);
        let mut writer = RunWriter::create(folder, format!("merged-{merged}"))?;
        once(folder, &runs, |record| if interrupt::is_requested() { Err(failure::interrupted("")) } else { writer.push(record) })?;
        let all = writer.finish()?;
        runs.iter().filter(|run| run.name.starts_with("merged-")).for_each(|run| drop(std::fs::remove_file(run.path(folder))));
        runs = rest;
        runs.push(all);
        merged += 1;
    }
    once(folder, &runs, &mut take)
}

/// Merges by blocks: each has all records up to the smallest of the last records in memory, so that
/// no later block has a smaller one. A stable sort merges the ordered parts of a block.
fn once(folder: &Path, runs: &[Run], mut take: impl FnMut(IdRecord) -> AuditResult<()>) -> AuditResult<()> {
    let mut readers = runs.iter().map(|run| RunReader::open(folder, run)).collect::<AuditResult<Vec<_>>>()?;
    let mut block = Vec::new();
    loop {
        let mut bound = None;
        for reader in &mut readers {
            bound = [bound, reader.last()?].into_iter().flatten().min();
        }
        let Some(bound) = bound else { return Ok(()) };
        block.clear();
        readers.iter_mut().for_each(|reader| block.extend_from_slice(reader.take(bound)));
        block.sort();
        block.iter().try_for_each(|record| take(*record))?;
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::screen::Stop;
    use super::*;
    use proptest::prelude::*;

    fn folder(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("frazil-audit-merge-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn write(folder: &Path, number: usize, ids: &[u64]) -> Run {
        let mut records: Vec<_> = ids.iter().enumerate().map(|(line, id)| IdRecord::new(*id, number, line as u64 + 1)).collect();
        records.sort_unstable();
        let mut writer = RunWriter::create(folder, format!("run-{number}")).unwrap();
        records.iter().for_each(|record| writer.push(*record).unwrap());
        writer.finish().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
    fn merge_sorts_all(runs in prop::collection::vec(prop::collection::vec(0_u64..50, 0..40), 0..12), fan_in in 2_usize..5) {
            let folder = folder("all");
            let written: Vec<_> = runs.iter().enumerate().map(|(number, ids)| write(&folder, number, ids)).collect();
            let mut got = Vec::new();
            each(&folder, &written, fan_in, |record| { got.push(record); Ok(()) }).unwrap();
            let mut expected: Vec<_> = runs.iter().enumerate()
                .flat_map(|(number, ids)| ids.iter().enumerate().map(move |(line, id)| IdRecord::new(*id, number, line as u64 + 1))).collect();
            expected.sort();
            prop_assert_eq!(got, expected);
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }

    #[test]
    fn a_run_that_was_changed_is_refused() {
        let folder = folder("changed");
        let run = write(&folder, 0, &[1, 2, 3]);
        let bytes = std::fs::read(run.path(&folder)).unwrap();
        for (at, bit) in (0..bytes.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            std::fs::write(run.path(&folder), changed).unwrap();
            assert!(run.is_there(&folder));
            let Err(Stop::Failed(_, error)) = each(&folder, std::slice::from_ref(&run), 4, |_| Ok(())) else {
                panic!("bit {bit} of {at} was changed")
            };
            // A longer frame would end after the file.
            assert!(
                error.contains("has changed since it was written") || at < 4 && error.contains("failed to fill"),
                "{at} {bit}: {error}"
            );
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
