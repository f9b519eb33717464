//! Writes text ahead, because a string that an addon makes costs more than one that JavaScript cuts from a longer one. This makes `next()` an
//! eighth faster, and `batch()` twice as fast.
//!
//! A function writes the IDs that it expects after the one that it has minted, and `index.js` cuts them off one by one. Each call still
//! mints. If the ID differs from the expected one (the tick has passed, or another handle or thread has minted), a new piece is written.
//! So no ID is minted ahead, and no text is older than its ID. A cut text keeps the whole piece in memory, so pieces are small.

use crate::convert::latin1;
use crate::error::panic::catch;
use crate::error::{instead, throw_raw};
use crate::lease::held::Held;
use crate::next::{self, NEXT_ASYNC, mint::Mint, raw_function};
use frazil::{EVENT_LOOP_TIMEOUT, Error, ErrorKind, Id, TextFormat};
use napi::bindgen_prelude::*;
use napi::{check_status, sys};
use napi_derive::napi;
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

/// The number of IDs in a piece.
const AHEAD: usize = 16;
/// The digits of the longest ID.
const LONGEST: usize = 19;

/// The number of IDs in a piece.
#[napi]
pub fn ids_ahead() -> u32 {
    AHEAD as u32
}

/// The state of a function that writes ahead.
struct Writer<M: Mint> {
    ids: Arc<Held<M>>,
    /// The format; decimal text without padding if there is none.
    format: Option<TextFormat>,
    expected: Cell<Expected>,
}

/// The expected next ID: as far above the last one as that was above the one before.
#[derive(Clone, Copy, Default)]
struct Expected {
    id: i64,
    step: i64,
    /// The number of expected IDs that are written, from this one on.
    written: usize,
}

/// A function that mints an ID and returns its text. It returns undefined if the text comes next in the last returned piece of `AHEAD` texts
/// with equal length.
pub(crate) fn writer<M: Mint>(env: &Env, this: Unknown<'_>, format: Option<TextFormat>) -> Result<Unknown<'static>> {
    let ids = Arc::clone(&next::this::<M>(env, this)?.0);
    let function = raw_function(env, c"write", write::<M>, Writer { ids, format, expected: Cell::default() })?;
    // SAFETY: the call above made it.
    Ok(unsafe { Unknown::from_raw_unchecked(env.raw(), function) })
}

unsafe extern "C" fn write<M: Mint>(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    let mut data = ptr::null_mut();
    // SAFETY: the function keeps the value of `data` alive during the call.
    let writer = unsafe {
        sys::napi_get_cb_info(env, info, ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), &mut data);
        &*data.cast::<Writer<M>>()
    };
    // SAFETY: on the environment's thread.
    match catch(|| unsafe { writer.write(env) }) {
        Ok(Ok(text)) => text,
        Ok(Err(error)) | Err(error) => throw_raw(env, &instead(error, NEXT_ASYNC)),
    }
}

impl<M: Mint> Writer<M> {
    /// # Safety
    /// On the environment's thread.
    #[inline(always)]
    unsafe fn write(&self, env: sys::napi_env) -> frazil::Result<sys::napi_value> {
        let id = self.ids.next_id_for(EVENT_LOOP_TIMEOUT)?;
        let Expected { id: expected, step, written } = self.expected.get();
        if id.get() == expected && written > 0 {
            self.expected.set(Expected { id: expected.wrapping_add(step), step, written: written - 1 });
            return Ok(ptr::null_mut());
        }
        // SAFETY: the caller guarantees the thread.
        unsafe { self.write_anew(env, id) }
    }

    /// # Safety
    /// On the environment's thread.
    #[inline(never)]
    unsafe fn write_anew(&self, env: sys::napi_env, id: Id) -> frazil::Result<sys::napi_value> {
        let Expected { id: expected, step, .. } = self.expected.get();
        let mut piece = Piece::new();
        self.put(&mut piece, id);
        let number = id.get();
        let step = if number == expected && step > 0 {
            // Only callers that take consecutive IDs pay for a whole piece.
            let ahead = |nth| number.checked_add(step.checked_mul(nth)?).and_then(|id| Id::new(id).ok());
            let one_by_one = step == 1 && self.format.is_none();
            let mut put = |nth| if one_by_one { piece.push_next() } else { ahead(nth).is_some_and(|id| self.put(&mut piece, id)) };
            if !(1..AHEAD as i64).all(&mut put) {
                piece.count = 1;
            }
            step
        } else {
            number.wrapping_sub(expected.wrapping_sub(step))
        };
        self.expected.set(Expected { id: number.wrapping_add(step), step, written: piece.count - 1 });
        // SAFETY: the caller guarantees the thread.
        let text = unsafe { latin1(env, piece.text()) };
        if text.is_null() {
            // Undefined would refer to the last piece.
            self.expected.set(Expected::default());
            return Err(Error::new(ErrorKind::Internal, "V8 makes no string"));
        }
        Ok(text)
    }

