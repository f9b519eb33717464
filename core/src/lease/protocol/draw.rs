//! The few numbers that a start reads, drawn from all that the spec allows.
//!
//! Reading every record would cost the process and the store time in proportion to the namespace.
//! Instead a start reads a few numbers of each *octave* of the candidates' index (0; 1; 2 and 3; 4
//! to 7; ...), in one call. An octave is as large as all before it together. So a draw has a few
//! numbers of the octaves that hold most of the numbers in use, however many of these are open.
//!
//! - **A number whose bound has passed is taken first**, so a namespace gets no record that it does
//!   not need.
//! - **An absent number is taken from the lowest octave that has one.** So the numbers with a
//!   record are the low ones, and later draws find them. There are few more records than numbers
//!   that were ever held at once.
//! - **If many processes start at once**, all may want the same number, and the compare-and-set
//!   gives it to one. The others draw again. Absent numbers are then drawn [`RISE`] octaves further
//!   up for each attempt, so that after a few attempts there are more numbers than processes.
//!   Passed numbers are drawn so that each number of the namespace is equally likely.
//!
//! A draw without an open number shows nothing about the other numbers. Then all of them are read
//! in parts, from a random one on (a [`Scan`]), until a part has an open one. Only the end of a
//! scan shows that all numbers are held.

use super::super::candidates::Candidates;
use frazil_store::{MOST_TOGETHER, Which};
use std::sync::Arc;

/// The most candidates that are all read at once; also the size of a part of a scan.
const FEW: u64 = MOST_TOGETHER as u64;
/// The most numbers of one octave in a draw.
const OF_AN_OCTAVE: u64 = 4;
/// The most numbers in a draw, which all stores can read in one call.
const MOST: u64 = 120;
/// The number of octaves further up for each lost attempt.
const RISE: u32 = 3;

/// The candidates to read with the next call.
#[cfg_attr(test, derive(Clone, Debug))]
pub(super) enum Look {
    /// All candidates, which are few.
    All,
    /// A page of the namespace, if the candidates are few and the store may have no clock. A page is often the whole namespace. It also
    /// shows the leases of others.
    Page,
    Draw(Draw),
    Scan(Scan),
}

impl Look {
    pub(super) fn first(candidates: &Candidates, has_page: bool, random: &mut fastrand::Rng) -> Self {
        match candidates.count() {
            ..=FEW if has_page => Look::Page,
            ..=FEW => Look::All,
            _ => Look::Draw(Draw::new(candidates, random)),
        }
    }

    pub(super) fn which(&self, candidates: &Candidates) -> Which {
        match self {
            Look::Page => Which::Page(0),
            Look::All if candidates.count() == 1 => Which::One(candidates.nth(0)),
            look => Which::These(look.nodes(candidates)),
        }
    }

    pub(super) fn nodes(&self, candidates: &Candidates) -> Arc<[u64]> {
        match self {
            Look::All | Look::Page => (0..candidates.count()).map(|n| candidates.nth(n)).collect(),
            Look::Draw(draw) => draw.0.iter().map(|drawn| drawn.node).collect(),
            Look::Scan(scan) => scan.nodes(candidates),
        }
    }
}

/// Some of the candidates, by index.
#[cfg_attr(test, derive(Clone, Debug))]
pub(super) struct Draw(Vec<Drawn>);

#[cfg_attr(test, derive(Clone, Debug))]
struct Drawn {
    node: u64,
    octave: u32,
    /// The number of candidates that it represents.
    weight: u64,
}

impl Draw {
    pub(super) fn new(candidates: &Candidates, random: &mut fastrand::Rng) -> Self {
        let octaves = candidates.count().ilog2();
        let most = OF_AN_OCTAVE.min(MOST / u64::from(octaves + 1));
        let mut drawn = Vec::new();
        for octave in 0..=octaves {
            let size = 1 << octave.saturating_sub(1);
            let first = if octave == 0 { 0 } else { size };
            let mut indices = Vec::new();
            while (indices.len() as u64) < most.min(size) {
                let index = first + if size <= most { indices.len() as u64 } else { random.u64(..size) };
                if !indices.contains(&index) {
                    indices.push(index);
                }
            }
            indices.sort_unstable();
            let weight = size / indices.len() as u64;
            drawn.extend(indices.into_iter().map(|index| Drawn { node: candidates.nth(index), octave, weight }));
        }
        Draw(drawn)
    }

    /// Picks the lowest number whose bound has passed.
    pub(super) fn lowest(&self, is_open: impl Fn(u64) -> bool) -> Option<u64> {
        self.0.iter().map(|drawn| drawn.node).find(|node| is_open(*node))
    }

    /// Picks a number whose bound has passed. `lost` is the number of attempts that other processes have won.
    pub(super) fn passed(&self, is_open: impl Fn(u64) -> bool, lost: u32, random: &mut fastrand::Rng) -> Option<u64> {
        let open: Vec<_> = self.0.iter().filter(|drawn| is_open(drawn.node)).collect();
        let weight = |drawn: &Drawn| if lost == 0 { 1 } else { drawn.weight };
        let all = open.iter().map(|drawn| weight(drawn)).sum::<u64>();
        let mut at = if all > 0 { random.u64(..all) } else { return None };
        let found = open.into_iter().find(|drawn| {
            let is_here = at < weight(drawn);
            at = at.saturating_sub(weight(drawn));
            is_here
        });
        found.map(|drawn| drawn.node)
    }

