//! IDs printed as they are minted.

use super::interrupt::{self, Interrupt};
use super::screen::{Outcome, Screen, grouped};
use super::status::{DONE, INTERRUPTED};
use frazil::{ErrorKind, Id, Result, Snowflake, Spec, TextFormat, Wait};
use serde_json::json;
use std::time::Duration;

/// Few enough that Ctrl-C is heard soon.
const PIECE: usize = 1024;
/// The longest wait for a tick that is used up, at a time.
const NAP: Duration = Duration::from_millis(100);

/// Prints `count` IDs of the generator that the spec opens.
pub(super) fn print(words: &[String], count: u64, format: Option<TextFormat>, as_json: bool, screen: &mut Screen<'_>) -> Outcome {
    let line = (!words.is_empty()).then(|| words.join(" "));
    let _interrupt = Interrupt::listen();
    let wait = Wait::until(Duration::MAX, &interrupt::came);
    let ids = Snowflake::open_spec(Spec::from_parts(line.as_deref(), &[])?, wait)?;
    let mut left = count;
    let mut buffer = vec![0_i64; PIECE.min(usize::try_from(count).unwrap_or(PIECE))];
    while left > 0 {
        if interrupt::came() {
            screen.tell(&format!("frazil: INTERRUPTED: {} of {} IDs were printed", grouped(count - left), grouped(count)))?;
            return Ok(INTERRUPTED);
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

/// The number of IDs there are, and the time until there are more. The command waits where a program would be refused because a tick is used up.
fn fill(ids: &Snowflake, buffer: &mut [i64], wait: Wait<'_>) -> Result<(usize, Option<Duration>)> {
    match ids.fill_for(buffer, wait) {
        Ok(()) => Ok((buffer.len(), None)),
        Err(error) if error.kind() == ErrorKind::Exhausted => match error.retry_after() {
            Some(nap) => Ok((error.written(), Some(nap))),
            None => Err(error),
        },
        // Ctrl-C: the caller sees it.
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

/// The form that `--text` names.
///
/// # Errors
/// `OUT_OF_RANGE` for one that is not there.
pub(super) fn format(name: Option<&str>) -> Result<Option<TextFormat>> {
    name.map(str::parse).transpose()
}
