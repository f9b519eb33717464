//! The rows of a query.

use super::failure::Outcome;
use super::intake::Intake;
use super::number::Broken;
use super::reading::Place;
use frazil::admin::Secret;
use frazil::admin::store::column;

/// # Errors
/// `SPEC` for what the database says of the query, `STORE_*`, and those of [`Intake::take`].
pub(super) fn read(url: &Secret, query: &str, intake: &mut Intake<'_>) -> Outcome<()> {
    let mut place = Place::default();
    let mut stopped = Ok(());
    let stop = super::super::interrupt::came;
    column(url.expose(), query, &stop, &mut |value| {
        place.line += 1;
        stopped = match value {
            Some(value) => intake.take(place.line, value, place),
            None => intake.broken(place.line, Broken::Null, b"NULL", place),
        };
        stopped.is_ok()
    })?;
    stopped?;
    intake.progress.say(String::new)
}