    /// Picks a number without a record. `lost` is the number of attempts that other processes have won.
    pub(super) fn absent(&self, is_absent: impl Fn(u64) -> bool, lost: u32, random: &mut fastrand::Rng) -> Option<u64> {
        let absent: Vec<_> = self.0.iter().filter(|drawn| is_absent(drawn.node)).collect();
        let highest = absent.first()?.octave + RISE * lost.min(u64::BITS);
        let octave = absent.iter().rev().map(|drawn| drawn.octave).find(|octave| *octave <= highest)?;
        let here: Vec<_> = absent.into_iter().filter(|drawn| drawn.octave == octave).collect();
        Some(here[random.usize(..here.len())].node)
    }
}

/// A look at all candidates, in parts.
#[derive(Default)]
#[cfg_attr(test, derive(Clone, Debug))]
pub(super) struct Scan {
    /// The index of the first candidate.
    pub(super) first: u64,
    pub(super) done: u64,
    /// The records that were found.
    pub(super) found: Vec<(u64, String)>,
}

impl Scan {
    /// The numbers of the next part.
    fn nodes(&self, candidates: &Candidates) -> Arc<[u64]> {
        let count = candidates.count();
        let part = self.done..(self.done + FEW).min(count);
        part.map(|n| candidates.nth((self.first + n) % count)).collect()
    }

    /// Takes in a part; returns whether it was the last one.
    pub(super) fn add(&mut self, found: &[(u64, String)], candidates: &Candidates) -> bool {
        self.found.extend_from_slice(found);
        self.done += FEW;
        self.done >= candidates.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn octave(index: u64) -> u32 {
        u64::BITS - index.leading_zeros()
    }

    #[test]
    fn draw_has_a_few_of_each_octave_and_the_lowest_always() {
        let mut random = fastrand::Rng::with_seed(1);
        for bits in [8, 10, 16, 22, 30, 31, 40, 61] {
            let candidates = Candidates::new(vec![(None, bits)]);
            for _ in 0..20 {
                let draw = Draw::new(&candidates, &mut random);
                let nodes: Vec<u64> = draw.0.iter().map(|drawn| drawn.node).collect();
                assert!(nodes.is_sorted_by(|a, b| a < b), "{nodes:?}");
                assert!(nodes.len() <= MOST_TOGETHER && nodes.iter().all(|node| candidates.contains(*node)));
                let octaves: BTreeMap<u32, u64> = draw.0.iter().fold(BTreeMap::new(), |mut octaves, drawn| {
                    assert_eq!(octave(drawn.node), drawn.octave);
                    *octaves.entry(drawn.octave).or_default() += 1;
                    octaves
                });
                assert_eq!(octaves.len() as u32, bits + 1);
                if bits <= 22 {
                    assert!(nodes.starts_with(&[0, 1, 2, 3, 4, 5, 6, 7]) && octaves.values().skip(3).all(|count| *count == 4));
                }
            }
        }
    }

    /// The numbers of a draw are spread by index, whatever fields are given.
    #[test]
    fn draw_covers_a_layout_whose_fields_are_given_in_part() {
        let candidates = Candidates::new(vec![(None, 5), (Some(9), 4), (None, 6)]);
        let mut random = fastrand::Rng::with_seed(2);
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for _ in 0..2_000 {
            let draw = Draw::new(&candidates, &mut random);
            draw.0.iter().for_each(|drawn| *counts.entry(drawn.node).or_default() += 1);
        }
        assert!(counts.keys().all(|node| candidates.contains(*node)));
        // The draw takes four of the 1,024 in the last octave, two thousand times.
        let last: Vec<u64> = (1_024..2_048).map(|n| counts.get(&candidates.nth(n)).copied().unwrap_or_default()).collect();
        assert!(last.iter().all(|count| *count <= 30) && last.iter().filter(|count| **count > 0).count() > 950, "{last:?}");
    }

    #[test]
    fn lost_attempts_make_every_number_equally_likely() {
        let candidates = Candidates::new(vec![(None, 10)]);
        let mut random = fastrand::Rng::with_seed(3);
        let mut share = |lost| {
            let picked = (0..4_000).filter(|_| {
                let draw = Draw::new(&candidates, &mut random);
                draw.passed(|_| true, lost, &mut random).unwrap() >= 512
            });
            picked.count()
        };
        assert!((300..700).contains(&share(0)), "one octave of eleven, or four numbers of 36");
        assert!((1_800..2_200).contains(&share(1)), "one half");
    }

    #[test]
    fn absent_numbers_come_from_the_lowest_octave_and_further_up_after_lost_attempts() {
        let candidates = Candidates::new(vec![(None, 22)]);
        let mut random = fastrand::Rng::with_seed(4);
        for (lost, octaves) in [(0, 10), (1, 13), (2, 16), (3, 19), (4, 22), (5, 22), (40, 22)] {
            let node = Draw::new(&candidates, &mut random).absent(|node| node >= 512, lost, &mut random).unwrap();
            assert_eq!(octave(node), octaves, "after {lost}");
        }
        assert_eq!(Draw::new(&candidates, &mut random).absent(|_| false, 0, &mut random), None);
        assert_eq!(Draw::new(&candidates, &mut random).passed(|_| false, 0, &mut random), None);
    }

    #[test]
    fn scan_has_every_candidate_once() {
        for (first, fields) in [(0, vec![(None, 8)]), (77, vec![(None, 8)]), (2_047, vec![(None, 5), (Some(3), 2), (None, 6)])] {
            let candidates = Candidates::new(fields);
            let mut scan = Scan { first, ..Scan::default() };
            let mut nodes = Vec::new();
            loop {
                nodes.extend_from_slice(&scan.nodes(&candidates));
                if scan.add(&[], &candidates) {
                    break;
                }
            }
            nodes.sort_unstable();
            assert_eq!(nodes, (0..candidates.count()).map(|n| candidates.nth(n)).collect::<Vec<_>>());
        }
    }
}
