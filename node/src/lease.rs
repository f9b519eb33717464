//! Leased node numbers: how a lease stands, and giving numbers back when objects, threads and the process end.
//!
//! Nothing here may hold up an event loop: what its thread cannot wait for goes on in the background. At the end of an environment
//! (the main thread, or a worker) and of the process there is no later, so they wait, but not for long.

use crate::convert;
use crate::error::{OrThrow, catch, guard, instance};
use crate::next::{self, Handle, Mint};
use crate::snowflake::{node_bits, this};
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

/// What V8's collector, which runs on the event loop, may drop: it does not wait for the store.
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
        self.0.close_within(Duration::ZERO);
    }
}

/// What gives a number back.
trait Closes: Send + Sync {
    fn close_within(&self, max_wait: Duration);
}

impl<M: Mint> Closes for Held<M> {
    fn close_within(&self, max_wait: Duration) {
        self.0.close_within(max_wait);
    }
}

/// What holds a leased number in any environment, each with its environment.
static OPEN: Mutex<Vec<(usize, Weak<dyn Closes>)>> = Mutex::new(Vec::new());
/// When the ends that share their patience began.
static BEGUN: Mutex<Option<Instant>> = Mutex::new(None);

/// Remembers what holds a leased number, so that it is given back when the environment ends.
pub(crate) fn remember<M: Mint>(env: &Env, ids: &Arc<Held<M>>) {
    if ids.generator().is_some_and(|ids| ids.lease().is_some()) {
        let ids: Arc<dyn Closes> = Arc::clone(ids) as _;
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(_, ids)| ids.strong_count() > 0);
        open.push((env.raw() as usize, Arc::downgrade(&ids)));
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

/// Closes what is open in some environments.
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
        object.set("node", convert::integer(lease.node, node_bits(ids)))?;
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
pub fn snowflake_renew(env: &Env, this: Unknown<'_>) -> Result<AsyncTask<Renew<Snowflake>>> {
    guard(env, || renew(env, this))
}

/// Closes the generator; the store is waited for as long as an event loop may be held up.
#[napi]
pub fn snowflake_close(env: &Env, this: Unknown<'_>) -> Result<()> {
    guard(env, || close::<Snowflake>(env, this))
}

/// Closes the generator, waiting for the store off the event loop.
#[napi]
pub fn snowflake_close_async(env: &Env, this: Unknown<'_>) -> Result<AsyncTask<Close<Snowflake>>> {
    guard(env, || close_async(env, this))
}

pub(crate) fn renew<M: Mint>(env: &Env, this: Unknown<'_>) -> Result<AsyncTask<Renew<M>>> {
    Ok(AsyncTask::new(Renew(next::this(env, this)?.clone())))
}

/// Waits until the store has the number back.
pub struct Renew<M: Mint>(Handle<M>);

impl<M: Mint> Task for Renew<M> {
    type Output = frazil::Result<()>;
    type JsValue = ();

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(catch(|| self.0.0.renew()).and_then(|result| result))
    }

    fn resolve(&mut self, env: Env, output: Self::Output) -> Result<()> {
        output.or_throw(&env)
    }
}

pub(crate) fn close<M: Mint>(env: &Env, this: Unknown<'_>) -> Result<()> {
    next::this::<M>(env, this)?.0.close_within(EVENT_LOOP_PATIENCE);
    Ok(())
}

pub(crate) fn close_async<M: Mint>(env: &Env, this: Unknown<'_>) -> Result<AsyncTask<Close<M>>> {
    Ok(AsyncTask::new(Close(next::this(env, this)?.clone())))
}

/// Waits until the store has the number back, if this handle is the last on it.
pub struct Close<M: Mint>(Handle<M>);

impl<M: Mint> Task for Close<M> {
    type Output = frazil::Result<()>;
    type JsValue = ();

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(catch(|| self.0.0.close_within(Duration::MAX)))
    }

    fn resolve(&mut self, env: Env, output: Self::Output) -> Result<()> {
        output.or_throw(&env)
    }
}
