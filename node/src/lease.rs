//! Leased node numbers: how a lease stands, and giving numbers back when objects, threads and the process end.
//!
//! Nothing here may hold up an event loop: what its thread cannot wait for goes on in the background. At the end of an environment
//! (the main thread, or a worker) and of the process there is no later, so they wait, but not for long.

use crate::convert;
use crate::error::{Instance, OrThrow, catch, guard, instead, refusal};
use crate::next::{self, Mint};
use crate::snowflake::{node_bits, this};
use crate::wait::{Form, NOW, held_up, later, max_wait, now_or_later};
use frazil::{EVENT_LOOP_PATIENCE, EXIT_PATIENCE, Snowflake, Wait};
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::ops::Deref;
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Ends that follow each other within this share one `EXIT_PATIENCE`: `process.exit()` ends every worker.
const BURST: Duration = Duration::from_secs(1);

/// A handle that V8's collector, which runs on the event loop, may drop: it does not wait for the store.
pub struct Held<M: Mint>(M);

impl<M: Mint> Held<M> {
    pub(crate) fn new(ids: M) -> Self {
        Held(ids)
    }
}

impl<M: Mint> Deref for Held<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.0
    }
}

impl<M: Mint> Drop for Held<M> {
    fn drop(&mut self) {
        drop(self.0.try_close(Duration::ZERO.into()));
    }
}

/// The handle that gives a number back.
trait Closes: Send + Sync {
    fn close_within(&self, max_wait: Duration);
}

impl<M: Mint> Closes for Held<M> {
    fn close_within(&self, max_wait: Duration) {
        drop(self.0.try_close(max_wait.into()));
    }
}

/// The beginning of the ends that share their patience.
static BEGUN: Mutex<Option<Instant>> = Mutex::new(None);

/// The owner of a leased number in an environment.
#[derive(Default)]
pub(crate) struct Leased(Vec<Weak<dyn Closes>>);

impl Leased {
    /// Closes all of it. Other environments go on with the same numbers where they have opened them too.
    pub(crate) fn give_back(&mut self) {
        let open: Vec<_> = self.0.drain(..).filter_map(|ids| ids.upgrade()).collect();
        if open.is_empty() {
            return;
        }
        // All are under way before the first is waited for.
        open.iter().for_each(|ids| ids.close_within(Duration::ZERO));
        let until = until_end();
        open.iter().for_each(|ids| ids.close_within(until.saturating_duration_since(Instant::now())));
    }
}

/// Remembers what holds a leased number, so that it is given back when the environment ends.
pub(crate) fn remember<M: Mint>(env: &Env, ids: &Arc<Held<M>>) -> Result<()> {
    if ids.generator().is_some_and(|ids| ids.lease().is_some()) {
        let ids: Arc<dyn Closes> = Arc::clone(ids) as _;
        let Leased(open) = &mut Instance::of(env)?.leased;
        open.retain(|ids| ids.strong_count() > 0);
        open.push(Arc::downgrade(&ids));
    }
    Ok(())
}

/// Has the process give its numbers back at `process.exit()`, which ends no environment.
pub(crate) fn give_back_at_exit() {
    extern "C" fn at_exit() {
        let _ = catch(close_all);
    }
    static PROCESS: Once = Once::new();
    // SAFETY: the function takes nothing, lets no panic out, and stays where it is.
    PROCESS.call_once(|| unsafe {
        libc::atexit(at_exit);
    });
}

/// Closes what leases a number, in all threads. What the stores are not told in time goes on in the background, if there is any.
fn close_all() {
    drop(frazil::close_all(until_end().saturating_duration_since(Instant::now())));
}

/// Returns until when an end may wait that begins now.
fn until_end() -> Instant {
    let mut begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    let first = begun.filter(|begun| now.duration_since(*begun) < BURST).unwrap_or(now);
    *begun = Some(first);
    first + EXIT_PATIENCE
}

/// The leased node number and how it stands; undefined for one that is given without a store.
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

/// Closes whatever leases a number, in all threads, as the end of the process does.
#[napi]
pub fn give_back(env: &Env) -> Result<()> {
    guard(env, || {
        close_all();
        Ok(())
    })
}

/// Gives a leased node number back; the next use takes another.
#[napi]
pub fn snowflake_renew<'a>(env: &'a Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<Unknown<'a>> {
    guard(env, || renew::<Snowflake>(env, this, options))
}

/// Closes the generator; the store is waited for as long as an event loop may be held up, unless the options say otherwise.
#[napi]
pub fn snowflake_close(env: &Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<()> {
    guard(env, || close::<Snowflake>(env, this, options))
}

/// Closes the generator; the promise waits for the store.
#[napi]
pub fn snowflake_close_async<'a>(env: &'a Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<Unknown<'a>> {
    guard(env, || close_async::<Snowflake>(env, this, options))
}

pub(crate) fn renew<'a, M: Mint>(env: &'a Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<Unknown<'a>> {
    let ids = next::this::<M>(env, this)?.clone();
    let max_wait = max_wait(env, options, Form::Promise)?;
    // Not tried in place first: each call gives up a number of its own.
    later(env, max_wait, move |wait| ids.0.try_renew(wait), |()| ())
}

pub(crate) fn close<M: Mint>(env: &Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<()> {
    let ids = next::this::<M>(env, this)?;
    let asked = max_wait(env, options, Form::InPlace)?;
    let closed = held_up(env, asked.unwrap_or(EVENT_LOOP_PATIENCE), |wait| ids.0.try_close(wait));
    // Who says how long wants to know.
    if asked.is_some() { closed.map_err(|error| instead(error, "await ids.closeAsync()")).or_throw(env) } else { Ok(()) }
}

pub(crate) fn close_async<'a, M: Mint>(env: &'a Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<Unknown<'a>> {
    let ids = next::this::<M>(env, this)?.clone();
    let asked = max_wait(env, options, Form::Promise)?;
    let close = move |wait: Wait<'_>| ids.0.try_close(wait);
    now_or_later(env, asked, close(NOW.into()), || close, |()| ())
}
