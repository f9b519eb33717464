//! The one error table: every refusal of frazil, in every language, is a row of it.
//!
//! The table has the code and the meaning. The code that refuses writes the text, for example `Guard::in_use` that of `NODE_IN_USE`.

use crate::secret;
use std::any::Any;
use std::ffi::CStr;
use std::fmt;
use std::time::Duration;

/// The longest pause before the second call of a busy store.
pub const FIRST_PAUSE: Duration = Duration::from_millis(25);

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! error_table {
    ($($kind:ident = $code:literal $name:literal $meaning:literal)*) => {
        /// The kind of an [`Error`]: its stable part.
        ///
        /// Numbers and names are append-only, and equal in every language. Python raises a class
        /// for each (`ClockBackError`), Node sets `err.code` to the name, C returns the number as
        /// `FRAZIL_` and the name, and C++ has `frazil::errc`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(i32)]
        pub enum ErrorKind {
            $(#[doc = $meaning] $kind = $code,)*
        }

        impl ErrorKind {
            /// Every kind, in the order of the numbers.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$kind,)*];

            /// The stable name, for example `CLOCK_BACK`.
            pub const fn name(self) -> &'static str {
                match self { $(ErrorKind::$kind => $name,)* }
            }

            /// Returns the kind's meaning, in one sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(ErrorKind::$kind => $meaning,)* }
            }

            /// The name and the meaning, for C.
            #[doc(hidden)]
            pub const fn c_texts(self) -> (&'static CStr, &'static CStr) {
                match self { $(ErrorKind::$kind => const { (c_text(concat!($name, "\0")), c_text(concat!($meaning, "\0"))) },)* }
            }
        }
    };
}

const fn c_text(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a text of the table has a NUL"),
    }
}

error_table! {
    Spec = 101 "SPEC" "The spec line, or a value in it, cannot be understood."
    UnknownKey = 102 "UNKNOWN_KEY" "The spec or the call names a key or a field that does not exist here."
    OutOfRange = 103 "OUT_OF_RANGE" "A value lies outside the range that its argument allows."
    LayoutInvalid = 104 "LAYOUT_INVALID" "The layout cannot exist: too many bits, a bad name, a bad tick."
    IdInvalid = 105 "ID_INVALID" "The text or number is not an ID of this layout."
    WrongType = 106 "WRONG_TYPE" "An argument has the wrong type, or is null."
    Closed = 107 "CLOSED" "The handle has been closed."
    LayoutExpired = 201 "LAYOUT_EXPIRED" "The instant lies past the last one that the layout's time field can hold."
    BeforeEpoch = 202 "BEFORE_EPOCH" "The instant lies before the layout's epoch."
    ClockBack = 203 "CLOCK_BACK" "The clock went back, by more than the rollback policy allows."
    Exhausted = 204 "EXHAUSTED" "The tick's sequence is used up, and the exhausted policy allows no more."
    WouldBlock = 205 "WOULD_BLOCK" "The call would wait longer than it may here; the error says for how long."
    ClockNotSet = 206 "CLOCK_NOT_SET" "The manual clock has not been given a time yet."
    ClockSkew = 207 "CLOCK_SKEW" "This machine's clock is too far from the store's."
    NodeMissing = 301 "NODE_MISSING" "No node number was given, and no store to lease one from."
    NodeInUse = 302 "NODE_IN_USE" "The given node number is held by another generator."
    NoFreeNode = 303 "NO_FREE_NODE" "Every node number of the store is leased."
    LeaseExhausted = 304 "LEASE_EXHAUSTED" "The lease's bound is reached and the store could not extend it."
    Forked = 305 "FORKED" "The process forked, and the parent owns this generator's node number."
    Conflict = 306 "CONFLICT" "The node number is open in this process with other policies."
    Copied = 307 "COPIED" "The process was copied while it ran, and another copy may issue the same."
    StoreUnreachable = 401 "STORE_UNREACHABLE" "The store does not answer."
    StoreAuth = 402 "STORE_AUTH" "The store refuses the credentials."
    StoreReadonly = 403 "STORE_READONLY" "The store does not take writes."
    StoreCorrupt = 404 "STORE_CORRUPT" "A record of the store cannot be read."
    StoreChanged = 405 "STORE_CHANGED" "The store is not the one that held the leases: wiped, restored or replaced."
    StoreUnsuitable = 406 "STORE_UNSUITABLE" "The store cannot keep what a lease needs."
    LayoutMismatch = 407 "LAYOUT_MISMATCH" "The namespace is used with another layout."
    StoreNotBuilt = 408 "STORE_NOT_BUILT" "This build has no client for the store."
    TagMissing = 501 "TAG_MISSING" "The segment's tag does not exist in the store."
    SegmentExhausted = 502 "SEGMENT_EXHAUSTED" "The next range did not arrive in time."
    SegmentMismatch = 503 "SEGMENT_MISMATCH" "The store's record of the tag has another increment or offset than the spec."
    Internal = 901 "INTERNAL" "A defect of frazil: a panic that was caught at the border."
}

