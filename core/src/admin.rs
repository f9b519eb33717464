//! The command line's view of the library: data that an operator reads and sets, and explanations
//! of a layout, a spec or an ID.
//!
//! Only the crate `frazil-cli` uses it. Both crates have the same version, so it may change at any
//! time.

/// Numbers in other programs' notations, and the marks of rounding.
pub mod foreign {
    pub use crate::id::foreign::{EXACT_IN_A_DOUBLE, Reason, Written, digits, read, rounding};
}

/// Leases and their records.
pub mod lease {
    pub use crate::lease::{Change, Next};
    pub use crate::lease::{Contract, Meta, Overlap, Purpose, Slot, Tenure, accept, begin, first_wait, newer_format, set_back};
}

/// Tags and their records.
pub mod segment {
    pub use crate::counters::numbers::{begin_tag, check_begun};
    pub use crate::counters::segment::{Origin, Record, begin, place};
}

/// Stores, reached by their addresses.
pub mod store {
    pub use frazil_store::{Address, Key, Loaded, Pages, Store, Swap, Swapped, Which, column};
}

use crate::guard::Names;
use crate::id::Id;
use crate::id::layout::Layout;
use crate::spec::Spec;
use frazil_base::error::Result;

pub use crate::clock::Counter;
pub use crate::generator::policy::{Policies, Reaction, Start};
pub use crate::guard::{Found, remove_lock_files};
pub use crate::id::layout::{ID_BITS, Shape};
pub use crate::id::preset::{PRESETS, Preset, find as find_preset};
pub use crate::id::range::check_order;
pub use crate::spec::{DEFAULT_NAMESPACE, NodeSource, resolve};
pub use frazil_base::error::{shell_word, shown, spec_error};
pub use frazil_base::os::fork::Copies;
pub use frazil_base::secret::{Secret, address};
pub use frazil_base::time::system_ms;
pub use frazil_base::time::{LAST_MS, parse_duration, show_duration, show_span};
pub use frazil_store::{check_namespace, check_tag};

/// True if this build has the client of every store.
pub const HAS_ALL_STORES: bool = cfg!(feature = "stores");

/// The bits of a layout's IDs.
pub trait LayoutBits {
    /// The description of an ID's bits. Layouts that differ only in names have the same shape.
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

/// The layout and the policies of a preset's name, of a layout's text or of a whole spec. The spec
/// may lack the node number.
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
pub fn plan(spec: &Spec) -> Result<(Layout, NodeSource)> {
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

/// The state of a spec's number on this machine: free, held, or impossible to guard. `None` if it
/// is not guarded at all.
///
/// # Errors
/// Those of [`Spec::layout`].
pub fn find_guard(spec: &Spec) -> Result<Option<Found>> {
    let plan = spec.plan()?;
    let names = match plan.source {
        NodeSource::Fixed(node) if plan.is_guarded() => Names::new(&plan.layout, node, &plan.namespace),
        _ => return Ok(None),
    };
    Ok(Some(crate::guard::find(&names)))
}

/// The preset's name, or the first word in its position.
pub fn first_word(spec: &Spec) -> Option<&str> {
    spec.first_word()
}

/// The value of a key, with `env:NAME` replaced.
///
/// # Errors
/// `SPEC` for a variable that is not set.
pub fn value(spec: &Spec, key: &str) -> Result<Option<String>> {
    spec.value(key)
}

/// # Errors
/// `UNKNOWN_KEY` for a key that is not one of these.
pub fn check_keys_among(spec: &Spec, keys: &[&str]) -> Result<()> {
    spec.check_keys_among(keys)
}
