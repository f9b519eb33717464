//! Events become messages of `diagnostics_channel`, and warnings of the process.
//!
//! An event of the process is published in each environment, and the environment that loaded frazil first emits a warning. The reason why an
//! opening waits is reported only in the environment of the call.

use crate::wait::line::Line;
use frazil::{Event, Level};
use napi::bindgen_prelude::*;
use napi::sys;
use std::cell::Cell;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The senders to the environments, in the order in which they have loaded frazil.
static LINES: Mutex<Vec<Weak<Line>>> = Mutex::new(Vec::new());

/// The event for an opening that waits.
const WAITING: &str = "lease.waiting";

thread_local! {
    /// The events of waits of the current call on this thread.
    static HEARD: Cell<Vec<Event>> = const { Cell::new(Vec::new()) };
}

/// Takes the events of waits of the current call on this thread.
pub(crate) fn heard() -> Vec<Event> {
    HEARD.take()
}

/// Subscribes to all events for an environment.
pub(crate) fn listen(line: &Arc<Line>) {
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    lines.retain(|line| line.upgrade().is_some_and(|line| line.is_open()));
    lines.push(Arc::downgrade(line));
    frazil::on_event(|event| {
        if event.name == WAITING {
            let mut heard = HEARD.take();
            heard.push(event.clone());
            HEARD.set(heard);
            return;
        }
        let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let open = lines.into_iter().filter_map(|line| line.upgrade()).filter(|line| line.is_open());
        for (nth, line) in open.enumerate() {
            let event = event.clone();
            line.send(Box::new(move |env| show(env, &event, nth == 0)));
        }
    });
}

/// Reports an event in one environment. An exception of the channel, for example because a program has replaced Node's functions, stops neither
/// the warning nor the call that waited.
pub(crate) fn show(env: &Env, event: &Event, warns: bool) -> Result<()> {
    if publish(env, event).is_err() {
        let mut thrown = ptr::null_mut();
        // SAFETY: on the environment's thread, and the result is a local variable. Without a pending exception the call returns undefined.
        unsafe { sys::napi_get_and_clear_last_exception(env.raw(), &mut thrown) };
    }
    if warns && event.level >= Level::Warning { warn(env, &code(event.name), event.text.clone()) } else { Ok(()) }
}

/// Emits a warning of the process. If a program has removed `process.emitWarning`, only the warning is lost.
fn warn(env: &Env, code: &str, text: String) -> Result<()> {
    type Emit<'a> = Function<'a, FnArgs<(String, Object<'a>)>, Unknown<'a>>;
    let Ok(process) = env.get_global()?.get_named_property::<Object<'_>>("process") else { return Ok(()) };
    let Ok(emit) = process.get_named_property::<Emit<'_>>("emitWarning") else { return Ok(()) };
    let mut kind = Object::new(env)?;
    kind.set("type", "FrazilWarning")?;
    kind.set("code", code)?;
    emit.apply(process, (text, kind).into()).map(drop)
}

/// The code of a warning: `FRAZIL_LEASE_LOST`.
fn code(name: &str) -> String {
    if name == WAITING { "FRAZIL_WAIT".to_owned() } else { format!("FRAZIL_{}", name.to_uppercase().replace('.', "_")) }
}

/// Publishes an event on its channel. Before Node 20.16 and 22.3, an addon cannot reach the channels, and events are not published.
fn publish(env: &Env, event: &Event) -> Result<()> {
    type Channel<'a> = Function<'a, String, Object<'a>>;
    type Publish<'a> = Function<'a, Object<'a>, Unknown<'a>>;
    let Ok(process) = env.get_global()?.get_named_property::<Object<'_>>("process") else { return Ok(()) };
    let Ok(builtin) = process.get_named_property::<Channel<'_>>("getBuiltinModule") else { return Ok(()) };
    let channels = builtin.apply(process, "diagnostics_channel".to_owned())?;
    let channel = channels.get_named_property::<Channel<'_>>("channel")?.apply(channels, format!("frazil:{}", event.name))?;
    if !channel.get_named_property::<bool>("hasSubscribers")? {
        return Ok(());
    }
    let (mut message, mut fields) = (Object::new(env)?, Object::new(env)?);
    for (name, value) in &event.fields {
        fields.set(*name, value)?;
    }
    message.set("level", event.level.name())?;
    message.set("name", event.name)?;
    message.set("text", &event.text)?;
    message.set("fields", fields)?;
    channel.get_named_property::<Publish<'_>>("publish")?.apply(channel, message).map(drop)
}
