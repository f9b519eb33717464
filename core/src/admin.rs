//! The command line's view of the library: what an operator sees and sets, and what explains a layout, a spec or an ID.
//!
//! Only the crate `frazil-cli` uses it, and both have the same version: it may change at any time.

/// Numbers as other programs write them, and the marks of rounding.
pub mod foreign {
    pub use crate::foreign::{EXACT_IN_A_DOUBLE, Reason, Written, read, rounding};
}

/// Leases and their records.
pub mod lease {
    pub use crate::lease::{Contract, Meta, Overlap, Purpose, Slot, Tenure, accept, begin, first_wait, newer_format, set_back};
}

/// Tags and their records.
pub mod segment {
    pub use crate::numbers::{begin_tag, check_begun};
    pub use crate::segment::{Origin, Record, begin, check_name, place};
}

/// Stores, reached by their addresses.
pub mod store {
    pub use crate::store::{Address, Loaded, Pages, Store, Swap, Swapped, Which, column};
}

use crate::error::Result;
use crate::guard::Names;
use crate::id::Id;
use crate::layout::Layout;
use crate::spec::Spec;

pub use crate::clock::{Counter, system_ms};
pub use crate::error::shown;
pub use crate::fork::Copies;
pub use crate::guard::{Found, remove_lock_files};
pub use crate::layout::{ID_BITS, Shape};
pub use crate::policy::{Policies, Reaction, Start};
pub use crate::preset::{PRESETS, Preset, find as find_preset};
pub use crate::range::check_order;
pub use crate::secret::{Secret, address};
pub use crate::spec::{DEFAULT_NAMESPACE, Source, check_namespace, resolve, spec_error};
pub use crate::time::{LAST_MS, parse_duration, show_duration, show_span};

/// True where this build has the client of every store.
pub const HAS_ALL_STORES: bool = cfg!(feature = "stores");

/// The bits of a layout's IDs.
pub trait LayoutBits {
    /// Everything about an ID's bits; layouts that differ in names alone have the same.
    fn shape(&self) -> Shape;
    /// The bits below the time field.
    fn time_shift(&self) -> u32;
    /// The last tick that the time field holds.
    fn last_tick(&self) -> u64;
    /// The Unix ms at which a tick starts.
    fn tick_start_ms(&self, tick: u64) -> i64;
    /// The node number of the node fields' values.
    fn node_of(&self, values: impl Iterator<Item = u64>) -> u64;
    /// The node fields' values of a node number.
    fn node_values(&self, node: u64) -> Vec<u64>;
}

impl LayoutBits for Layout {
    fn shape(&self) -> Shape {
        self.shape()
    }

    fn time_shift(&self) -> u32 {
        self.time_shift()
    }

    fn last_tick(&self) -> u64 {
        self.last_tick()
    }

    fn tick_start_ms(&self, tick: u64) -> i64 {
        self.tick_start_ms(tick)
    }

    fn node_of(&self, values: impl Iterator<Item = u64>) -> u64 {
        self.node_of(values)
    }

    fn node_values(&self, node: u64) -> Vec<u64> {
        self.node_values(node)
    }
}

/// The ID of 63 bits.
pub fn id_of_bits(bits: u64) -> Id {
    Id::from_bits(bits)
}

/// The layout of a preset's name, of a layout's text or of a whole spec, and the policies; no number need be given.
///
/// # Errors
/// Those of a spec.
pub fn of_layout(text: &str) -> Result<(Layout, Policies)> {
    Spec::of_layout(text)
}

/// A whole spec's layout, and the source of its node number.
///
/// # Errors
/// Those of [`Spec::layout`].
pub fn plan(spec: &Spec) -> Result<(Layout, Source)> {
    let plan = spec.plan()?;
    Ok((plan.layout, plan.source))
}

/// Checks the spec's `after` against this machine's clock.
///
/// # Errors
/// Those of [`Spec::layout`]; `OUT_OF_RANGE` and `LAYOUT_EXPIRED` for the ID.
pub fn check_after(spec: &Spec) -> Result<()> {
    spec.plan()?.check_after().map(drop)
}

/// The number of a spec on this machine: whether it is free, held or cannot be guarded. `None` where it is not to be guarded.
///
/// # Errors
/// Those of [`Spec::layout`].
pub fn find_guard(spec: &Spec) -> Result<Option<Found>> {
    let plan = spec.plan()?;
    let names = match plan.source {
        Source::Fixed(node) if plan.is_guarded() => Names::new(&plan.layout, node, &plan.namespace),
        _ => return Ok(None),
    };
    Ok(Some(crate::guard::find(&names)))
}

/// The preset's name, or what stands in its place.
pub fn first_word(spec: &Spec) -> Option<&str> {
    spec.first_word()
}

/// A key's value, `env:NAME` resolved.
///
/// # Errors
/// `SPEC` for a variable that is not set.
pub fn value(spec: &Spec, key: &str) -> Result<Option<String>> {
    spec.value(key)
}

/// # Errors
/// `UNKNOWN_KEY` for a key that is none of these.
pub fn check_keys_among(spec: &Spec, keys: &[&str]) -> Result<()> {
    spec.check_keys_among(keys)
}
