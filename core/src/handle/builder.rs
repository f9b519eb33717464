//! A spec that is built by calls instead of a line.

use crate::handle::snowflake::Snowflake;
use crate::id::Id;
use crate::spec::Spec;
use crate::wait::Wait;
use frazil_base::error::{Result, shown, spec_error};
use frazil_base::time::show_duration;
use jiff::Timestamp;
use std::fmt::{self, Display};
use std::time::{Duration, SystemTime};

/// The configuration of a generator. Each call sets one option of the [spec line](Spec). See [`Snowflake::builder`].
///
/// The values are checked when the generator is opened. Policies are texts, as in every language: `ahead:1s`, `random:16`.
///
/// # Example
/// ```
/// use frazil::Snowflake;
/// use std::time::Duration;
///
/// let ids = Snowflake::builder()
///     .preset("twitter")
///     .field("datacenter", 1)
///     .store("memory")
///     .namespace("shop")
///     .window(Duration::from_secs(10))
///     .open()?;
/// assert_eq!(ids.spec(), "twitter datacenter=1 store=memory namespace=shop window=10s");
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone, Default)]
#[must_use = "it opens nothing before `open` is called"]
pub struct Builder {
    /// One preset, or several by mistake.
    presets: Vec<String>,
    options: Vec<(String, String)>,
}

impl Snowflake {
    /// Begins the configuration of a generator, with the layout and the policies of `standard`.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Builder {
    /// Sets the layout and the policies to those of a preset.
    pub fn preset(mut self, name: &str) -> Self {
        self.presets.push(name.to_owned());
        self
    }

    /// Sets the layout: a [`Layout`](crate::Layout), or its text.
    pub fn layout(self, layout: impl Display) -> Self {
        self.set("layout", layout)
    }

    /// Sets the instant at which the layout's time is 0.
    pub fn epoch(self, epoch: SystemTime) -> Self {
        let from_1970 = unix_ns(epoch);
        match Timestamp::from_nanosecond(from_1970) {
            Ok(epoch) => self.set("epoch", epoch),
            // The spec refuses such a text.
            Err(_) => self.set("epoch", from_1970 / 1_000_000),
        }
    }

    /// Sets a node field of the layout, such as `worker`.
    pub fn field(self, name: &str, value: u64) -> Self {
        self.set(name, value)
    }

    /// Sets the store that leases node numbers: `local`, a URL, or `env:NAME` for the content of a variable.
    pub fn store(self, store: &str) -> Self {
        self.set("store", store)
    }

    /// Sets the part of the store in which the numbers are leased.
    pub fn namespace(self, name: &str) -> Self {
        self.set("namespace", name)
    }

    /// Sets the distance by which a lease's bound is moved ahead.
    pub fn window(self, window: Duration) -> Self {
        self.set_duration("window", window)
    }

    /// Sets the time after which a lease is extended.
    pub fn renew(self, renew: Duration) -> Self {
        self.set_duration("renew", renew)
    }

    /// Sets the reaction to a clock that went back: `error`, `wait:5ms`, `ahead:1s`.
    pub fn rollback(self, policy: &str) -> Self {
        self.set("rollback", policy)
    }

    /// Sets the reaction to a tick whose sequence is used up: `error`, `wait:5s`, `ahead:1s`.
    pub fn exhausted(self, policy: &str) -> Self {
        self.set("exhausted", policy)
    }

    /// Sets the first sequence of a tick: `zero`, `alternate:N`, `random:N`, `continue:N`.
    pub fn start(self, policy: &str) -> Self {
        self.set("start", policy)
    }

    /// Sets how late IDs may be stamped, for bursts.
    pub fn lag(self, lag: Duration) -> Self {
        self.set_duration("lag", lag)
    }

    /// Makes all IDs larger than the last one of another system.
    pub fn after(self, id: Id) -> Self {
        self.set("after", id)
    }

    /// Sets any option of the spec line, by its name.
    pub fn set(mut self, key: &str, value: impl Display) -> Self {
        self.options.push((key.to_owned(), value.to_string()));
        self
    }

    fn set_duration(self, key: &str, value: Duration) -> Self {
        match u64::try_from(value.as_millis()) {
            Ok(ms) if Duration::from_millis(ms) == value => self.set(key, show_duration(ms)),
            // The spec refuses such a text.
            _ => self.set(key, format_args!("{value:?}")),
        }
    }

    /// Returns the spec.
    ///
    /// # Errors
    /// `SPEC` for an option that was set twice, and for a preset that is not a single word.
    pub fn spec(&self) -> Result<Spec> {
        let preset = match self.presets.as_slice() {
            [] => "",
            // A longer text would be a line with more options.
            [name] if !name.is_empty() && !name.contains(|c: char| c == '=' || c.is_whitespace()) => name,
            [name] => return Err(spec_error(format!("{} is not the name of a preset", shown(name)))),
            [name, other, ..] => {
                return Err(spec_error(format!("the presets {} and {} are given: use one of them", shown(name), shown(other))));
            }
        };
        Spec::from_parts(Some(preset), &self.options)
    }

    /// Opens the generator.
    ///
    /// # Errors
    /// As [`spec`](Builder::spec), and as [`Snowflake::open`].
    pub fn open(&self) -> Result<Snowflake> {
        self.open_for(Duration::MAX)
    }

    /// Opens a generator, and waits no longer than a limit.
    ///
    /// # Errors
    /// As [`open`](Builder::open), and `WOULD_BLOCK`.
    pub fn open_for<'a>(&self, wait: impl Into<Wait<'a>>) -> Result<Snowflake> {
        Snowflake::open_spec(self.spec()?, wait)
    }
}

/// The nanoseconds since 1970, negative before it.
fn unix_ns(time: SystemTime) -> i128 {
    let whole = |distance: Duration| distance.as_nanos() as i128;
    time.duration_since(SystemTime::UNIX_EPOCH).map_or_else(|before| -whole(before.duration()), whole)
}

/// Shows a store's URL as the spec does, because it may hold a password.
impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.spec() {
            Ok(spec) => write!(f, "Builder({spec})"),
            Err(error) => write!(f, "Builder({error})"),
        }
    }
}
