//! Events for operators: a lease that fails, a clock that went back.
#![allow(non_camel_case_types)]

use crate::convert::max_wait;
use crate::error::{c_string, frazil_status, guard};
use frazil_core::{Event, Level};
use std::ffi::{CString, c_char, c_void};
use std::ptr;

/// A part of an event, for programs.
#[repr(C)]
pub struct frazil_event_field {
    /// Its name, which never changes.
    pub name: *const c_char,
    /// Its value; an instant is RFC 3339 in UTC.
    pub value: *const c_char,
}

/// An event of the generators of this process: frazil_on_event(). Its texts are UTF-8, contain no secret, and are valid during the
/// call of the hook. A later version may add fields at the end.
#[repr(C)]
pub struct frazil_event {
    /// True for a warning or an error; false for information.
    pub is_warning: bool,
    /// The name of the event: "lease.taken", "lease.waiting", "lease.failing", "lease.recovered", "lease.lost", "store.changed",
    /// "clock.rollback", "layout.ending" or "node.unguarded". These names never change.
    pub name: *const c_char,
    /// A readable text, whose wording may change.
    pub text: *const c_char,
    /// The parts of the text: "store", "namespace", "node", "until", "since", "code" and others.
    pub fields: *const frazil_event_field,
    /// The number of fields.
    pub field_count: usize,
}

/// A callback of frazil_on_event(): it receives the event and the pointer that was given there.
pub type frazil_event_hook = Option<unsafe extern "C" fn(event: *const frazil_event, data: *mut c_void)>;

/// Registers a callback for every event of the process. It is called under no lock, and may call frazil: on a thread of
/// frazil's own, one event after the other; "lease.waiting", the reason for an opening that takes longer than a second,
/// on the thread that waits. A later callback replaces it. NULL removes the callback; with the `data` of a callback, only
/// that one is removed. Removal waits up to 5 s for running calls; after that, the data of the callback may be freed.
/// FRAZIL_WOULD_BLOCK if a call has not returned by then. A callback may remove itself, and does not wait for its own
/// call. A forked child has its parent's callback, and gets its own events.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_on_event(hook: frazil_event_hook, data: *mut c_void) -> frazil_status {
    /// The user's pointer. The header states that several threads may use it.
    struct Data(*mut c_void);
    // SAFETY: only the callback uses it, which may run on any thread.
    unsafe impl Send for Data {}
    // SAFETY: as above.
    unsafe impl Sync for Data {}

    const LONGEST_MS: i64 = 5_000;
    let (owner, data) = (data.addr(), Data(data));
    guard(|| {
        let Some(hook) = hook else {
            let longest = max_wait(LONGEST_MS)?;
            return if owner == 0 { frazil_core::end_events(longest) } else { frazil_core::bindings::end_events_of(owner, longest) };
        };
        frazil_core::bindings::on_event_of(owner, move |event| {
            let data = &data;
            // SAFETY: it is the caller's function with its data, and the event lives until it returns.
            with_event(event, |event| unsafe { hook(event, data.0) });
        });
        Ok(())
    })
}

fn with_event(event: &Event, show: impl FnOnce(&frazil_event)) {
    let texts: Vec<[CString; 2]> =
        event.fields.iter().map(|(name, value)| [c_string((*name).to_owned()), c_string(value.clone())]).collect();
    let fields: Vec<_> = texts.iter().map(|[name, value]| frazil_event_field { name: name.as_ptr(), value: value.as_ptr() }).collect();
    let (name, text) = (c_string(event.name.to_owned()), c_string(event.text.clone()));
    show(&frazil_event {
        is_warning: event.level >= Level::Warning,
        name: name.as_ptr(),
        text: text.as_ptr(),
        fields: if fields.is_empty() { ptr::null() } else { fields.as_ptr() },
        field_count: fields.len(),
    });
}
