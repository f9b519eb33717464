//! The statistics of all IDs in order: repeats, times, node numbers, sequences.

use super::fields::{Fields, Taken, When};
use super::record::{Record, Sample};
use super::rounding::Marks;
use frazil::admin::id_of_bits;
use std::collections::{BTreeMap, HashMap, HashSet};

const DAY_MS: i64 = 86_400_000;
/// So many pairs of a node number and a source are told apart.
const MOST_NODES: usize = 1 << 20;
pub(super) const BUCKETS: usize = 64;
const ROOMY: usize = 1024;

/// The statistics of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) ids: u64,
    pub(super) too_wide: Sample,
    pub(super) future: Sample,
    pub(super) early: Sample,
    /// Numbers as JavaScript prints them after it rounded an ID, beyond those that are a double as they are.
    pub(super) rounded: Sample,
    /// Those that are a double as they are, and what that says.
    pub(super) doubles: Marks,
    /// IDs above 2^53, which JavaScript would round.
    pub(super) roundable: u64,
    /// Rows whose ID stands in an earlier row of the same source.
    pub(super) repeated: u64,
    /// IDs that an earlier source has.
    pub(super) taken: u64,
    /// The times of the first and the last ID that fit.
    pub(super) times: Option<(i64, i64)>,
}

/// A node number in a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) ids: u64,
    pub(super) first_ms: i64,
    pub(super) last_ms: i64,
}

/// The places of an ID that stands in several rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Duplicate {
    pub(super) id: u64,
    /// Source and line.
    pub(super) places: Vec<(usize, u64)>,
}

/// An ID that a source has, and an earlier one too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repeat {
    pub(super) id: u64,
    pub(super) source: usize,
}

/// Adds a record to the lists of duplicates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// The first place of the ID, where this is its second.
    pub(super) first: Option<Record>,
    pub(super) is_duplicate: bool,
    /// This source has it from here on, and an earlier one has it.
    pub(super) repeat: Option<Repeat>,
}

pub(super) struct Tally<'a> {
    layouts: &'a [Fields],
    pub(super) parts: Vec<Part>,
    pub(super) nodes: HashMap<(u64, usize), Use>,
    /// Those of IDs whose time is not plausible.
    pub(super) odd_nodes: HashSet<u64>,
    /// There are more node numbers than are told apart.
    pub(super) too_many_nodes: bool,
    /// Days since 1970, and the IDs of each source.
    pub(super) days: BTreeMap<i64, Vec<u64>>,
    /// The number of sequences of each source in each of the [`BUCKETS`] parts of the range.
    pub(super) sequences: Vec<[u64; BUCKETS]>,
    /// Ticks in which several sources have IDs of a layout's node number.
    pub(super) shared: HashMap<(usize, u64), u64>,
    /// The tick of each layout, and the node numbers in it.
    ticks: Vec<(u64, HashMap<u64, Seen>)>,
    /// The ID at which the stream is, and where it was first.
    first: Option<Record>,
    repeats: u64,
    last_source: usize,
    /// Different IDs that stand in several rows, and those among them that are in several sources.
    pub(super) duplicated: u64,
    pub(super) in_several: u64,
    is_in_several: bool,
    /// The first of them.
    pub(super) examples: Vec<Duplicate>,
    /// The number of IDs that the later of two sources shares with the earlier one.
    pub(super) pairs: BTreeMap<(usize, usize), u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    In(usize),
    Shared,
}

/// So many duplicates are shown, and so many places of each.
const SHOWN_DUPLICATES: usize = 100;
const SHOWN_PLACES: usize = 20;

impl<'a> Tally<'a> {
    pub(super) fn new(layouts: &'a [Fields]) -> Self {
        Tally {
            layouts,
            parts: vec![Part::default(); layouts.len()],
            nodes: HashMap::new(),
            odd_nodes: HashSet::new(),
            too_many_nodes: false,
            days: BTreeMap::new(),
            sequences: vec![[0; BUCKETS]; layouts.len()],
            shared: HashMap::new(),
            ticks: vec![(0, HashMap::new()); layouts.len()],
            first: None,
            repeats: 0,
            last_source: 0,
            duplicated: 0,
            in_several: 0,
            is_in_several: false,
            examples: Vec::new(),
            pairs: BTreeMap::new(),
        }
    }

    /// The parts of the sequence's range that are counted.
    pub(super) fn buckets(&self) -> usize {
        BUCKETS.min(1 << self.layouts[0].layout().sequence().bits().min(BUCKETS.ilog2()))
    }

    /// The next record in order.
    #[inline]
    pub(super) fn take(&mut self, record: Record) -> Said {
        let source = record.source();
        self.parts[source].ids += 1;
        self.rounding(record);
        match self.layouts[source].take(record.id) {
            None => self.parts[source].too_wide.add(record),
            Some(taken) => self.taken(record, taken),
        }
        self.repeat(record)
    }

