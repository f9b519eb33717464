//! The log: events as lines of JSON on the standard error. Requests are not logged here, and no line holds a secret.

use crate::log_writer::LogWriter;
use frazil::bindings::show_instant;
use frazil::{ErrorKind, Event};
use serde_json::{Map, Value};
use std::io::Write;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest wait at the end for a reader that takes no line.
const END: Duration = Duration::from_secs(5);

/// The writer with its own thread, once there is one.
static WRITER: OnceLock<&Writer> = OnceLock::new();

struct Writer {
    lines: LogWriter,
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

/// Logs the core's events: leases taken, failing, lost; a clock that went back.
pub fn listen() {
    frazil::on_event(|event: &Event| {
        let mut fields = vec![("text", event.text.as_str())];
        fields.extend(event.fields.iter().map(|(key, value)| (*key, value.as_str())));
        tell(event.level.name(), event.name, &fields);
    });
}

/// Logs a panic as a line, and counts it. It ends only its request or connection.
pub fn on_panic(count: impl Fn() + Send + Sync + 'static) {
    std::panic::set_hook(Box::new(move |panic| {
        count();
        error("panic", ErrorKind::Internal.name(), &panic.to_string());
    }));
}

/// Moves writing to a thread, so that no caller waits for the log's reader. Lost lines are counted, and the log says where.
///
/// # Errors
/// The error that kept the thread from starting.
pub fn write_aside(count_lost: impl Fn(u64) + Send + Sync + 'static) -> std::io::Result<()> {
    let writer: &Writer = Box::leak(Box::new(Writer { lines: LogWriter::default(), count_lost: Box::new(count_lost) }));
    let missing = |count: u64| line("warning", "lines.dropped", &[("lines", &count.to_string()), ("text", "nobody took them in time")]);
    let write = move || writer.lines.write(&mut std::io::stderr(), missing, &writer.count_lost);
    std::thread::Builder::new().name("log".to_owned()).spawn(write)?;
    // This function is called once.
    let _ = WRITER.set(writer);
    Ok(())
}

/// Waits until the log is written, as long as a reader takes it.
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
        // One write, so that lines of several threads stay whole. A missing reader is no reason to end.
        None => _ = std::io::stderr().write_all(line.as_bytes()),
    }
}

/// Returns whether a terminal would act on a character that JSON leaves as it is: controls above ASCII, and what turns the direction of text.
fn is_hidden(letter: char) -> bool {
    matches!(letter, '\u{7f}'..='\u{9f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn line(level: &str, event: &str, fields: &[(&str, &str)]) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
    let mut told = Map::new();
    for (key, value) in [("time", show_instant(now).as_str()), ("level", level), ("event", event)].iter().chain(fields) {
        let shown: String = value.chars().map(|letter| if is_hidden(letter) { char::REPLACEMENT_CHARACTER } else { letter }).collect();
        told.insert((*key).to_owned(), Value::from(shown));
    }
    format!("{}\n", Value::Object(told))
}
