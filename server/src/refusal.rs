//! An error in each protocol's form: the core's, under its stable name, and the errors of HTTP and Redis' protocol themselves.

use crate::log;
use crate::peer::Peer;
use frazil::{Error, ErrorKind};
use hyper::StatusCode;
use serde::Serialize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The reason for a refused request.
#[derive(Debug)]
pub struct Refusal {
    pub status: StatusCode,
    /// A name in the core's table, or the protocol's own: UNAUTHORIZED, FORBIDDEN, NOT_FOUND, METHOD_NOT_ALLOWED, NOT_ACCEPTABLE,
    /// TOO_MANY_REQUESTS.
    pub code: &'static str,
    pub message: String,
    pub retry_after_ms: Option<u64>,
    /// The allowed methods of HTTP.
    pub allow: Option<&'static str>,
}

pub type Result<T, E = Refusal> = std::result::Result<T, E>;

/// The time to wait before a retry where none is known, for example while a store is unreachable.
const SOON_MS: u64 = 1000;

impl Refusal {
    fn of_protocol(status: StatusCode, code: &'static str, message: String) -> Self {
        Refusal { status, code, message, retry_after_ms: None, allow: None }
    }

    pub fn unauthorized(message: &str) -> Self {
        Refusal::of_protocol(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message.to_owned())
    }

    pub fn forbidden(message: String) -> Self {
        Refusal::of_protocol(StatusCode::FORBIDDEN, "FORBIDDEN", message)
    }

    pub fn not_found(message: String) -> Self {
        Refusal::of_protocol(StatusCode::NOT_FOUND, "NOT_FOUND", message)
    }

    pub fn method_not_allowed(message: String, allow: &'static str) -> Self {
        let refusal = Refusal::of_protocol(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", message);
        Refusal { allow: Some(allow), ..refusal }
    }

    pub fn not_acceptable(message: String) -> Self {
        Refusal::of_protocol(StatusCode::NOT_ACCEPTABLE, "NOT_ACCEPTABLE", message)
    }

    /// Makes the refusal of a client that has used up its rate.
    pub fn too_many(message: String, wait: Duration) -> Self {
        let refusal = Refusal::of_protocol(StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_REQUESTS", message);
        Refusal { retry_after_ms: Some(wait.as_millis() as u64 + 1), ..refusal }
    }

    /// Makes the refusal of a name that is not served, or that is of another kind.
    pub fn unknown(message: String) -> Self {
        Refusal { status: StatusCode::NOT_FOUND, ..Error::new(ErrorKind::UnknownKey, message).into() }
    }

    /// Makes a refusal that blames the request, whatever the error's kind, so a retry is pointless.
    pub fn of_request(error: Error) -> Self {
        Refusal { status: StatusCode::BAD_REQUEST, retry_after_ms: None, ..error.into() }
    }

    /// Returns whether the caller was refused, not the request.
    pub fn is_of_access(&self) -> bool {
        matches!(self.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
    }

    /// Returns the form that Redis' client libraries parse: a word in capitals, then the reason.
    pub fn to_resp(&self) -> String {
        let word = match self.status {
            StatusCode::UNAUTHORIZED => "NOAUTH",
            StatusCode::FORBIDDEN => "NOPERM",
            _ => self.code,
        };
        format!("{word} {}", self.message)
    }

    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Body<'a> {
            error: Reason<'a>,
        }
        #[derive(Serialize)]
        struct Reason<'a> {
            code: &'static str,
            message: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            retry_after_ms: Option<u64>,
        }
        let error = Reason { code: self.code, message: &self.message, retry_after_ms: self.retry_after_ms };
        serde_json::to_string(&Body { error }).expect("texts and numbers have a form in JSON")
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        use ErrorKind as Kind;
        let status = match error.kind() {
            Kind::Spec | Kind::UnknownKey | Kind::OutOfRange | Kind::LayoutInvalid | Kind::IdInvalid | Kind::WrongType => {
                StatusCode::BAD_REQUEST
            }
            Kind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            // The request was right; a retry or another replica may succeed.
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        let retry_after_ms = (status == StatusCode::SERVICE_UNAVAILABLE).then(|| error.retry_after_ms().unwrap_or(SOON_MS));
        Refusal { status, code: error.kind().name(), message: error.to_string(), retry_after_ms, allow: None }
    }
}

/// The most lines in a second, so that refused clients cannot fill the disk.
const MOST: u32 = 20;
const SECOND: Duration = Duration::from_secs(1);

/// The most characters of a text, which may have what the client sent.
const LONGEST: usize = 256;

/// The refusals of access in the log, with client and code, so that a lost token or a scan is noticed.
///
/// Known and unknown clients have separate limits, so that a client without a token cannot keep the misuse of a token out of the log.
#[derive(Default)]
pub struct RefusalLog {
    unknown: Mutex<Lines>,
    known: Mutex<Lines>,
}

/// The lines of a second.
#[derive(Default)]
struct Lines {
    begun: Option<Instant>,
    written: u32,
    left_out: u64,
}

impl RefusalLog {
    /// Logs a refusal of the caller. Refusals of requests are not logged.
    pub fn log_access(&self, protocol: &str, peer: Peer, refusal: &Refusal) {
        if refusal.is_of_access() {
            self.log(protocol, peer, refusal.code, &refusal.message);
        }
    }

    /// Logs a refusal, unless there are too many. The next line has the number of those left out. `text` has the token's label, and no secret.
    pub fn log(&self, protocol: &str, peer: Peer, code: &str, text: &str) {
        let lines = if code == "FORBIDDEN" { &self.known } else { &self.unknown };
        let Some(left_out) = lines.lock().unwrap_or_else(PoisonError::into_inner).admit(Instant::now()) else { return };
        let text: String = text.chars().take(LONGEST).collect();
        log::warning(
            "access.refused",
            [
                ("protocol", protocol.into()),
                ("peer", peer.to_string().into()),
                ("code", code.into()),
                ("text", text.into()),
                ("left_out", left_out.into()),
            ],
        );
    }
}

impl Lines {
    /// Returns how many lines were left out before this one; `None` if this one is left out as well.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if self.begun.is_none_or(|begun| now.duration_since(begun) >= SECOND) {
            (self.begun, self.written) = (Some(now), 0);
        }
        if self.written == MOST {
            self.left_out += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_is_limited_each_second() {
        let (mut lines, begun) = (Lines::default(), Instant::now());
        let mut logged = |after: u64| (0..1_000).filter_map(|_| lines.admit(begun + Duration::from_millis(after))).collect::<Vec<_>>();
        assert_eq!(logged(0), [0; MOST as usize]);
        assert!(logged(999).is_empty());
        let next = logged(1_000);
        assert_eq!((next.len(), next[0], next[1]), (MOST as usize, 1_980, 0));
    }
}