    #[inline]
    fn rounding(&mut self, record: Record) {
        let id = record.id;
        if id > 1 << 53 {
            let part = &mut self.parts[record.source()];
            part.roundable += 1;
            part.doubles.add(record, self.layouts[record.source()].bits());
            // A rounded number of 18 or 19 digits ends with zeros: most others need no look. What is a double as it is, is no sign.
            let may_be = id < 100_000_000_000_000_000 || id.is_multiple_of(if id < 1_000_000_000_000_000_000 { 10 } else { 100 });
            if may_be && id as f64 as u64 != id && id_of_bits(id).looks_rounded() {
                part.rounded.add(record);
            }
        }
    }

    #[inline]
    fn taken(&mut self, record: Record, taken: Taken) {
        let source = record.source();
        let part = &mut self.parts[source];
        let Taken { tick, unix_ms, node, sequence } = taken;
        match self.layouts[source].when(unix_ms) {
            When::Plausible => {}
            When::Future => {
                part.future.add(record);
                return self.odd_node(node);
            }
            When::Early => {
                part.early.add(record);
                return self.odd_node(node);
            }
        }
        // In order: the first is the earliest.
        part.times = Some((part.times.map_or(unix_ms, |(first, _)| first), unix_ms));
        let shift = self.layouts[source].layout().sequence().bits().saturating_sub(BUCKETS.ilog2());
        self.sequences[source][(sequence >> shift) as usize] += 1;
        self.day(source, unix_ms.div_euclid(DAY_MS));
        self.node(source, node, unix_ms);
        if self.parts.len() > 1 {
            self.meeting(source, tick, node);
        }
    }

    #[inline]
    fn day(&mut self, source: usize, day: i64) {
        let sources = self.parts.len();
        match self.days.last_entry() {
            Some(mut last) if *last.key() == day => last.get_mut()[source] += 1,
            _ => self.days.entry(day).or_insert_with(|| vec![0; sources])[source] += 1,
        }
    }

    #[inline]
    fn node(&mut self, source: usize, node: u64, unix_ms: i64) {
        if let Some(known) = self.nodes.get_mut(&(node, source)) {
            known.ids += 1;
            known.last_ms = unix_ms;
        } else if self.nodes.len() < MOST_NODES {
            self.nodes.insert((node, source), Use { ids: 1, first_ms: unix_ms, last_ms: unix_ms });
        } else {
            self.too_many_nodes = true;
        }
    }

    fn odd_node(&mut self, node: u64) {
        if self.odd_nodes.len() < MOST_NODES {
            self.odd_nodes.insert(node);
        } else if !self.odd_nodes.contains(&node) {
            self.too_many_nodes = true;
        }
    }

    /// True if several sources have IDs of one node number in one tick.
    #[inline]
    fn meeting(&mut self, source: usize, tick: u64, node: u64) {
        let layout = self.layouts[source].number;
        let (now, in_tick) = &mut self.ticks[layout];
        if tick != *now {
            *now = tick;
            // One tick with very many would have each later one clear as much.
            if in_tick.capacity() > ROOMY { *in_tick = HashMap::new() } else { in_tick.clear() }
        }
        let seen = in_tick.entry(node).or_insert(Seen::In(source));
        if let Seen::In(other) = *seen
            && other != source
        {
            *seen = Seen::Shared;
            if self.shared.len() < MOST_NODES || self.shared.contains_key(&(layout, node)) {
                *self.shared.entry((layout, node)).or_default() += 1;
            }
        }
    }

    #[inline]
    fn repeat(&mut self, record: Record) -> Said {
        let source = record.source();
        let Some(first) = self.first.filter(|first| first.id == record.id) else {
            (self.first, self.repeats, self.last_source, self.is_in_several) = (Some(record), 0, source, false);
            return Said::default();
        };
        self.repeats += 1;
        let mut said = Said { is_duplicate: true, ..Said::default() };
        if self.repeats == 1 {
            said.first = Some(first);
            self.duplicated += 1;
            if self.examples.len() < SHOWN_DUPLICATES {
                self.examples.push(Duplicate { id: record.id, places: vec![(first.source(), first.line())] });
            }
        }
        if let Some(example) = self.examples.last_mut().filter(|example| example.id == record.id && example.places.len() < SHOWN_PLACES) {
            example.places.push((source, record.line()));
        }
        if source == self.last_source {
            self.parts[source].repeated += 1;
        } else {
            self.last_source = source;
            self.parts[source].taken += 1;
            *self.pairs.entry((first.source(), source)).or_default() += 1;
            if !self.is_in_several {
                self.is_in_several = true;
                self.in_several += 1;
            }
            said.repeat = Some(Repeat { id: record.id, source });
        }
        said
    }
}
