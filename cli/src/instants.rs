//! Instants of the command line, in the usual formats or as a distance from now.

use frazil::admin::{check_order, parse_duration, spec_error, system_ms};
use frazil::bindings::parse_instant;
use frazil::{Error, ErrorKind, Result};

/// Parses the two ends of a range, each with its option.
///
/// # Errors
/// As [`instant`]; `SPEC` if the first is not before the second.
pub(super) fn instants(from: (&str, Option<&str>), to: (&str, Option<&str>)) -> Result<(Option<i64>, Option<i64>)> {
    let now = system_ms();
    let bound = |(key, text): (&str, Option<&str>)| text.map(|text| instant(key, text, now)).transpose();
    let (from_ms, to_ms) = (bound(from)?, bound(to)?);
    check_order([from.0, to.0], from_ms, to_ms)?;
    Ok((from_ms, to_ms))
}

/// Parses an instant in the usual formats, or as a distance from now: `90m`.
///
/// # Errors
/// As [`parse_instant`]; `SPEC` for a number that looks like a date or seconds, because it would be an instant of 1970.
fn instant(key: &str, text: &str, now_ms: i64) -> Result<i64> {
    let meant = match text.len() {
        _ if !text.bytes().all(|byte| byte.is_ascii_digit()) => None,
        4 => Some("a year: use 2025-01-01"),
        8 => Some("a date: use 2025-01-31"),
        10 => Some("seconds: use milliseconds, or 2025-01-01T00:00:00Z"),
        _ => None,
    };
    if let Some(meant) = meant {
        return Err(spec_error(format!("{key}={text} would be Unix milliseconds in 1970, but looks like {meant}")));
    }
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    if unit.len() == text.len() || !matches!(unit, "ms" | "s" | "m" | "h" | "d") {
        return parse_instant(key, text).map_err(|error| {
            let or = if error.kind() == ErrorKind::Spec { "; or how long ago: 90m, 24h, 7d" } else { "" };
            Error::new(error.kind(), format!("{error}{or}"))
        });
    }
    let ago = match unit {
        "d" => {
            let days: u64 = text[..text.len() - 1].parse().map_err(|_| spec_error(format!("{key}={text} has too many digits")))?;
            parse_duration(key, &format!("{}h", days.saturating_mul(24)))?
        }
        _ => parse_duration(key, text)?,
    };
    Ok(now_ms.saturating_sub_unsigned(ago))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_and_distances_from_now() {
        let now = 1_800_000_000_000;
        for (text, ms) in
            [("90m", now - 5_400_000), ("7d", now - 604_800_000), ("1970-01-02", 86_400_000), ("315532800000", 315_532_800_000), ("0", 0)]
        {
            assert_eq!(instant("--since", text, now), Ok(ms), "{text}");
        }
        for text in ["2025", "20250131", "1764000000", "", "d", "soon", "-5h", "99999999999999999999d", "5w", "9999999999999999999d"] {
            assert!(instant("--since", text, now).is_err(), "{text}");
        }
    }
}
