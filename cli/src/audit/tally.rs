//! The statistics of all IDs in order: repeats, times, node numbers, sequences.

use super::fields::{Fields, IdParts, Plausibility};
use super::hours::{self, Hours, Periods};
use super::record::{IdRecord, Sample};
use super::rounding::Marks;
use foldhash::fast::RandomState;
use frazil::admin::id_of_bits;
use std::collections::{self, BTreeMap};

type HashMap<K, V> = collections::HashMap<K, V, RandomState>;
type HashSet<T> = collections::HashSet<T, RandomState>;

const DAY_MS: i64 = 86_400_000;
/// The number of pairs of a node number and a source that are counted.
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
    /// Numbers as JavaScript prints rounded IDs, except those that are exact doubles.
    pub(super) rounded: Sample,
    /// The evidence of rounding.
    pub(super) doubles: Marks,
    /// IDs above 2^53, which JavaScript would round.
    pub(super) roundable: u64,
    /// Rows whose ID occurs in an earlier row of the same source.
    pub(super) repeated: u64,
    /// IDs that an earlier source has.
    pub(super) taken: u64,
    /// The times of the first and the last ID that fit.
    pub(super) times: Option<(i64, i64)>,
}

/// The use of a node number in a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) ids: u64,
    pub(super) first_ms: i64,
    pub(super) last_ms: i64,
}

/// An ID that occurs in several rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Duplicate {
    pub(super) id: u64,
    /// Source and line.
    pub(super) places: Vec<(usize, u64)>,
}

/// An ID that a source shares with an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repeat {
    pub(super) id: u64,
    pub(super) source: usize,
}

/// The relation of a record to the records before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RecordStatus {
    /// The first record with the ID, if this is the second.
    pub(super) first: Option<IdRecord>,
    pub(super) is_duplicate: bool,
    /// Set at the first record of a source whose ID an earlier source has.
    pub(super) repeat: Option<Repeat>,
}

#[derive(Default)]
pub(super) struct Tally<'a> {
    layouts: &'a [Fields],
    pub(super) parts: Vec<Part>,
    pub(super) nodes: HashMap<(u64, usize), Use>,
    /// The node numbers of IDs whose time is not plausible.
    pub(super) odd_nodes: HashSet<u64>,
    /// There are more than [`MOST_NODES`] node numbers.
    pub(super) too_many_nodes: bool,
    /// The number of IDs of each source, by days since 1970.
    pub(super) days: Periods,
    pub(super) hours: Hours,
    /// The number of sequences of each source in each of the [`BUCKETS`] parts of the range.
    pub(super) sequences: Vec<[u64; BUCKETS]>,
    /// Ticks in which several sources have IDs of a layout's node number.
    pub(super) shared: HashMap<(usize, u64), u64>,
    /// The current tick of each layout.
    ticks: Vec<Tick>,
    /// The source and the parts of the last IDs, as long as only the sequence differs, and their number. They are counted together.
    group: (usize, IdParts),
    grouped: u64,
    /// The first record with the current ID.
    first: Option<IdRecord>,
    repeats: u64,
    last_source: usize,
    /// The number of different IDs that occur in several rows, and of those in several sources.
    pub(super) duplicated: u64,
    pub(super) in_several: u64,
    is_in_several: bool,
    /// The first duplicates.
    pub(super) examples: Vec<Duplicate>,
    /// The number of IDs that the later of two sources shares with the earlier one.
    pub(super) pairs: BTreeMap<(usize, usize), u64>,
}

/// The node numbers in a tick.
#[derive(Clone, Default)]
struct Tick {
    tick: u64,
    /// The node number and the source of the first ID. It is not in `nodes` if the tick has no other ID, as most have.
    first: Option<(u64, usize)>,
    nodes: HashMap<u64, Seen>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    In(usize),
    Shared,
}

/// The number of duplicates that are shown, and of the rows of each.
const SHOWN_DUPLICATES: usize = 100;
const SHOWN_PLACES: usize = 20;

impl<'a> Tally<'a> {
    pub(super) fn new(layouts: &'a [Fields]) -> Self {
        let sources = layouts.len();
        Tally {
            layouts,
            parts: vec![Part::default(); sources],
            sequences: vec![[0; BUCKETS]; sources],
            ticks: vec![Tick::default(); sources],
            ..Tally::default()
        }
    }

