//! The calls that generators and prefetched numbers share.

use crate::error::guard;
use crate::lease;
use crate::next::{self, Handle, ahead::Pieces};
use crate::stats;
use frazil::{Numbers, Snowflake};
use napi::bindgen_prelude::*;
use napi_derive::napi;

/// Defines the calls of a class, whose names in JavaScript come from those given.
macro_rules! calls {
    ($class:ty: $attach:ident $minter:ident $next:ident $batch:ident $batch_big_int:ident $batch_async:ident $fill:ident $close:ident
     $close_async:ident $spec:ident $stats:ident) => {
        /// Attaches the handle to a new object.
        #[napi]
        pub fn $attach(env: &Env, this: Unknown<'_>, opened: &External<Handle<$class>>) -> Result<()> {
            guard(env, || next::attach(env, this, opened))
        }

        /// A function that mints an ID and returns it as a bigint.
        #[napi]
        pub fn $minter(env: &Env, this: Unknown<'_>) -> Result<Unknown<'static>> {
            guard(env, || next::big_int_minter::<$class>(env, this))
        }

        /// The next ID at once if no wait is needed, otherwise a promise.
        #[napi]
        pub fn $next<'a>(env: &'a Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<Unknown<'a>> {
            guard(env, || next::next_async::<$class>(env, this, options))
        }

        /// A batch of `count` IDs as text: all or nothing.
        #[napi]
        pub fn $batch(env: &Env, this: Unknown<'_>, count: Unknown<'_>, options: Unknown<'_>) -> Result<Pieces> {
            guard(env, || next::batch::<$class, _>(env, this, count, options))
        }

        /// A batch of `count` IDs: all or nothing.
        #[napi]
        pub fn $batch_big_int(env: &Env, this: Unknown<'_>, count: Unknown<'_>, options: Unknown<'_>) -> Result<BigInt64Array> {
            guard(env, || next::batch::<$class, _>(env, this, count, options))
        }

        /// A batch of `count` IDs at once if no wait is needed, otherwise a promise.
        #[napi]
        pub fn $batch_async<'a>(env: &'a Env, this: Unknown<'_>, count: Unknown<'_>, options: Unknown<'_>) -> Result<Unknown<'a>> {
            guard(env, || next::batch_async::<$class>(env, this, count, options))
        }

        /// Fills a BigInt64Array and returns the number of IDs.
        #[napi]
        pub fn $fill(env: &Env, this: Unknown<'_>, buffer: Unknown<'_>, options: Unknown<'_>) -> Result<f64> {
            guard(env, || next::fill::<$class>(env, this, buffer, options))
        }

        /// Closes the handle. Waits for the store as long as a call may block the event loop, unless the options have a limit.
        #[napi]
        pub fn $close(env: &Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<()> {
            guard(env, || lease::close::<$class>(env, this, options))
        }

        /// Closes the handle; the promise waits for the store.
        #[napi]
        pub fn $close_async<'a>(env: &'a Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<Unknown<'a>> {
            guard(env, || lease::close_async::<$class>(env, this, options))
        }

        /// The canonical spec line.
        #[napi]
        pub fn $spec(env: &Env, this: Unknown<'_>) -> Result<String> {
            guard(env, || Ok(next::this::<$class>(env, this)?.0.spec()))
        }

        /// The counts of this process, over all handles.
        #[napi]
        pub fn $stats<'a>(env: &'a Env, this: Unknown<'_>) -> Result<Object<'a>> {
            guard(env, || stats::shown(env, &next::this::<$class>(env, this)?.0.stats()))
        }
    };
}

calls!(Snowflake: snowflake_attach snowflake_big_int_minter snowflake_next_async snowflake_batch snowflake_batch_big_int snowflake_batch_async
    snowflake_fill snowflake_close snowflake_close_async snowflake_spec snowflake_stats);
calls!(Numbers: numbers_attach numbers_big_int_minter numbers_next_async numbers_batch numbers_batch_big_int numbers_batch_async
    numbers_fill numbers_close numbers_close_async numbers_spec numbers_stats);