impl ErrorKind {
    /// The stable number, for example 203.
    pub const fn code(self) -> i32 {
        self as i32
    }
}

/// A refusal: its [kind](Error::kind) is stable, its text names the argument, the value and what is
/// allowed.
///
/// # Example
/// ```
/// use frazil::{ErrorKind, Snowflake};
///
/// let error = Snowflake::open("twitter datacenter=1 worker=32").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::OutOfRange);
/// assert_eq!(error.to_string(), "worker=32 is out of range: 5 bits allow 0 to 31");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    message: String,
    retry_after: Option<Duration>,
    written: usize,
    /// True if a longer wait would have avoided the error.
    by_short_wait: bool,
}

impl Error {
    /// An error of a kind, with the text that the user reads.
    ///
    /// It is for errors that only a binding can detect, such as a wrong type or a closed handle.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner { kind, message: message.into(), retry_after: None, written: 0, by_short_wait: false }))
    }

    /// `INTERNAL`, from the panic that `catch_unwind` caught, for the guards at the FFI borders.
    pub fn from_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("a panic without a text");
        Error::new(ErrorKind::Internal, format!("a defect of frazil, please report it: {text}"))
    }

    #[doc(hidden)]
    pub fn closed() -> Self {
        Error::new(ErrorKind::Closed, "this handle is closed")
    }

    #[doc(hidden)]
    pub fn retry_in(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self
    }

    /// Marks the refusal of a store that has too much to do: a later attempt may succeed.
    #[doc(hidden)]
    pub fn retry_soon(self) -> Self {
        self.retry_in(FIRST_PAUSE)
    }

    /// Puts a name before the text.
    #[doc(hidden)]
    pub fn named(mut self, name: &str) -> Self {
        self.0.message = format!("{name}: {}", self.0.message);
        self
    }

    /// Marks an error that a longer wait would have avoided.
    #[doc(hidden)]
    pub fn of_a_short_wait(mut self) -> Self {
        self.0.by_short_wait = true;
        self
    }

    /// Adds the remedy of a call that may not wait longer, by its name in the language. Other errors stay unchanged.
    #[doc(hidden)]
    pub fn or_use(mut self, remedy: &str) -> Self {
        if self.0.by_short_wait {
            self.0.message = format!("{}: use {remedy}", self.0.message);
        }
        self
    }

    /// Returns the error of a call that has written that many IDs.
    #[doc(hidden)]
    pub fn after_writing(mut self, written: usize) -> Self {
        self.0.written = written;
        self
    }

    /// The row of the error table.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the time until a retry can succeed, if it is known: `WOULD_BLOCK`, `EXHAUSTED`,
    /// `CLOCK_BACK`.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// [`retry_after`](Error::retry_after) in whole milliseconds, rounded up.
    pub fn retry_after_ms(&self) -> Option<u64> {
        self.0.retry_after.map(|wait| wait.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(u64::MAX))
    }

    /// Returns how many IDs [`Snowflake::fill`](crate::Snowflake::fill) had written when it failed.
    pub fn written(&self) -> usize {
        self.0.written
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        match (self.0.kind, self.0.written) {
            // If a burst does not fit, the caller can use its first part.
            (ErrorKind::Exhausted, written @ 1..) => write!(f, "; {written} of the burst are written"),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.kind.name(), self.0.message)
    }
}

impl std::error::Error for Error {}

/// Shortens a value that the user gave, so that a megabyte of input does not become a megabyte of
/// error text. Hides the password of a store's URL.
pub fn shown(value: &str) -> String {
    shortened(&secret::misplaced(value))
}

fn shortened(value: &str) -> String {
    const LONGEST: usize = 60;
    match value.char_indices().nth(LONGEST) {
        None => format!("{value:?}"),
        Some((end, _)) => format!("{:?}... ({} bytes)", &value[..end], value.len()),
    }
}

