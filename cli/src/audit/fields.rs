//! A layout made ready for a hundred million IDs: shifts and masks, and no allocation.

use super::rounding::Bits;
use frazil::admin::{LayoutBits, Start};
use frazil::{Field, Layout};

#[derive(Clone)]
pub(super) struct Fields {
    /// Sources of one layout have the same.
    pub(super) number: usize,
    layout: Layout,
    time_shift: u32,
    last_tick: u64,
    node_fields: Vec<Field>,
    bits: Bits,
    early_ms: i64,
    late_ms: i64,
}

/// Counters from 1, and clocks that were never set, seem to be from so soon after the epoch.
const EARLY_MS: i64 = 3_600_000;
/// The time by which an ID's stamp may lie after now: the machine's clock may be fast.
const LATE_MS: i64 = 60_000;

/// The time that an ID seems to be from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Early,
    Plausible,
    Future,
}

/// An ID taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) tick: u64,
    pub(super) unix_ms: i64,
    pub(super) node: u64,
    pub(super) sequence: u64,
}

impl Fields {
    pub(super) fn new(number: usize, layout: &Layout, start: Option<Start>, now_ms: i64) -> Self {
        // Time that the field can hold and a date cannot is no time: such an ID is of another layout.
        let last_tick = layout.last_tick();
        Fields {
            number,
            time_shift: layout.time_shift(),
            last_tick,
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

    /// The bits that tell whether IDs were rounded.
    #[inline]
    pub(super) fn bits(&self) -> &Bits {
        &self.bits
    }

    /// The value of the lowest node field in a node number.
    pub(super) fn lowest_node_field(&self, node: u64) -> u64 {
        node & self.node_fields.last().map_or(0, Field::max)
    }

    /// The name of that field.
    pub(super) fn lowest_node_name(&self) -> &str {
        self.node_fields.last().map_or("no field", Field::name)
    }

    #[inline]
    pub(super) fn when(&self, unix_ms: i64) -> When {
        match unix_ms {
            _ if unix_ms > self.late_ms => When::Future,
            _ if unix_ms < self.early_ms => When::Early,
            _ => When::Plausible,
        }
    }

    /// The instant at which the tick of an ID starts; `None` for an ID that does not fit the layout.
    #[inline]
    pub(super) fn time(&self, id: u64) -> Option<i64> {
        let tick = id >> self.time_shift;
        (tick <= self.last_tick).then(|| self.layout.tick_start_ms(tick))
    }

    /// `None` for an ID that does not fit the layout.
    #[inline]
    pub(super) fn take(&self, id: u64) -> Option<Taken> {
        let unix_ms = self.time(id)?;
        let value = |field: &Field| (id >> field.shift()) & field.max();
        let node = self.layout.node_of(self.node_fields.iter().map(value));
        Some(Taken { tick: id >> self.time_shift, unix_ms, node, sequence: value(self.layout.sequence()) })
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
        fn as_the_layout_decodes(number in 0..=i64::MAX) {
            for preset in PRESETS {
                let layout = Layout::parse(preset.name).unwrap();
                let parts = layout.decode(Id::new(number).unwrap()).ok();
                let expected = parts.map(|parts| Taken {
                    tick: parts.tick(), unix_ms: parts.unix_ms(), node: parts.node(), sequence: parts.sequence(),
                });
                prop_assert_eq!(Fields::new(0, &layout, None, 0).take(number as u64), expected);
            }
        }
    }
}
