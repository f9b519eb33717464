//! Prints IDs as they are minted.

use super::code;
use super::interrupt::{self, Interrupt};
use super::screen::{Outcome, Screen, Stop, grouped};
use super::status::DONE;
use frazil::{ErrorKind, Id, Result, Snowflake, Spec, TextFormat, Wait};
use serde_json::json;
use std::time::Duration;

/// The number of IDs between two checks for Ctrl-C.
const PIECE: usize = 1024;
/// The longest sleep in a tick that is used up.
const NAP: Duration = Duration::from_millis(100);

/// Prints `count` IDs of the generator that the spec opens.
pub(super) fn print(words: &[String], count: u64, format: Option<TextFormat>, as_json: bool, screen: &mut Screen<'_>) -> Outcome {
    let line = (!words.is_empty()).then(|| words.join(" "));
    let _interrupt = Interrupt::listen();
    let wait = Wait::until(Duration::MAX, &interrupt::is_requested);
    let ids = Snowflake::open_spec(Spec::from_parts(line.as_deref(), &[])?, wait)?;
    let mut left = count;
    let mut buffer = vec![0_i64; PIECE.min(usize::try_from(count).unwrap_or(PIECE))];
    while left > 0 {
        if interrupt::is_requested() {
            let why = format!("{} of {} IDs were printed", grouped(count - left), grouped(count));
            return Err(Stop::Failed(code::INTERRUPTED, why));
        }
        let piece = buffer.len().min(usize::try_from(left).unwrap_or(buffer.len()));
        let (minted, nap) = fill(&ids, &mut buffer[..piece], wait)?;
        for &number in &buffer[..minted] {
            screen.print(&line_of(Id::new(number)?, format, as_json))?;
        }
        left -= minted as u64;
        if let Some(nap) = nap {
            screen.flush()?;
            std::thread::sleep(nap.min(NAP));
        }
    }
    ids.close();
    Ok(DONE)
}

/// Fills the buffer and returns the number of IDs, and the time until there are more. The command waits if a tick is used up.
fn fill(ids: &Snowflake, buffer: &mut [i64], wait: Wait<'_>) -> Result<(usize, Option<Duration>)> {
    match ids.fill_for(buffer, wait) {
        Ok(()) => Ok((buffer.len(), None)),
        Err(error) if error.kind() == ErrorKind::Exhausted => match error.retry_after() {
            Some(nap) => Ok((error.written(), Some(nap))),
            None => Err(error),
        },
        // After Ctrl-C, which the caller handles.
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok((error.written(), None)),
        Err(error) => Err(error),
    }
}

fn line_of(id: Id, format: Option<TextFormat>, as_json: bool) -> String {
    match (format, as_json) {
        (None, false) => format!("{id}\n"),
        (Some(format), false) => format!("{}\n", id.text(format)),
        (None, true) => format!("{}\n", json!({ "id": id.to_string() })),
        (Some(format), true) => format!("{}\n", json!({ "id": id.to_string(), format.name(): id.text(format) })),
    }
}
