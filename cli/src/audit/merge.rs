//! Sorted runs as one sorted stream.

use super::super::interrupt;
use super::failure::{Failure, Outcome};
use super::record::Record;
use super::run::{Reader, Run, Writer};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

/// So many files are open at a time.
pub(super) const FAN_IN: usize = 64;

/// All records of the runs in order. Where there are more than `fan_in`, some are merged into larger ones first.
pub(super) fn each(folder: &Path, runs: &[Run], fan_in: usize, mut take: impl FnMut(Record) -> Outcome<()>) -> Outcome<()> {
    let mut runs = runs.to_vec();
    let mut merged = 0;
    while runs.len() > fan_in {
        let rest = runs.split_off(fan_in);
        let mut writer = Writer::create(folder, format!("merged-{merged}"))?;
        once(folder, &runs, |record| if interrupt::came() { Err(Failure::Interrupted(String::new())) } else { writer.push(record) })?;
        let all = writer.finish()?;
        runs.iter().filter(|run| run.name.starts_with("merged-")).for_each(|run| drop(std::fs::remove_file(run.path(folder))));
        runs = rest;
        runs.push(all);
        merged += 1;
    }
    once(folder, &runs, &mut take)
}

fn once(folder: &Path, runs: &[Run], mut take: impl FnMut(Record) -> Outcome<()>) -> Outcome<()> {
    let mut readers = runs.iter().map(|run| Reader::open(folder, run)).collect::<Outcome<Vec<_>>>()?;
    let mut heads = BinaryHeap::with_capacity(readers.len());
    for (number, reader) in readers.iter_mut().enumerate() {
        heads.extend(reader.next()?.map(|record| Reverse((record, number))));
    }
    while let Some(mut head) = heads.peek_mut() {
        let Reverse((record, number)) = *head;
        take(record)?;
        match readers[number].next()? {
            // The heap puts it where it belongs once `head` is dropped.
            Some(next) => *head = Reverse((next, number)),
            None => drop(std::collections::binary_heap::PeekMut::pop(head)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn folder(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("frazil-audit-merge-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn write(folder: &Path, number: usize, ids: &[u64]) -> Run {
        let mut records: Vec<_> = ids.iter().enumerate().map(|(line, id)| Record::new(*id, number, line as u64 + 1)).collect();
        records.sort_unstable();
        let mut writer = Writer::create(folder, format!("run-{number}")).unwrap();
        records.iter().for_each(|record| writer.push(*record).unwrap());
        writer.finish().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn as_sorting_all(runs in prop::collection::vec(prop::collection::vec(0_u64..50, 0..40), 0..12), fan_in in 2_usize..5) {
            let folder = folder("all");
            let written: Vec<_> = runs.iter().enumerate().map(|(number, ids)| write(&folder, number, ids)).collect();
            let mut got = Vec::new();
            each(&folder, &written, fan_in, |record| { got.push(record); Ok(()) }).unwrap();
            let mut expected: Vec<_> = runs.iter().enumerate()
                .flat_map(|(number, ids)| ids.iter().enumerate().map(move |(line, id)| Record::new(*id, number, line as u64 + 1))).collect();
            expected.sort();
            prop_assert_eq!(got, expected);
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }

    #[test]
    fn a_run_that_was_changed_is_refused() {
        let folder = folder("changed");
        let run = write(&folder, 0, &[1, 2, 3]);
        let mut bytes = std::fs::read(run.path(&folder)).unwrap();
        bytes[16] ^= 1;
        std::fs::write(run.path(&folder), bytes).unwrap();
        assert!(run.is_there(&folder));
        let told = each(&folder, &[run], 4, |_| Ok(())).unwrap_err().to_string();
        assert!(told.contains("is not what was written"), "{told}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