    fn put(&self, piece: &mut Piece, id: Id) -> bool {
        match self.format {
            None => piece.push(itoa::Buffer::new().format(id.get()).as_bytes()),
            Some(format) => piece.push_encoded(id, format),
        }
    }
}

/// Adjacent texts of one width.
struct Piece {
    text: [u8; AHEAD * LONGEST],
    width: usize,
    count: usize,
}

impl Piece {
    fn new() -> Self {
        Piece { text: [0; AHEAD * LONGEST], width: 0, count: 0 }
    }

    /// Returns whether it took the text, which must have the same width and fit.
    fn push(&mut self, text: &[u8]) -> bool {
        if self.count == 0 {
            self.width = text.len();
        }
        let takes = text.len() == self.width && self.count < AHEAD;
        if takes {
            self.text[self.count * self.width..][..self.width].copy_from_slice(text);
            self.count += 1;
        }
        takes
    }

    /// Adds a text of a format with a fixed width, up to `AHEAD`.
    fn push_encoded(&mut self, id: Id, format: TextFormat) -> bool {
        self.width = format.width();
        let end = self.count * self.width;
        let place = (&mut self.text[end..end + LONGEST]).try_into().expect("the buffer has room for AHEAD texts");
        id.encode(format, place);
        self.count += 1;
        true
    }

    /// Adds the number after the last one by incrementing its digits, and returns whether it has the same width. Division would make `next()` and `batch()` a tenth slower.
    fn push_next(&mut self) -> bool {
        let end = self.count * self.width;
        let last = end - self.width;
        // A constant length is fast; the bytes after the number are overwritten later.
        let copy: [u8; LONGEST] = self.text[last..last + LONGEST].try_into().expect("the buffer has room for AHEAD texts");
        self.text[end..end + LONGEST].copy_from_slice(&copy);
        for digit in self.text[end..end + self.width].iter_mut().rev() {
            if *digit != b'9' {
                *digit += 1;
                self.count += 1;
                return true;
            }
            *digit = b'0';
        }
        false
    }

    fn text(&self) -> &[u8] {
        &self.text[..self.count * self.width]
    }
}

/// A batch as decimal text: the number of IDs, and pieces, each after the width of its texts.
pub struct Pieces(Vec<i64>);

impl From<Vec<i64>> for Pieces {
    fn from(ids: Vec<i64>) -> Self {
        Pieces(ids)
    }
}

impl TypeName for Pieces {
    fn type_name() -> &'static str {
        "Pieces"
    }

    fn value_type() -> ValueType {
        ValueType::Object
    }
}

impl ToNapiValue for Pieces {
    unsafe fn to_napi_value(env: sys::napi_env, Pieces(ids): Self) -> Result<sys::napi_value> {
        let (mut array, mut length) = (ptr::null_mut(), 0);
        // SAFETY: the environment is alive in this call, and the result is a local variable.
        check_status!(unsafe { sys::napi_create_array(env, &mut array) })?;
        let mut push = |value| {
            length += 1;
            // SAFETY: as above; the handles are alive in this call.
            check_status!(unsafe { sys::napi_set_element(env, array, length - 1, value) })
        };
        // SAFETY: as above.
        let number = |number: usize| unsafe { f64::to_napi_value(env, number as f64) };
        push(number(ids.len())?)?;
        let mut width = 0;
        let mut put = |piece: &Piece| {
            if piece.width != width {
                width = piece.width;
                push(number(width)?)?;
            }
            // SAFETY: as above.
            push(unsafe { latin1(env, piece.text()) })
        };
        let (mut piece, mut last) = (Piece::new(), None);
        for id in ids {
            let follows = (1..AHEAD).contains(&piece.count) && last == Some(id - 1);
            last = Some(id);
            if follows && piece.push_next() {
                continue;
            }
            let mut buffer = itoa::Buffer::new();
            let text = buffer.format(id).as_bytes();
            if !piece.push(text) {
                put(&piece)?;
                piece.count = 0;
                piece.push(text);
            }
        }
        if piece.count > 0 {
            put(&piece)?;
        }
        Ok(array)
    }
}
