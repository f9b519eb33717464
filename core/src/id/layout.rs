//! Layouts: the 63 bits of an ID as named fields of any width, in any order under the time.
//!
//! An ID is the sum of its fields, each shifted to its position, with the time field on top. So IDs sort by time whatever their other
//! fields hold, and a range of time is a range of IDs: from [`Layout::min_id`] to [`Layout::max_id`].

mod field;
mod parse;

pub use field::Field;
pub(crate) use field::check_value;

use crate::id::{Id, Parts};
use frazil_base::error::{Error, ErrorKind, Result, shown};
use frazil_base::nearest::did_you_mean;
use frazil_base::time::{self, LAST_MS};
use std::fmt;
use std::sync::Arc;

/// The bits of an ID: a signed 64-bit integer whose sign bit is always 0.
pub const ID_BITS: u32 = 63;
/// The tick of all instants before the epoch. It is above every real tick, and no gate (`generator/lease.rs`) is ever open for it.
const NO_TICK: u64 = u64::MAX - 1;
const LONGEST_TICK_MS: u64 = 3_600_000;
/// The longest name of a field or a key.
pub(crate) const LONGEST_NAME: usize = 32;

/// Names that have another meaning in a spec line, in a decoded ID, or in a language's options.
pub(crate) const RESERVED: &[&str] = &[
    "after",
    "clock",
    "detached",
    "epoch",
    "exhausted",
    "fields",
    "id",
    "lag",
    "layout",
    "lease",
    "looks_rounded",
    "namespace",
    "renew",
    "rollback",
    "sequence",
    "shared",
    "start",
    "store",
    "tick",
    "time",
    "window",
];

/// A layout: the fields of an ID, the length of a tick, and the epoch.
///
/// Its text lists the fields from the most significant. The time is `time:bits@tick`. Then comes `name:bits`
/// for each node field, with `sequence:bits` anywhere among them. The epoch is a date, RFC 3339 or Unix
/// milliseconds from 1990 on. A [preset](crate#presets)'s name parses too. Immutable, `Send + Sync`, cheap to
/// clone.
///
/// # Example
/// ```
/// use frazil::Layout;
///
/// let layout: Layout = "time:41@1ms business:4 machine:6 sequence:12 epoch:2025-01-01".parse()?;
/// assert_eq!(layout.nodes(), 1024);
/// assert_eq!(layout.ids_per_second(), 4_096_000.0);
/// assert_eq!(layout.to_string(), "time:41@1ms business:4 machine:6 sequence:12 epoch:1735689600000");
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Layout(Arc<Inner>);

#[derive(PartialEq, Eq, Hash)]
struct Inner {
    time_bits: u32,
    tick_ms: u64,
    epoch_ms: i64,
    node_fields: Vec<Field>,
    sequence: Field,
}

/// The part of a layout that determines its numbers: everything except the names.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    time_bits: u32,
    time_shift: u32,
    tick_ms: u64,
    epoch_ms: i64,
    sequence_bits: u32,
    sequence_shift: u32,
}

impl Shape {
    /// The shape as a text. Only equal shapes have equal texts.
    pub(crate) fn key(&self) -> String {
        let Shape { time_bits, time_shift, tick_ms, epoch_ms, sequence_bits, sequence_shift } = self;
        format!("{time_bits}<<{time_shift}@{tick_ms}+{epoch_ms},{sequence_bits}<<{sequence_shift}")
    }
}

impl Layout {
    /// Returns a layout of the same fields with another epoch (Unix ms).
    pub(crate) fn with_epoch(&self, epoch_ms: i64) -> Self {
        Layout(Arc::new(Inner { epoch_ms, node_fields: self.0.node_fields.clone(), sequence: self.0.sequence.clone(), ..*self.0 }))
    }

    /// The width of the time field.
    pub fn time_bits(&self) -> u32 {
        self.0.time_bits
    }

    /// The length of a tick in milliseconds, 1 to 3,600,000.
    pub fn tick_ms(&self) -> u64 {
        self.0.tick_ms
    }

    /// The instant at which the time field is 0, in Unix milliseconds.
    pub fn epoch_ms(&self) -> i64 {
        self.0.epoch_ms
    }

