//! An error in each protocol's form: the core's, under its stable name, and the errors of HTTP and Redis' protocol themselves.

use frazil::{Error, ErrorKind};
use hyper::StatusCode;
use serde::Serialize;
use std::time::Duration;

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