    /// The number of buckets into which the sequence's range is divided.
    pub(super) fn buckets(&self) -> usize {
        BUCKETS.min(1 << self.layouts[0].layout().sequence().bits().min(BUCKETS.ilog2()))
    }

    /// Counts the next record in order.
    #[inline]
    pub(super) fn take(&mut self, record: IdRecord) -> RecordStatus {
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
    fn rounding(&mut self, record: IdRecord) {
        let id = record.id;
        if id > 1 << 53 {
            let part = &mut self.parts[record.source()];
            part.roundable += 1;
            part.doubles.add(record, self.layouts[record.source()].bits());
            // A rounded number of 18 or 19 digits ends with zeros, so most others are skipped. An exact double is not a sign of rounding.
            let may_be = id < 100_000_000_000_000_000 || id.is_multiple_of(if id < 1_000_000_000_000_000_000 { 10 } else { 100 });
            if may_be && id as f64 as u64 != id && id_of_bits(id).looks_rounded() {
                part.rounded.add(record);
            }
        }
    }

    #[inline]
    fn taken(&mut self, record: IdRecord, taken: IdParts) {
        let source = record.source();
        let part = &mut self.parts[source];
        let IdParts { unix_ms, node, sequence, .. } = taken;
        match self.layouts[source].when(unix_ms) {
            Plausibility::Plausible => {}
            Plausibility::Future => {
                part.future.add(record);
                return self.odd_node(node);
            }
            Plausibility::Early => {
                part.early.add(record);
                return self.odd_node(node);
            }
        }
        let shift = self.layouts[source].layout().sequence().bits().saturating_sub(BUCKETS.ilog2());
        self.sequences[source][(sequence >> shift) as usize] += 1;
        let group = (source, IdParts { sequence: 0, ..taken });
        if group != self.group {
            self.finish();
            self.group = group;
        }
        self.grouped += 1;
    }

    /// Counts the last group. Call this after the last record.
    pub(super) fn finish(&mut self) {
        let (source, IdParts { tick, unix_ms, node, .. }) = self.group;
        let ids = std::mem::take(&mut self.grouped);
        if ids == 0 {
            return;
        }
        // Records arrive in order, so the first time is the earliest.
        let part = &mut self.parts[source];
        part.times = Some((part.times.map_or(unix_ms, |(first, _)| first), unix_ms));
        let sources = self.parts.len();
        hours::count(&mut self.days, unix_ms.div_euclid(DAY_MS), ids, source, sources);
        self.hours.take(unix_ms, ids, source, sources);
        self.node(source, node, unix_ms, ids);
        if sources > 1 {
            self.meeting(source, tick, node);
        }
    }

    #[inline]
    fn node(&mut self, source: usize, node: u64, unix_ms: i64, ids: u64) {
        if let Some(known) = self.nodes.get_mut(&(node, source)) {
            known.ids += ids;
            known.last_ms = unix_ms;
        } else if self.nodes.len() < MOST_NODES {
            self.nodes.insert((node, source), Use { ids, first_ms: unix_ms, last_ms: unix_ms });
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

    /// Counts ticks in which several sources have IDs with one node number.
    #[inline]
    fn meeting(&mut self, source: usize, tick: u64, node: u64) {
        let layout = self.layouts[source].number;
        let Tick { tick: now, first, nodes } = &mut self.ticks[layout];
        if tick != *now {
            (*now, *first) = (tick, Some((node, source)));
            // Clearing costs time in proportion to the capacity, so a map that has grown large is replaced.
            if nodes.capacity() > ROOMY {
                *nodes = HashMap::default()
            } else {
                nodes.clear()
            }
            return;
        }
        if let Some((node, source)) = first.take() {
            nodes.insert(node, Seen::In(source));
        }
        let seen = nodes.entry(node).or_insert(Seen::In(source));
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
    fn repeat(&mut self, record: IdRecord) -> RecordStatus {
        let source = record.source();
        let Some(first) = self.first.filter(|first| first.id == record.id) else {
            (self.first, self.repeats, self.last_source, self.is_in_several) = (Some(record), 0, source, false);
            return RecordStatus::default();
        };
        self.repeats += 1;
        let mut status = RecordStatus { is_duplicate: true, ..RecordStatus::default() };
        if self.repeats == 1 {
            status.first = Some(first);
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
            status.repeat = Some(Repeat { id: record.id, source });
        }
        status
    }
}