    /// The node fields and their widths in bits, from the most significant.
    pub fn node_fields(&self) -> &[Field] {
        &self.0.node_fields
    }

    /// The counter within a tick.
    pub fn sequence(&self) -> &Field {
        &self.0.sequence
    }

    /// One node field.
    ///
    /// # Errors
    /// `UNKNOWN_KEY` for a name that the layout does not have.
    pub fn node_field(&self, name: &str) -> Result<&Field> {
        self.0.node_fields.iter().find(|field| field.name == name).ok_or_else(|| {
            let names: Vec<_> = self.0.node_fields.iter().map(Field::name).collect();
            let near = did_you_mean(name, names.iter().copied());
            Error::new(ErrorKind::UnknownKey, format!("the layout has no node field {}{near}; it has: {}", shown(name), names.join(", ")))
        })
    }

    /// The number of node numbers: 2 to the power of all node bits.
    pub fn nodes(&self) -> u64 {
        1 << self.node_width()
    }

    /// The IDs that one generator can mint in a second, sustained.
    pub fn ids_per_second(&self) -> f64 {
        (self.0.sequence.max() + 1) as f64 * 1000.0 / self.0.tick_ms as f64
    }

    /// The first instant that cannot be stamped, in Unix milliseconds. `None` if it is after the
    /// year 9999, where dates end.
    pub fn expires_at_ms(&self) -> Option<i64> {
        let end = self.tick_start_ms(1 << self.0.time_bits);
        (end <= LAST_MS).then_some(end)
    }

