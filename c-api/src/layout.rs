//! Layouts: parse, describe, decode and compose IDs.
#![allow(non_camel_case_types)]

use crate::convert::{Out, SizedOut, filled, null, reference, string};
use crate::error::{c_string, frazil_status, guard_short};
use frazil_core::{Error, ErrorKind, Id, Layout, Result};
use std::ffi::{CString, c_char};

/// A layout: the fields of an ID, the length of a tick, and the epoch. Immutable; any number
/// of threads may use it at once.
pub struct frazil_layout {
    layout: Layout,
    text: CString,
    names: Vec<CString>,
}

impl frazil_layout {
    /// A handle that C frees.
    pub(crate) fn handle(layout: Layout) -> *mut frazil_layout {
        let text = c_string(layout.to_string());
        let names = layout.node_fields().iter().map(|field| c_string(field.name().to_owned())).collect();
        Box::into_raw(Box::new(frazil_layout { layout, text, names }))
    }
}

/// The properties of a layout: frazil_layout_describe().
#[repr(C)]
pub struct frazil_layout_info {
    /// The instant at which the time field is 0, in Unix ms.
    pub epoch_ms: i64,
    /// The first instant that cannot be stamped, in Unix ms; INT64_MAX when that is after the year
    /// 9999, where dates end.
    pub expires_at_ms: i64,
    /// The length of a tick, 1 to 3,600,000 ms.
    pub tick_ms: u64,
    /// The number of node numbers: the most generators that may run at once.
    pub nodes: u64,
    /// The IDs that one generator can mint in a second, sustained.
    pub ids_per_second: f64,
    /// The width of the time field.
    pub time_bits: u32,
    /// The width of the sequence.
    pub sequence_bits: u32,
    /// The number of node fields: frazil_layout_field().
    pub field_count: usize,
}

filled!(frazil_layout_info, field_count: usize);

/// The parts of an ID: frazil_layout_decode(). A node field: frazil_layout_decode_field().
#[repr(C)]
pub struct frazil_parts {
    /// The ID that was decoded.
    pub id: i64,
    /// The instant at which the ID's tick starts, in Unix ms.
    pub unix_ms: i64,
    /// The raw time field: ticks since the layout's epoch.
    pub tick: u64,
    /// The node number: all node fields side by side.
    pub node: u64,
    /// The counter within the tick.
    pub sequence: u64,
    /// True if the decimal text looks like an ID that JavaScript has rounded.
    /// A hint, not a proof: about one ID in 256 looks like this by chance.
    pub looks_rounded: bool,
}

filled!(frazil_parts, looks_rounded: bool);

/// A node field and its value: frazil_layout_compose().
#[repr(C)]
pub struct frazil_field {
    /// The field's name.
    pub name: *const c_char,
    /// Its value, 0 to 2^bits - 1.
    pub value: u64,
}

/// Parses a layout's text or a preset's name. The caller frees the handle.
///
/// For example "twitter", or "time:41@1ms business:4 machine:6 sequence:12 epoch:2025-01-01".
/// FRAZIL_LAYOUT_INVALID when it cannot exist, and why; FRAZIL_SPEC or FRAZIL_OUT_OF_RANGE for an
/// unknown preset or a bad epoch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_layout_parse(text: *const c_char, layout: *mut *mut frazil_layout) -> frazil_status {
    guard_short(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (text, layout) = unsafe { (string("text", text, ErrorKind::LayoutInvalid)?, Out::new("layout", layout)?) };
        layout.write(frazil_layout::handle(Layout::parse(text)?));
        Ok(())
    })
}

/// Frees a layout and the strings that were read from it. NULL is a no-op.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_layout_free(layout: *mut frazil_layout) {
    guard_short(|| {
        if !layout.is_null() {
            // SAFETY: it came from `handle`, and the caller gives it up.
            drop(unsafe { Box::from_raw(layout) });
        }
        Ok(())
    });
}

/// The canonical text, which parses to the same layout. Valid until the layout is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_layout_text(layout: *const frazil_layout, text: *mut *const c_char) -> frazil_status {
    guard_short(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (layout, text) = unsafe { (reference("layout", layout)?, Out::new("text", text)?) };
        text.write(layout.text.as_ptr());
        Ok(())
    })
}

/// The layout's numbers: `frazil_layout_describe(layout, &info, sizeof info)`.
///
/// FRAZIL_OUT_OF_RANGE for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_layout_describe(layout: *const frazil_layout, info: *mut frazil_layout_info, size: usize) -> frazil_status {
    guard_short(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (layout, info) = unsafe { (&reference("layout", layout)?.layout, SizedOut::new("info", info, size)?) };
        info.write(frazil_layout_info {
            epoch_ms: layout.epoch_ms(),
            expires_at_ms: layout.expires_at_ms().unwrap_or(i64::MAX),
            tick_ms: layout.tick_ms(),
            nodes: layout.nodes(),
            ids_per_second: layout.ids_per_second(),
            time_bits: layout.time_bits(),
            sequence_bits: layout.sequence().bits(),
            field_count: layout.node_fields().len(),
        });
        Ok(())
    })
}

/// The node fields and their widths in bits, from the most significant. Writes the field of an index; 0 is the most
/// significant one.
///
/// The name is valid until the layout is freed. FRAZIL_OUT_OF_RANGE from field_count on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_layout_field(
    layout: *const frazil_layout,
    index: usize,
    name: *mut *const c_char,
    bits: *mut u32,
) -> frazil_status {
    guard_short(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (layout, name, bits) = unsafe { (reference("layout", layout)?, Out::new("name", name)?, Out::new("bits", bits)?) };
        let fields = layout.layout.node_fields();
        let field = fields.get(index).ok_or_else(|| {
            Error::new(ErrorKind::OutOfRange, format!("index={index} is out of range: the layout has {} node fields", fields.len()))
        })?;
        name.write(layout.names[index].as_ptr());
        bits.write(field.bits());
        Ok(())
    })
}

