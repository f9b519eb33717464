//! A layout as shifts and masks, for decoding a hundred million IDs without allocation.

use super::rounding::Bits;
use frazil::admin::{LayoutBits, Start};
use frazil::{Field, Layout};

#[derive(Clone)]
pub(super) struct Fields {
    /// The index of the first source with this layout: equal for sources of one layout.
    pub(super) number: usize,
    layout: Layout,
    time_shift: u32,
    last_tick: u64,
    epoch_ms: i64,
    tick_ms: i64,
    node_fields: Vec<Field>,
    bits: Bits,
    early_ms: i64,
    late_ms: i64,
}

/// Counters from 1, and clocks that were never set, give times up to this long after the epoch.
const EARLY_MS: i64 = 3_600_000;
/// The longest time by which an ID may be ahead of now, because the machine's clock may be fast.
const LATE_MS: i64 = 60_000;

/// The plausibility of an ID's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plausibility {
    Early,
    Plausible,
    Future,
}

/// The parts of a decoded ID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct IdParts {
    pub(super) tick: u64,
    pub(super) unix_ms: i64,
    pub(super) node: u64,
    pub(super) sequence: u64,
}

impl Fields {
    pub(super) fn new(number: usize, layout: &Layout, start: Option<Start>, now_ms: i64) -> Self {
        // A time that no date can represent belongs to another layout.
        let last_tick = layout.last_tick();
        Fields {
            number,
            time_shift: layout.time_shift(),
            last_tick,
            epoch_ms: layout.epoch_ms(),
            tick_ms: layout.tick_ms() as i64,
            node_fields: layout.node_fields().to_vec(),
            bits: Bits {
                time_shift: layout.time_shift(),
                sequence: if layout.sequence().shift() == 0 { layout.sequence().bits() } else { 0 },
                lowest: layout.node_fields().iter().chain([layout.sequence()]).find(|field| field.shift() == 0).map_or(0, Field::max),
                starts: start.map(|start| start.values()),
            },
            early_ms: layout.epoch_ms().saturating_add(EARLY_MS),
            late_ms: now_ms.saturating_add(LATE_MS),
            layout: layout.clone(),
        }
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The bits by which rounded IDs are recognized.
    #[inline]
    pub(super) fn bits(&self) -> &Bits {
        &self.bits
    }

    /// The value of the lowest node field in a node number.
    pub(super) fn lowest_node_field(&self, node: u64) -> u64 {
        node & self.node_fields.last().map_or(0, Field::max)
    }

    /// The name of the lowest node field.
    pub(super) fn lowest_node_name(&self) -> &str {
        self.node_fields.last().map_or("no field", Field::name)
    }

    #[inline]
    pub(super) fn when(&self, unix_ms: i64) -> Plausibility {
        match unix_ms {
            _ if unix_ms > self.late_ms => Plausibility::Future,
            _ if unix_ms < self.early_ms => Plausibility::Early,
            _ => Plausibility::Plausible,
        }
    }

    /// The instant at which the tick of an ID starts; `None` for an ID that does not fit the layout.
    #[inline]
    pub(super) fn time(&self, id: u64) -> Option<i64> {
        let tick = id >> self.time_shift;
        // The last tick is at the year 9999 at the latest, so nothing overflows.
        (tick <= self.last_tick).then(|| self.epoch_ms + tick as i64 * self.tick_ms)
    }

    /// `None` for an ID that does not fit the layout.
    #[inline]
    pub(super) fn take(&self, id: u64) -> Option<IdParts> {
        let unix_ms = self.time(id)?;
        let value = |field: &Field| (id >> field.shift()) & field.max();
        let node = self.layout.node_of(self.node_fields.iter().map(value));
        Some(IdParts { tick: id >> self.time_shift, unix_ms, node, sequence: value(self.layout.sequence()) })
    }

    /// A node number as its fields: `datacenter=1 worker=7`.
    pub(super) fn show_node(&self, node: u64) -> String {
        let values = self.layout.node_values(node);
        let shown: Vec<_> = self.node_fields.iter().zip(values).map(|(field, value)| format!("{}={value}", field.name())).collect();
        if shown.is_empty() { "no node field".to_owned() } else { shown.join(" ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil::Id;
    use frazil::admin::PRESETS;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fields_decode_as_the_layout_does(number in 0..=i64::MAX) {
            for preset in PRESETS {
                let layout = Layout::parse(preset.name).unwrap();
                let parts = layout.decode(Id::new(number).unwrap()).ok();
                let expected = parts.map(|parts| IdParts {
                    tick: parts.tick(), unix_ms: parts.unix_ms(), node: parts.node(), sequence: parts.sequence(),
                });
                prop_assert_eq!(Fields::new(0, &layout, None, 0).take(number as u64), expected);
            }
        }
    }
}