    /// Decodes an ID.
    ///
    /// # Errors
    /// `ID_INVALID` when the ID has more bits than the layout, or a time after the year 9999.
    ///
    /// # Example
    /// ```
    /// let layout = frazil::Layout::parse("twitter")?;
    /// let parts = layout.decode("1541815603606036480".parse()?)?;
    /// assert_eq!(parts.unix_ms(), 1656432460105);
    /// assert_eq!((parts.field("datacenter"), parts.field("worker")), (Some(11), Some(26)));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn decode(&self, id: Id) -> Result<Parts> {
        let (tick, unix_ms) = self.time_of(id)?;
        let bits = id.get() as u64;
        let fields = self.0.node_fields.iter().map(|field| (field.name.clone(), field.get(bits))).collect();
        let node = self.node_of(self.0.node_fields.iter().map(|field| field.get(bits)));
        Ok(Parts::new(id, tick, unix_ms, node, fields, self.0.sequence.get(bits)))
    }

    /// The raw time field of an ID, and the instant (Unix ms) at which that tick starts. Together with [`Field::of`] it replaces
    /// [`decode`](Layout::decode), without allocating.
    ///
    /// # Errors
    /// As [`decode`](Layout::decode).
    ///
    /// # Example
    /// ```
    /// let layout = frazil::Layout::parse("twitter")?;
    /// assert_eq!(layout.time_of("1541815603606036480".parse()?)?, (367597485448, 1656432460105));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn time_of(&self, id: Id) -> Result<(u64, i64)> {
        let bits = id.get() as u64;
        let allowed = self.time_shift() + self.0.time_bits;
        if bits >> allowed != 0 {
            return Err(foreign(id, format_args!("has more bits than the layout's {allowed}")));
        }
        let tick = bits >> self.time_shift();
        let unix_ms = self.tick_start_ms(tick);
        if unix_ms > LAST_MS {
            return Err(foreign(id, format_args!("has a time after the year 9999 in this layout")));
        }
        Ok((tick, unix_ms))
    }

    /// Composes an ID of an instant, a sequence and every node field. The instant (Unix ms) may be any within the tick.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` when a value does not fit its field (nothing is masked), `UNKNOWN_KEY` for a field that the layout does not have,
    /// `NODE_MISSING` for a field that is not given, `BEFORE_EPOCH` and `LAYOUT_EXPIRED` for an instant outside the layout.
    ///
    /// # Example
    /// ```
    /// let layout = frazil::Layout::parse("twitter")?;
    /// let id = layout.compose(1656432460105, &[("datacenter", 11), ("worker", 26)], 0)?;
    /// assert_eq!(id.to_string(), "1541815603606036480");
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn compose(&self, unix_ms: i64, fields: &[(&str, u64)], sequence: u64) -> Result<Id> {
        let tick = self.tick_of_argument(unix_ms)?;
        for (i, (name, _)) in fields.iter().enumerate() {
            self.node_field(name)?;
            if fields[..i].iter().any(|(earlier, _)| earlier == name) {
                return Err(Error::new(ErrorKind::Spec, format!("the field {name} is given twice")));
            }
        }
        let mut bits = tick << self.time_shift();
        for field in &self.0.node_fields {
            let Some((_, value)) = fields.iter().find(|(name, _)| *name == field.name) else {
                return Err(Error::new(ErrorKind::NodeMissing, format!("the field {} is not given: 0 to {}", field.name, field.max())));
            };
            bits |= check_value(field, *value)? << field.shift;
        }
        bits |= check_value(&self.0.sequence, sequence)? << self.0.sequence.shift;
        Ok(Id::from_bits(bits))
    }

    /// The smallest ID of the tick at an instant. The instant is in Unix ms. In a query: `id >= min_id(t)`.
    ///
    /// # Errors
    /// `BEFORE_EPOCH` and `LAYOUT_EXPIRED` for an instant outside the layout.
    pub fn min_id(&self, unix_ms: i64) -> Result<Id> {
        Ok(Id::from_bits(self.tick_of_argument(unix_ms)? << self.time_shift()))
    }

    /// The largest ID of the tick that holds an instant (Unix ms): `id <= max_id(t)` in a query.
    ///
    /// # Errors
    /// `BEFORE_EPOCH` and `LAYOUT_EXPIRED` for an instant outside the layout.
    pub fn max_id(&self, unix_ms: i64) -> Result<Id> {
        let low = (1 << self.time_shift()) - 1;
        Ok(Id::from_bits(self.tick_of_argument(unix_ms)? << self.time_shift() | low))
    }

    /// Refuses a layout that has ended.
    pub(crate) fn check_alive(&self, now_ms: i64) -> Result<()> {
        if self.expires_at_ms().is_none_or(|end| now_ms < end) {
            return Ok(());
        }
        let show = time::show_instant;
        let (last, epoch) = (show(self.tick_start_ms(self.last_tick())), show(self.0.epoch_ms));
        let (bits, tick, today) = (self.0.time_bits, time::show_duration(self.0.tick_ms), show(now_ms - now_ms.rem_euclid(86_400_000)));
        let room = if self.time_shift() + bits < 63 { "add time bits to it" } else { "63 bits have no room for more time bits" };
        Err(Error::new(
            ErrorKind::LayoutExpired,
            format!(
                "this layout has ended: its last tick starts at {last}, {bits} bits of {tick} after its epoch {epoch}. \
                 Give a later epoch, for example epoch={today}, for new tables. For tables with its IDs, {room}: \
                 docs/layouts.md, When a layout ends"
            ),
        ))
    }

    /// The tick that holds an instant from a caller. The instant is most often a limit of a query, so the errors name a limit to use
    /// instead.
    fn tick_of_argument(&self, unix_ms: i64) -> Result<u64> {
        let show = time::show_instant;
        if unix_ms < self.0.epoch_ms {
            let why = format!(
                "time={} is before the layout's epoch, {}: all its IDs are later. As a query's lower bound, take 0",
                show(unix_ms),
                show(self.0.epoch_ms)
            );
            return Err(Error::new(ErrorKind::BeforeEpoch, why));
        }
        if let Some(end) = self.expires_at_ms().filter(|end| unix_ms >= *end) {
            let why = format!(
                "time={} is after the layout's last instant, {}: all its IDs are earlier. As a query's upper bound, take the largest ID of \
                 that last instant",
                show(unix_ms),
                show(end - 1)
            );
            return Err(Error::new(ErrorKind::LayoutExpired, why));
        }
        time::check_instant("time", unix_ms)?;
        Ok(self.tick_unchecked(unix_ms))
    }

    /// The tick that holds an instant that the clock shows.
    pub(crate) fn tick_of(&self, unix_ms: i64) -> Result<u64> {
        if unix_ms < self.0.epoch_ms {
            return Err(Error::new(
                ErrorKind::BeforeEpoch,
                format!("{} is before the layout's epoch, {}", time::show_instant(unix_ms), time::show_instant(self.0.epoch_ms)),
            ));
        }
        self.check_alive(unix_ms)?;
        time::check_instant("time", unix_ms)?;
        Ok(self.tick_unchecked(unix_ms))
    }

    /// The tick that holds an instant, or [`NO_TICK`] before the epoch. The fast path only compares it, so nothing else is checked.
    #[inline]
    pub(crate) fn tick_unchecked(&self, unix_ms: i64) -> u64 {
        match u64::try_from(unix_ms.saturating_sub(self.0.epoch_ms)) {
            Ok(since) if self.0.tick_ms == 1 => since,
            Ok(since) => since / self.0.tick_ms,
            Err(_) => NO_TICK,
        }
    }

    /// The instant at which a tick starts (Unix ms). It saturates at `i64::MAX`, which is far after the year 9999.
    pub(crate) fn tick_start_ms(&self, tick: u64) -> i64 {
        let since = i128::from(tick) * i128::from(self.0.tick_ms);
        i64::try_from(i128::from(self.0.epoch_ms) + since).unwrap_or(i64::MAX)
    }

    /// The instant at which the tick of a stamp is over (Unix ms).
    pub(crate) fn stamp_end_ms(&self, stamp: u64) -> i64 {
        self.tick_start_ms((stamp >> self.0.sequence.bits) + 1)
    }

    /// The last tick that can be stamped: the time field's, or the year 9999's.
    pub(crate) fn last_tick(&self) -> u64 {
        ((1 << self.0.time_bits) - 1).min(self.tick_unchecked(LAST_MS))
    }

    /// The description of the layout without its names.
    pub(crate) fn shape(&self) -> Shape {
        Shape {
            time_bits: self.0.time_bits,
            time_shift: self.time_shift(),
            tick_ms: self.0.tick_ms,
            epoch_ms: self.0.epoch_ms,
            sequence_bits: self.0.sequence.bits,
            sequence_shift: self.0.sequence.shift,
        }
    }

    /// The number of bits under the time field.
    pub(crate) fn time_shift(&self) -> u32 {
        self.node_width() + self.0.sequence.bits
    }

    /// Rounds a duration up to ticks.
    pub(crate) fn ticks(&self, ms: u64) -> u64 {
        ms.div_ceil(self.0.tick_ms)
    }

    /// The number of bits of all node fields together.
    fn node_width(&self) -> u32 {
        self.0.node_fields.iter().map(|field| field.bits).sum()
    }

    /// The bits that a node number sets in every ID. In the number the node fields are adjacent; in an ID each has its own position.
    pub(crate) fn node_bits_of(&self, node: u64) -> u64 {
        let mut left = node;
        let mut bits = 0;
        for field in self.0.node_fields.iter().rev() {
            bits |= (left & field.max()) << field.shift;
            left >>= field.bits;
        }
        bits
    }

    /// The node number made of one value for each node field, in the layout's order.
    pub(crate) fn node_of(&self, values: impl Iterator<Item = u64>) -> u64 {
        self.0.node_fields.iter().zip(values).fold(0, |node, (field, value)| node << field.bits | value)
    }

    /// The value of each node field in a node number, in the layout's order.
    pub(crate) fn node_values(&self, node: u64) -> Vec<u64> {
        let bits = self.node_bits_of(node);
        self.0.node_fields.iter().map(|field| field.get(bits)).collect()
    }
}

/// The error for an ID of another layout. It adds a hint if the ID looks as if JavaScript had rounded it.
fn foreign(id: Id, why: fmt::Arguments<'_>) -> Error {
    let rounded = if id.looks_rounded() { "; it looks rounded, as by a JavaScript number: pass IDs as strings" } else { "" };
    Error::new(ErrorKind::IdInvalid, format!("{id} {why}: it is another layout's{rounded}"))
}
