//! Raw Node-API functions that do the parts of an ID, and nothing else: no layout, policy or check.
#![allow(clippy::missing_safety_doc)]

use napi_sys::*;
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

static COUNTER: AtomicU64 = AtomicU64::new(0);

/// One clock reading and one atomic.
fn mint() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    ((now << 20) | (COUNTER.fetch_add(1, Relaxed) & 0xf_ffff)) as i64
}

unsafe extern "C" fn nothing(_: napi_env, _: napi_callback_info) -> napi_value {
    null_mut()
}

unsafe extern "C" fn text(env: napi_env, _: napi_callback_info) -> napi_value {
    let mut buffer = itoa::Buffer::new();
    let (text, mut result) = (buffer.format(mint()), null_mut());
    // SAFETY: on the environment's thread; the text is ASCII and as long as it says.
    unsafe { napi_create_string_latin1(env, text.as_ptr().cast(), text.len() as isize, &mut result) };
    result
}

unsafe extern "C" fn bigint(env: napi_env, _: napi_callback_info) -> napi_value {
    let mut result = null_mut();
    // SAFETY: on the environment's thread.
    unsafe { napi_create_bigint_int64(env, mint(), &mut result) };
    result
}

#[unsafe(no_mangle)]
unsafe extern "C" fn napi_register_module_v1(env: napi_env, exports: napi_value) -> napi_value {
    let functions: [(&CStr, unsafe extern "C" fn(napi_env, napi_callback_info) -> napi_value); 3] =
        [(c"nothing", nothing), (c"text", text), (c"bigint", bigint)];
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
