//! Durations and instants as text. Instants are Unix milliseconds in an `i64` everywhere.

use crate::error::{Error, ErrorKind, Result, is_number, shown};
use jiff::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};

/// 0001-01-01, the first instant that the date types of all languages can hold.
pub const FIRST_MS: i64 = -62_135_596_800_000;
/// 9999-12-31T23:59:59.999, the last such instant.
pub const LAST_MS: i64 = 253_402_300_799_999;

/// 1990-01-01. A smaller integer most likely means seconds.
const FIRST_INTEGER_EPOCH_MS: i64 = 631_152_000_000;

/// A year of 365.2425 days.
const YEAR_MS: f64 = 31_556_952_000.0;

/// Parses `5s`: an integer and ms, s, m or h.
pub fn parse_duration(key: &str, text: &str) -> Result<u64> {
    let refuse = |kind| {
        let allowed = "an integer and ms, s, m or h, up to ten years";
        Error::new(kind, format!("{key}={} is not a duration: {allowed}, such as 10ms", shown(text)))
    };
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(refuse(ErrorKind::Spec)),
    };
    if number.is_empty() {
        return Err(refuse(ErrorKind::Spec));
    }
    let ms = number.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
    ms.filter(|&ms| ms <= 10 * YEAR_MS as u64).ok_or_else(|| refuse(ErrorKind::OutOfRange))
}

/// Prints a duration in the largest unit that divides it.
pub fn show_duration(ms: u64) -> String {
    for (unit, name) in [(3_600_000, "h"), (60_000, "m"), (1_000, "s")] {
        if ms > 0 && ms.is_multiple_of(unit) {
            return format!("{}{name}", ms / unit);
        }
    }
    format!("{ms}ms")
}

/// Prints how long something lasts, for people: `4.36 years`.
pub fn show_span(ms: f64) -> String {
    for (unit, name) in [(YEAR_MS, "years"), (86_400_000.0, "days"), (3_600_000.0, "hours"), (60_000.0, "minutes")] {
        if ms >= unit {
            return format!("{:.2} {name}", ms / unit);
        }
    }
    format!("{:.3} seconds", ms / 1000.0)
}

/// Parses Unix milliseconds, an RFC 3339 instant, or a date (midnight UTC).
///
/// # Errors
/// `SPEC`; `OUT_OF_RANGE` outside the years 1 to 9999, and for a number that is not an integer.
pub fn parse_instant(key: &str, text: &str) -> Result<i64> {
    let ms = if is_integer(text) {
        text.parse::<i64>().ok()
    } else {
        let midnight = if text.len() == "2025-01-01".len() { "T00:00:00Z" } else { "" };
        let instant = format!("{text}{midnight}").parse::<Timestamp>().map_err(|_| {
            let allowed = "give Unix milliseconds, 2025-01-01 or 2025-01-01T00:00:00Z";
            let kind = if is_number(text) { ErrorKind::OutOfRange } else { ErrorKind::Spec };
            Error::new(kind, format!("{key}={} is not an instant: {allowed}", shown(text)))
        })?;
        if instant.subsec_nanosecond() % 1_000_000 != 0 {
            return Err(Error::new(ErrorKind::Spec, format!("{key}={} is finer than a millisecond", shown(text))));
        }
        Some(instant.as_millisecond())
    };
    ms.ok_or_else(|| out_of_range(key, shown(text))).and_then(|ms| check_instant(key, ms))
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Parses a layout's epoch like [`parse_instant`]. But an integer must lie in 1990 or later,
/// because a smaller one is most likely in seconds.
///
/// # Errors
/// Those of [`parse_instant`]; `OUT_OF_RANGE` for an integer below 1990.
pub fn parse_epoch(text: &str) -> Result<i64> {
    let ms = parse_instant("epoch", text)?;
    if !is_integer(text) || ms >= FIRST_INTEGER_EPOCH_MS {
        return Ok(ms);
    }
    let date = show_epoch(ms);
    let meant = Some(ms.saturating_mul(1000)).filter(|ms| (FIRST_INTEGER_EPOCH_MS..=LAST_MS).contains(ms));
    let meant = match (meant, ms) {
        (Some(ms), _) => format!("if it is in seconds, write {ms}; "),
        (None, 1970..=2199) => format!("if it is a year, write {text}-01-01; "),
        _ => String::new(),
    };
    let why = format!(
        "epoch={text} is out of range: an integer is in Unix milliseconds and lies in 1990 or later, and this is {date}: {meant}an epoch \
         before 1990 is written as a date, {date}"
    );
    Err(Error::new(ErrorKind::OutOfRange, why))
}

/// Prints an epoch in the form that [`Layout::parse`](crate::Layout::parse) accepts: Unix milliseconds, or a date if it is before 1990.
pub fn show_epoch(unix_ms: i64) -> String {
    if !(FIRST_MS..FIRST_INTEGER_EPOCH_MS).contains(&unix_ms) {
        return unix_ms.to_string();
    }
    let date = show_instant(unix_ms);
    date.strip_suffix("T00:00:00Z").map_or_else(|| date.clone(), str::to_owned)
}

/// Refuses an instant that a type of some language cannot hold.
pub fn check_instant(key: &str, unix_ms: i64) -> Result<i64> {
    if (FIRST_MS..=LAST_MS).contains(&unix_ms) { Ok(unix_ms) } else { Err(out_of_range(key, unix_ms)) }
}

fn out_of_range(key: &str, value: impl std::fmt::Display) -> Error {
    let allowed = format!("the years 1 to 9999, {FIRST_MS} to {LAST_MS} ms");
    Error::new(ErrorKind::OutOfRange, format!("{key}={value} is out of range: {allowed}"))
}

/// Prints an instant as RFC 3339, or as Unix milliseconds if no date can express it.
pub fn show_instant(unix_ms: i64) -> String {
    Timestamp::from_millisecond(unix_ms).map_or_else(|_| format!("{unix_ms} ms"), |instant| instant.to_string())
}

/// Returns the system's clock in Unix milliseconds.
#[inline]
pub fn system_ms() -> i64 {
    system_time().0
}

/// Returns the system's clock in Unix milliseconds, and the nanoseconds passed in that millisecond.
#[inline]
pub fn system_time() -> (i64, u64) {
    const NS: i128 = 1_000_000;
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => ((since.as_secs() * 1000) as i64 + i64::from(since.subsec_millis()), u64::from(since.subsec_nanos() % 1_000_000)),
        // Before 1970 the distance counts backwards, so round down to the earlier millisecond.
        Err(before) => {
            let ns = -(before.duration().as_nanos() as i128);
            (ns.div_euclid(NS) as i64, ns.rem_euclid(NS) as u64)
        }
    }
}
