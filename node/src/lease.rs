//! Leased node numbers: how a lease stands, and giving numbers back when objects, threads and the process end.
//!
//! Nothing here may hold up an event loop: what its thread cannot wait for goes on in the background. At the end of an environment
//! (the main thread, or a worker) and of the process there is no later, so they wait, but not for long.

use crate::convert;
use crate::error::{OrThrow, catch, guard, instance};
use crate::snowflake::{Handle, this};
use frazil::{EVENT_LOOP_PATIENCE, Snowflake};
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::ops::Deref;
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How long the ends of all environments and of the process wait, together.
const EXIT_PATIENCE: Duration = Duration::from_millis(500);
/// Ends that follow each other within this share their patience: `process.exit()` ends every worker.
const BURST: Duration = Duration::from_secs(1);

/// A generator that V8's collector, which runs on the event loop, may drop: it does not wait for the store.
pub struct Held(Snowflake);

impl Held {
    pub(crate) fn new(ids: Snowflake) -> Arc<Self> {
        Arc::new(Held(ids))
    }
}

impl Deref for Held {
    type Target = Snowflake;

    fn deref(&self) -> &Snowflake {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.close_within(Duration::ZERO);
    }
}

/// The leased generators of all environments, each with its environment.
static OPEN: Mutex<Vec<(usize, Weak<Held>)>> = Mutex::new(Vec::new());
/// When the ends that share their patience began.
static BEGUN: Mutex<Option<Instant>> = Mutex::new(None);

/// Remembers a generator, so that its number is given back when its environment ends.
pub(crate) fn remember(env: &Env, ids: &Arc<Held>) {
    if ids.lease().is_some() {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(_, ids)| ids.strong_count() > 0);
        open.push((env.raw() as usize, Arc::downgrade(ids)));
    }
}

/// Has an environment give its numbers back at its end, and the process at `process.exit()`, which ends no environment.
pub(crate) fn give_back_at_exit(env: &Env) -> Result<()> {
    extern "C" fn at_exit() {
        let _ = catch(|| give_back(|_| true));
    }
    static PROCESS: Once = Once::new();
    // SAFETY: the function takes nothing, lets no panic out, and stays where it is: Node unloads no addon of its main thread.
    PROCESS.call_once(|| unsafe {
        libc::atexit(at_exit);
    });
    let ending = env.raw() as usize;
    env.add_env_cleanup_hook((), move |()| drop(catch(|| give_back(|env| env == ending)))).map(drop)
}

/// Closes the generators of some environments.
fn give_back(of: impl Fn(usize) -> bool) {
    let ending: Vec<_> = OPEN.lock().unwrap_or_else(PoisonError::into_inner).extract_if(.., |(env, _)| of(*env)).collect();
    if ending.is_empty() {
        return;
    }
    let until = {
        let mut begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let first = begun.filter(|begun| now.duration_since(*begun) < BURST).unwrap_or(now);
        *begun = Some(first);
        first + EXIT_PATIENCE
    };
    for ids in ending.iter().filter_map(|(_, ids)| ids.upgrade()) {
        ids.close_within(until.saturating_duration_since(Instant::now()));
    }
}

/// The leased node number and how it stands; undefined for one that is given without a store.
#[napi]
pub fn snowflake_lease<'a>(env: &'a Env, this: Unknown<'_>) -> Result<Option<Object<'a>>> {
    guard(env, || {
        let ids = self::this(env, this)?;
        let Some(lease) = ids.lease() else { return Ok(None) };
        let mut object = Object::new(env)?;
        object.set("node", convert::integer(lease.node, ids.node_bits()))?;
        object.set("bound", lease.bound_ms.map_or(Ok(Either::B(())), |ms| convert::date(env, ms).map(Either::A))?)?;
        object.set("store", lease.store)?;
        object.set("namespace", lease.namespace)?;
        object.set("healthy", lease.healthy)?;
        let last_error = lease.last_error.map(|error| instance(env, &error, error.to_string(), 0));
        object.set("lastError", last_error.map_or(Ok(Either::B(())), |error| error.map(Either::A))?)?;
        object.set("left", lease.left.map_or(Either::B(()), |left| Either::A(convert::capped(left))))?;
        Ok(Some(object))
    })
}

/// Gives a leased node number back, off the event loop; the next use takes another.
#[napi]
pub fn snowflake_renew(env: &Env, this: Unknown<'_>) -> Result<AsyncTask<Renew>> {
    guard(env, || Ok(AsyncTask::new(Renew(convert::unwrap::<Handle>(env, "this", this)?.clone()))))
}

/// Waits until the store has the number back.
pub struct Renew(Handle);

impl Task for Renew {
    type Output = frazil::Result<()>;
    type JsValue = ();

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(catch(|| self.0.0.renew()).and_then(|result| result))
    }

    fn resolve(&mut self, env: Env, output: Self::Output) -> Result<()> {
        output.or_throw(&env)
    }
}

/// Closes the generator; the store is waited for as long as an event loop may be held up.
#[napi]
pub fn snowflake_close(env: &Env, this: Unknown<'_>) -> Result<()> {
    guard(env, || {
        self::this(env, this)?.close_within(EVENT_LOOP_PATIENCE);
        Ok(())
    })
}

/// Closes the generator, waiting for the store off the event loop.
#[napi]
pub fn snowflake_close_async(env: &Env, this: Unknown<'_>) -> Result<AsyncTask<Close>> {
    guard(env, || Ok(AsyncTask::new(Close(convert::unwrap::<Handle>(env, "this", this)?.clone()))))
}

/// Waits until the store has the number back, if this handle is the last on it.
pub struct Close(Handle);

impl Task for Close {
    type Output = frazil::Result<()>;
    type JsValue = ();

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(catch(|| self.0.0.close()))
    }

    fn resolve(&mut self, env: Env, output: Self::Output) -> Result<()> {
        output.or_throw(&env)
    }
}
