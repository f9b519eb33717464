//! The log: events as lines of JSON on the standard error. Requests are not logged here, and no line holds a secret.

use crate::log_writer::LogWriter;
use frazil::bindings::show_instant;
use frazil::{ErrorKind, Event};
use serde_json::{Map, Value};
use std::io::Write;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest wait at the end for a reader that makes no progress.
const END: Duration = Duration::from_secs(5);

/// The writer with its own thread, once there is one.
static WRITER: OnceLock<&Writer> = OnceLock::new();

struct Writer {
    lines: LogWriter,
    count_lost: Box<dyn Fn(u64) + Send + Sync>,
}

pub fn info<const N: usize>(event: &str, fields: [(&'static str, Value); N]) {
    write("info", event, fields);
}

pub fn warning<const N: usize>(event: &str, fields: [(&'static str, Value); N]) {
    write("warning", event, fields);
}

pub fn error(event: &str, code: &str, text: &str) {
    write("error", event, [("code", code.into()), ("text", text.into())]);
}

/// Logs the core's events. Their numbers are strings, like IDs, because readers of JSON round large ones.
pub fn listen() {
    frazil::on_event(|event: &Event| {
        let fields = event.fields.iter().map(|(key, value)| (*key, value.as_str().into()));
        write(event.level.name(), event.name, fields.chain([("text", event.text.as_str().into())]));
    });
}

/// Logs a panic as a line, and counts it. The panic ends only its request or connection.
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
    let missing =
        |count: u64| line("warning", "lines.dropped", [("lines", count.into()), ("text", "the reader of the log was too slow".into())]);
    let write = move || writer.lines.write(&mut std::io::stderr(), missing, &writer.count_lost);
    std::thread::Builder::new().name("log".to_owned()).spawn(write)?;
    // This function is called once.
    let _ = WRITER.set(writer);
    Ok(())
}

/// Waits until the log is written, as long as its reader makes progress.
pub fn finish() {
    if let Some(writer) = WRITER.get() {
        writer.lines.finish(END);
    }
}

fn write(level: &str, event: &str, fields: impl IntoIterator<Item = (&'static str, Value)>) {
    let line = line(level, event, fields);
    match WRITER.get() {
        Some(writer) => {
            if !writer.lines.push(&line) {
                (writer.count_lost)(1);
            }
        }
        // One write, so that lines of several threads stay whole. A missing reader must not end the process.
        None => _ = std::io::stderr().write_all(line.as_bytes()),
    }
}

/// Returns whether a terminal would act on a character that JSON leaves as it is: controls above ASCII, and marks that turn the direction
/// of text.
fn is_hidden(letter: char) -> bool {
    matches!(letter, '\u{7f}'..='\u{9f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn line(level: &str, event: &str, fields: impl IntoIterator<Item = (&'static str, Value)>) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
    let fields = [("time", time(now).into()), ("level", level.into()), ("event", event.into())].into_iter().chain(fields);
    let shown = |value| match value {
        Value::String(text) => {
            text.chars().map(|letter| if is_hidden(letter) { char::REPLACEMENT_CHARACTER } else { letter }).collect::<String>().into()
        }
        other => other,
    };
    let object: Map<_, _> = fields.map(|(key, value)| (key.to_owned(), shown(value))).collect();
    format!("{}\n", Value::Object(object))
}

/// Writes an instant with three digits of the second, so that the lines' times sort as text.
fn time(unix_ms: i64) -> String {
    let ms = unix_ms.rem_euclid(1_000);
    format!("{}.{ms:03}Z", show_instant(unix_ms - ms).trim_end_matches('Z'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_one_width() {
        assert_eq!([0, 1_764_333_410_070].map(time), ["1970-01-01T00:00:00.000Z", "2025-11-28T12:36:50.070Z"]);
    }
}
