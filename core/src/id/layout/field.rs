//! The fields under the time: their positions and their values.

use crate::id::Id;
use frazil_base::error::{Error, ErrorKind, Result};

/// One field under the time: a node field, or the sequence.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    pub(super) name: String,
    pub(super) bits: u32,
    pub(super) shift: u32,
}

impl Field {
    /// The name: `[a-z][a-z0-9_]*`, at most 32 characters.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The width, at least 1.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the number of bits by which the field is shifted to the left in the ID.
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// The largest value, `2^bits - 1`.
    pub fn max(&self) -> u64 {
        (1 << self.bits) - 1
    }

    /// The field's value in an ID of its layout.
    ///
    /// # Example
    /// ```
    /// let layout = frazil::Layout::parse("twitter")?;
    /// assert_eq!(layout.node_field("worker")?.of("1541815603606036480".parse()?), 26);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn of(&self, id: Id) -> u64 {
        self.get(id.get() as u64)
    }

    pub(super) fn get(&self, bits: u64) -> u64 {
        (bits >> self.shift) & self.max()
    }
}

/// Refuses a value that does not fit its field.
pub(crate) fn check_value(field: &Field, value: u64) -> Result<u64> {
    if value <= field.max() {
        return Ok(value);
    }
    Err(Error::new(
        ErrorKind::OutOfRange,
        format!("{}={value} is out of range: {} bits allow 0 to {}", field.name, field.bits, field.max()),
    ))
}