/// Compares two layouts: fields, tick and epoch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_layout_equal(a: *const frazil_layout, b: *const frazil_layout, equal: *mut bool) -> frazil_status {
    guard_short(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (a, b, equal) = unsafe { (reference("a", a)?, reference("b", b)?, Out::new("equal", equal)?) };
        equal.write(a.layout == b.layout);
        Ok(())
    })
}

/// Decodes an ID. Call `frazil_layout_decode(layout, id, &parts, sizeof parts)`.
///
/// FRAZIL_ID_INVALID when it is negative, or has more bits than the layout; FRAZIL_OUT_OF_RANGE for a size
/// that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_layout_decode(
    layout: *const frazil_layout,
    id: i64,
    parts: *mut frazil_parts,
    size: usize,
) -> frazil_status {
    guard_short(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (layout, out) = unsafe { (reference("layout", layout)?, SizedOut::new("parts", parts, size)?) };
        let parts = layout.layout.decode(Id::new(id)?)?;
        out.write(frazil_parts {
            id,
            unix_ms: parts.unix_ms(),
            tick: parts.tick(),
            node: parts.node(),
            sequence: parts.sequence(),
            looks_rounded: parts.id().looks_rounded(),
        });
        Ok(())
    })
}

/// One node field of an ID.
///
/// FRAZIL_UNKNOWN_KEY for a field that the layout does not have; FRAZIL_ID_INVALID as in
/// frazil_layout_decode().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_layout_decode_field(
    layout: *const frazil_layout,
    id: i64,
    name: *const c_char,
    value: *mut u64,
) -> frazil_status {
    guard_short(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (layout, name, value) =
            unsafe { (&reference("layout", layout)?.layout, string("name", name, ErrorKind::UnknownKey)?, Out::new("value", value)?) };
        let parts = layout.decode(Id::new(id)?)?;
        value.write(field_of(layout, parts.fields(), name)?);
        Ok(())
    })
}

/// The value of a named node field; the core refuses a name that the layout does not have.
pub(crate) fn field_of<N: AsRef<str>>(layout: &Layout, fields: impl IntoIterator<Item = (N, u64)>, name: &str) -> Result<u64> {
    let field = layout.node_field(name)?;
    let value = fields.into_iter().find(|(other, _)| other.as_ref() == field.name());
    Ok(value.expect("every node field has a value").1)
}

/// Composes an ID of an instant, a sequence and every node field. The instant, in Unix ms, is any within the tick.
///
/// ```c
/// frazil_field fields[] = {{"datacenter", 11}, {"worker", 26}};
/// status = frazil_layout_compose(layout, 1656432460105, fields, 2, 0, &id);
/// ```
/// FRAZIL_OUT_OF_RANGE when a value does not fit its field (nothing is masked), FRAZIL_UNKNOWN_KEY
/// for a field that the layout does not have, FRAZIL_NODE_MISSING for one that is not given, FRAZIL_SPEC
/// for one given twice, FRAZIL_BEFORE_EPOCH and FRAZIL_LAYOUT_EXPIRED for an instant outside the
/// layout.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_layout_compose(
    layout: *const frazil_layout,
    unix_ms: i64,
    fields: *const frazil_field,
    field_count: usize,
    sequence: u64,
    id: *mut i64,
) -> frazil_status {
    guard_short(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (layout, id) = unsafe { (&reference("layout", layout)?.layout, Out::new("id", id)?) };
        let most = layout.node_fields().len();
        if field_count > most {
            let why = format!("field_count={field_count} is out of range: the layout has {most} node fields");
            return Err(Error::new(ErrorKind::OutOfRange, why));
        }
        if fields.is_null() && field_count > 0 {
            return Err(null("fields"));
        }
        let mut named = Vec::with_capacity(field_count);
        for index in 0..field_count {
            // SAFETY: the caller passes `count` fields, and their names are strings.
            let (name, value) = unsafe {
                let field = &*fields.add(index);
                (string(&format!("fields[{index}].name"), field.name, ErrorKind::UnknownKey)?, field.value)
            };
            named.push((name, value));
        }
        id.write(layout.compose(unix_ms, &named, sequence)?.get());
        Ok(())
    })
}

/// The smallest ID of the tick at an instant. The instant is in Unix ms. In a query: `id >= min_id`.
///
/// FRAZIL_BEFORE_EPOCH and FRAZIL_LAYOUT_EXPIRED for an instant outside the layout.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_layout_min_id(layout: *const frazil_layout, unix_ms: i64, id: *mut i64) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
    guard_short(|| unsafe { bound(layout, id, |layout| layout.min_id(unix_ms)) })
}

/// The largest ID of the tick at an instant. The instant is in Unix ms. In a query: `id <= max_id`.
///
/// FRAZIL_BEFORE_EPOCH and FRAZIL_LAYOUT_EXPIRED for an instant outside the layout.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_layout_max_id(layout: *const frazil_layout, unix_ms: i64, id: *mut i64) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
    guard_short(|| unsafe { bound(layout, id, |layout| layout.max_id(unix_ms)) })
}

/// # Safety
/// The pointers are NULL or valid.
unsafe fn bound(layout: *const frazil_layout, id: *mut i64, of: impl FnOnce(&Layout) -> Result<Id>) -> Result<()> {
    // SAFETY: as the caller guarantees.
    let (layout, id) = unsafe { (reference("layout", layout)?, Out::new("id", id)?) };
    id.write(of(&layout.layout)?.get());
    Ok(())
}