/// Quotes an argument of a command that is shown to be copied, for the shells of this system.
pub fn shell_word(word: &str) -> String {
    quoted(word, cfg!(windows))
}

/// Quotes a word for POSIX' shells, or for both of Windows, cmd.exe and PowerShell.
///
/// On Windows the word is put into double quotes, because cmd.exe has no others. Three cases differ between the shells:
/// - `$`, a backtick and double quotes, straight or curly, have a meaning for PowerShell within double quotes. Such a word is quoted for
///   PowerShell alone. Straight double quotes reach a program only from PowerShell 7.3 on.
/// - `%NAME%` is replaced by cmd.exe, also within quotes, if a variable has that name.
/// - Backslashes at the end of a quoted word are doubled, because a program reads the last one and the quote as a quote character.
///   PowerShell 7.3 and later pass them on doubled, which names the same folder.
pub fn quoted(word: &str, windows: bool) -> String {
    let unquoted = if windows { r"_-./:=+\" } else { "_-./:=+@%," };
    let is_plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || unquoted.contains(c));
    // PowerShell reads each of these as a single quote, and two in a row as the first one itself.
    let doubled = |c| std::iter::repeat_n(c, if matches!(c, '\'' | '‘' | '’' | '‚' | '‛') { 2 } else { 1 });
    match word {
        // Without quotes PowerShell splits `-a.b` before the dot.
        _ if is_plain && !(windows && word.starts_with('-')) => word.to_owned(),
        _ if !windows => format!("'{}'", word.replace('\'', r"'\''")),
        _ if word.contains(['$', '`', '"', '“', '”', '„']) => format!("'{}'", word.chars().flat_map(doubled).collect::<String>()),
        _ => format!("\"{word}{}\"", &word[word.trim_end_matches('\\').len()..]),
    }
}

/// The words after a command that shows a store without its login.
pub fn login_hint(command: &str) -> &'static str {
    if command.contains("***@") { ", with the user and the password for ***" } else { "" }
}

/// A refusal of the spec line.
pub fn spec_error(why: String) -> Error {
    Error::new(ErrorKind::Spec, why)
}

/// Returns whether a text is a number in any language's notation. If such a number is not allowed,
/// it is reported as out of range, and not as unreadable.
pub fn is_number(text: &str) -> bool {
    let may_be = |b: u8| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E');
    let is_one = text.bytes().all(may_be) && text.bytes().any(|b| b.is_ascii_digit()) && !text.starts_with(['e', 'E']);
    is_one || matches!(text, "NaN" | "inf" | "-inf" | "Infinity" | "-Infinity")
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::quoted;

    #[test]
    fn words_for_shells() {
        for (word, posix, windows) in [
            ("redis://h:1/0", "redis://h:1/0", "redis://h:1/0"),
            ("", "''", r#""""#),
            ("file:/my ids", "'file:/my ids'", r#""file:/my ids""#),
            (r"file:C:\ids\", r"'file:C:\ids\'", r"file:C:\ids\"),
            (r"file:C:\my ids", r"'file:C:\my ids'", r#""file:C:\my ids""#),
            (r"C:\my ids\", r"'C:\my ids\'", r#""C:\my ids\\""#),
            (r"\\host\my ids\\", r"'\\host\my ids\\'", r#""\\host\my ids\\\\""#),
            ("-x.y", "-x.y", r#""-x.y""#),
            ("a,b@c", "a,b@c", r#""a,b@c""#),
            ("redis://***@h/0", "'redis://***@h/0'", r#""redis://***@h/0""#),
            ("mysql://h/b?c=1&d=%20", "'mysql://h/b?c=1&d=%20'", r#""mysql://h/b?c=1&d=%20""#),
            ("a|b>c^d;(e)~{f}#g", "'a|b>c^d;(e)~{f}#g'", r#""a|b>c^d;(e)~{f}#g""#),
            ("it's", r"'it'\''s'", r#""it's""#),
            ("it's a $5", r"'it'\''s a $5'", "'it''s a $5'"),
            ("a `b`", "'a `b`'", "'a `b`'"),
            ("“ids” of ‘me’", "'“ids” of ‘me’'", "'“ids” of ‘‘me’’'"),
            (r#"layout="time:41 node:10""#, r#"'layout="time:41 node:10"'"#, r#"'layout="time:41 node:10"'"#),
        ] {
            assert_eq!([quoted(word, false), quoted(word, true)], [posix, windows]);
        }
    }
}
