//! What happens, a line of JSON each, on the standard error. Who asks for IDs is not logged, and nothing here holds a secret.

use frazil::{ErrorKind, Event, Level, show_instant};
use serde_json::{Map, Value};
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

pub fn info(event: &str, fields: &[(&str, &str)]) {
    line("info", event, fields);
}

pub fn warning(event: &str, fields: &[(&str, &str)]) {
    line("warning", event, fields);
}

pub fn error(event: &str, code: &str, text: &str) {
    line("error", event, &[("code", code), ("text", text)]);
}

/// Logs what the core tells of: leases taken, failing, lost; a clock that went back.
pub fn listen() {
    frazil::on_event(|event: &Event| {
        let mut fields = vec![("text", event.text.as_str())];
        fields.extend(event.fields.iter().map(|(key, value)| (*key, value.as_str())));
        line(if event.level >= Level::Warning { "warning" } else { "info" }, event.name, &fields);
    });
}

/// Logs a panic as a line, too, and has it counted. What it was in ends: a request, a connection.
pub fn on_panic(count: impl Fn() + Send + Sync + 'static) {
    std::panic::set_hook(Box::new(move |panic| {
        count();
        error("panic", ErrorKind::Internal.name(), &panic.to_string());
    }));
}

fn line(level: &str, event: &str, fields: &[(&str, &str)]) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
    let mut told = Map::new();
    for (key, value) in [("time", show_instant(now).as_str()), ("level", level), ("event", event)].iter().chain(fields) {
        told.insert((*key).to_owned(), Value::from(*value));
    }
    // One write, so that lines of several threads stay lines. Nobody may read it any more: no reason to end.
    let _ = std::io::stderr().write_all(format!("{}\n", Value::Object(told)).as_bytes());
}
