//! Events become messages of `diagnostics_channel`, and warnings of the process.
//!
//! An event of the whole process goes to each environment, for who subscribes there; the one that has loaded frazil first warns of it. What
//! a start waits for is told to the environment whose call it is, and no other.

use crate::wait::line::Line;
use frazil::{Event, Level};
use napi::bindgen_prelude::*;
use napi::sys;
use std::cell::Cell;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The ways to the environments, in the order in which they have loaded frazil.
static LINES: Mutex<Vec<Weak<Line>>> = Mutex::new(Vec::new());

/// The reason for which a start waits.
const WAITING: &str = "lease.waiting";

thread_local! {
    /// The core's reports of what the call under way on this thread waits for.
    static HEARD: Cell<Vec<Event>> = const { Cell::new(Vec::new()) };
}

/// Takes the reports of what the call under way on this thread waits for.
pub(crate) fn heard() -> Vec<Event> {
    HEARD.take()
}

/// Hears of all events, for one more environment.
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

/// Shows an event to one environment. What the channel's side throws, as a program may that has put something of its own in Node's place, ends
/// neither the warning nor the call that waited.
pub(crate) fn show(env: &Env, event: &Event, warns: bool) -> Result<()> {
    if publish(env, event).is_err() {
        let mut thrown = ptr::null_mut();
        // SAFETY: on the environment's thread, and the place is ours. Where nothing was thrown it says so.
        unsafe { sys::napi_get_and_clear_last_exception(env.raw(), &mut thrown) };
    }
    if warns && event.level >= Level::Warning { warn(env, &code(event.name), event.text.clone()) } else { Ok(()) }
}

/// Has people warned. Where a program has taken away what does that, nothing is lost but the warning.
fn warn(env: &Env, code: &str, text: String) -> Result<()> {
    type Emit<'a> = Function<'a, FnArgs<(String, Object<'a>)>, Unknown<'a>>;
    let Ok(process) = env.get_global()?.get_named_property::<Object<'_>>("process") else { return Ok(()) };
    let Ok(emit) = process.get_named_property::<Emit<'_>>("emitWarning") else { return Ok(()) };
    let mut kind = Object::new(env)?;
    kind.set("type", "FrazilWarning")?;
    kind.set("code", code)?;
    emit.apply(process, (text, kind).into()).map(drop)
}

/// The warning's: `FRAZIL_LEASE_LOST`.
fn code(name: &str) -> String {
    if name == WAITING { "FRAZIL_WAIT".to_owned() } else { format!("FRAZIL_{}", name.to_uppercase().replace('.', "_")) }
}

/// Publishes an event to who subscribes. Before Node 20.16 and 22.3 there is no way to the channels from here, and events are not published.
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
