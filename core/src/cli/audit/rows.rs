//! The rows of a query.

use super::failure::Outcome;
use super::intake::Intake;
use super::number::Broken;
use super::reading::Place;
use crate::error::{Error, ErrorKind};
use crate::secret::Secret;
use crate::store;

/// # Errors
/// `SPEC` without a query, `STORE_*`, and those of [`Intake::take`].
pub(super) fn read(url: &Secret, query: Option<&str>, intake: &mut Intake<'_>) -> Outcome<()> {
    let Some(query) = query else {
        let why = format!("source={} is a database: say --query 'select id from items'", intake.name);
        return Err(Error::new(ErrorKind::Spec, why).into());
    };
    let mut place = Place::default();
    let mut stopped = Ok(());
    let stop = || super::interrupt::is_wanted();
    store::column(url.expose(), query, &stop, &mut |value| {
        place.line += 1;
        stopped = match value {
            Some(value) => intake.take(place.line, value, place),
            None => intake.broken(place.line, Broken::Null, b"NULL"),
        };
        stopped.is_ok()
    })?;
    stopped?;
    intake.progress.say(String::new)
}
