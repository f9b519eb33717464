//! Raw Node-API functions that do the parts of an ID, and nothing else: no layout, policy or check.
#![allow(clippy::missing_safety_doc)]

use napi_sys::*;
use std::ffi::{CStr, c_char};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// A counter in its own cache line.
#[repr(align(128))]
struct Line(AtomicU64);

/// 19 digits, as most IDs have.
static LINE: Line = Line(AtomicU64::new(1_700_000_000_000_000_000));
static COUNTER: &AtomicU64 = &LINE.0;
/// A count that the processor's counter does not reach.
static TICK_ENDS: AtomicU64 = AtomicU64::new(u64::MAX);

#[cfg(target_arch = "x86_64")]
fn count() -> u64 {
    // SAFETY: every x86-64 has the instruction, and it only reads.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
fn count() -> u64 {
    let count: u64;
    // SAFETY: it only reads a register.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags)) };
    count
}

/// This design: the processor's counter says that the tick lasts, and one atomic takes a number.
fn mint() -> u64 {
    if count() < TICK_ENDS.load(Relaxed) { COUNTER.fetch_add(1, Relaxed) } else { 0 }
}

/// One reading of the system's clock, and one atomic.
fn mint_by_clock() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    (now << 20) | (COUNTER.fetch_add(1, Relaxed) & 0xf_ffff)
}

unsafe fn string(env: napi_env, text: &[u8]) -> napi_value {
    let mut result = null_mut();
    // SAFETY: on the environment's thread; the text is ASCII and as long as it says.
    unsafe { napi_create_string_latin1(env, text.as_ptr().cast::<c_char>(), text.len() as isize, &mut result) };
    result
}

unsafe extern "C" fn nothing(_: napi_env, _: napi_callback_info) -> napi_value {
    null_mut()
}

unsafe extern "C" fn text(env: napi_env, _: napi_callback_info) -> napi_value {
    // SAFETY: on the environment's thread.
    unsafe { string(env, itoa::Buffer::new().format(mint()).as_bytes()) }
}

unsafe extern "C" fn clock_text(env: napi_env, _: napi_callback_info) -> napi_value {
    // SAFETY: on the environment's thread.
    unsafe { string(env, itoa::Buffer::new().format(mint_by_clock()).as_bytes()) }
}

unsafe extern "C" fn bigint(env: napi_env, _: napi_callback_info) -> napi_value {
    let mut result = null_mut();
    // SAFETY: on the environment's thread.
    unsafe { napi_create_bigint_int64(env, mint() as i64, &mut result) };
    result
}

/// A string as long as a UUID: the counter, and an atomic; no bits are drawn.
unsafe extern "C" fn uuid(env: napi_env, _: napi_callback_info) -> napi_value {
    let mut text = *b"00000000-0000-0000-0000-000000000000";
    text[..19].copy_from_slice(itoa::Buffer::new().format(mint()).as_bytes());
    // SAFETY: on the environment's thread.
    unsafe { string(env, &text) }
}

/// 1000 numbers as one string, which JavaScript cuts.
unsafe extern "C" fn thousand(env: napi_env, _: napi_callback_info) -> napi_value {
    let mut text = Vec::with_capacity(19_000);
    let first = COUNTER.fetch_add(1000, Relaxed);
    for number in first..first + 1000 {
        text.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    }
    // SAFETY: on the environment's thread.
    unsafe { string(env, &text) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn napi_register_module_v1(env: napi_env, exports: napi_value) -> napi_value {
    type Raw = unsafe extern "C" fn(napi_env, napi_callback_info) -> napi_value;
    let functions: [(&CStr, Raw); 6] =
        [(c"nothing", nothing), (c"text", text), (c"clockText", clock_text), (c"bigint", bigint), (c"uuid", uuid), (c"thousand", thousand)];
    for (name, function) in functions {
        let mut value = null_mut();
        // SAFETY: Node calls this once, on the environment's thread, with a live object.
        unsafe {
            napi_create_function(env, name.as_ptr(), name.count_bytes() as isize, Some(function), null_mut(), &mut value);
            napi_set_named_property(env, exports, name.as_ptr(), value);
        }
    }
    exports
}
