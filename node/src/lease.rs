//! Leased node numbers: the state of a lease, and the release of numbers.

pub(crate) mod held;

use crate::convert;
use crate::error::{OrThrow, guard, instead, refusal};
use crate::next::{self, mint::Mint};
use crate::snowflake::{node_bits, this};
use crate::wait::{Form, awaited, blocking_call, later, max_wait, now_or_later};
use frazil::{EVENT_LOOP_TIMEOUT, Snowflake};
use held::close_all;
use napi::bindgen_prelude::*;
use napi_derive::napi;

/// The state of the lease; undefined for a fixed node number.
#[napi]
pub fn snowflake_lease<'a>(env: &'a Env, this: Unknown<'_>) -> Result<Option<Object<'a>>> {
    guard(env, || {
        let ids = self::this(env, this)?;
        let Some(lease) = ids.lease() else { return Ok(None) };
        let mut object = Object::new(env)?;
        object.set("node", convert::integer(lease.node, node_bits(ids)))?;
        object.set("bound", lease.bound_ms.map_or(Either::B(()), |ms| Either::A(ms as f64)))?;
        object.set("store", lease.store)?;
        object.set("namespace", lease.namespace)?;
        object.set("healthy", lease.healthy)?;
        let last_error = lease.last_error.map(|error| refusal(env, &error, None));
        object.set("lastError", last_error.map_or(Ok(Either::B(())), |error| error.map(Either::A))?)?;
        object.set("left", lease.left.map_or(Either::B(()), |left| Either::A(convert::capped(left))))?;
        Ok(Some(object))
    })
}

/// Notifies frazil that this process was restored from a snapshot.
#[napi]
pub fn restored(env: &Env) -> Result<()> {
    guard(env, || {
        frazil::restored();
        Ok(())
    })
}

/// Closes all handles with a leased number, in all threads, as the end of the process does.
#[napi]
pub fn release_all(env: &Env) -> Result<()> {
    guard(env, || {
        close_all();
        Ok(())
    })
}

/// Releases a leased node number; the next ID leases another.
#[napi]
pub fn snowflake_release_node<'a>(env: &'a Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<Unknown<'a>> {
    guard(env, || discard::<Snowflake>(env, this, options))
}

pub(crate) fn discard<'a, M: Mint>(env: &'a Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<Unknown<'a>> {
    let ids = next::this::<M>(env, this)?.clone();
    let wait = awaited(env, options)?;
    later(env, async move { ids.0.discard_within(wait).await }, |()| ())
}

pub(crate) fn close<M: Mint>(env: &Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<()> {
    let ids = next::this::<M>(env, this)?;
    let asked = max_wait(env, options, Form::InPlace)?;
    let closed = blocking_call(env, asked.unwrap_or(EVENT_LOOP_TIMEOUT), |wait| ids.0.close_for(wait));
    // A call with a limit reports that the store did not answer.
    if asked.is_some() { closed.map_err(|error| instead(error, "await ids.closeAsync()")).or_throw(env) } else { Ok(()) }
}

pub(crate) fn close_async<'a, M: Mint>(env: &'a Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<Unknown<'a>> {
    let ids = next::this::<M>(env, this)?.clone();
    let wait = awaited(env, options)?;
    now_or_later(env, async move { ids.0.close_within(wait).await }, |()| ())
}
