//! What happens, a line of JSON each, on the standard error. Who asks for IDs is not logged, and nothing here holds a secret.

use crate::lines::Lines;
use frazil::{ErrorKind, Event, Level, show_instant};
use serde_json::{Map, Value};
use std::io::Write;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long the end waits for who takes no line.
const END: Duration = Duration::from_secs(5);

/// What a thread of its own writes.
static WRITER: OnceLock<&Writer> = OnceLock::new();

struct Writer {
    lines: Lines,
    count_lost: Box<dyn Fn(u64) + Send + Sync>,
}

pub fn info(event: &str, fields: &[(&str, &str)]) {
    tell("info", event, fields);
}

pub fn warning(event: &str, fields: &[(&str, &str)]) {
    tell("warning", event, fields);
}

pub fn error(event: &str, code: &str, text: &str) {
    tell("error", event, &[("code", code), ("text", text)]);
}

/// Logs what the core tells of: leases taken, failing, lost; a clock that went back.
pub fn listen() {
    frazil::on_event(|event: &Event| {
        let mut fields = vec![("text", event.text.as_str())];
        fields.extend(event.fields.iter().map(|(key, value)| (*key, value.as_str())));
        tell(if event.level >= Level::Warning { "warning" } else { "info" }, event.name, &fields);
    });
}

/// Logs a panic as a line, too, and has it counted. What it was in ends: a request, a connection.
pub fn on_panic(count: impl Fn() + Send + Sync + 'static) {
    std::panic::set_hook(Box::new(move |panic| {
        count();
        error("panic", ErrorKind::Internal.name(), &panic.to_string());
    }));
}

/// From now on nobody who logs waits for who reads the log. Lines that are lost are counted, and the log says where.
///
/// # Errors
/// What keeps a thread from starting.
pub fn write_aside(count_lost: impl Fn(u64) + Send + Sync + 'static) -> std::io::Result<()> {
    let writer: &Writer = Box::leak(Box::new(Writer { lines: Lines::default(), count_lost: Box::new(count_lost) }));
    let missing = |count: u64| line("warning", "lines.dropped", &[("lines", &count.to_string()), ("text", "nobody took them in time")]);
    let write = move || writer.lines.write(&mut std::io::stderr(), missing, &writer.count_lost);
    std::thread::Builder::new().name("log".to_owned()).spawn(write)?;
    // It is called once.
    let _ = WRITER.set(writer);
    Ok(())
}

/// Waits until the log is written, as long as somebody takes it.
pub fn finish() {
    if let Some(writer) = WRITER.get() {
        writer.lines.finish(END);
    }
}

fn tell(level: &str, event: &str, fields: &[(&str, &str)]) {
    let line = line(level, event, fields);
    match WRITER.get() {
        Some(writer) => {
            if !writer.lines.push(&line) {
                (writer.count_lost)(1);
            }
        }
        // One write, so that lines of several threads stay lines. Nobody may read it any more: no reason to end.
        None => _ = std::io::stderr().write_all(line.as_bytes()),
    }
}

fn line(level: &str, event: &str, fields: &[(&str, &str)]) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
    let mut told = Map::new();
    for (key, value) in [("time", show_instant(now).as_str()), ("level", level), ("event", event)].iter().chain(fields) {
        told.insert((*key).to_owned(), Value::from(*value));
    }
    format!("{}\n", Value::Object(told))
}
