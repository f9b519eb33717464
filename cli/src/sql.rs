//! SQL functions that decode the IDs of a layout and select them by time, in several dialects.

mod base62;
mod bigquery;
mod clickhouse;
mod duckdb;
mod mysql;
mod postgresql;
mod sqlite;

use super::inspect::systems;
use super::layout::fields;
use frazil::admin::{LAST_MS, LayoutBits, PRESETS, check_keys_among, of_layout, shown, spec_error};
use frazil::bindings::did_you_mean;
use frazil::{Error, ErrorKind, Field, Layout, Result, Spec};
use jiff::SignedDuration;
use jiff::civil::date;

/// The longest prefix: with the longest field's name, it fits the limits of all databases.
const LONGEST_PREFIX: usize = 20;
const LONGEST_SCHEMA: usize = 63;
pub(super) const DEFAULT_PREFIX: &str = "frazil_";

/// The dialect of a database.
struct Dialect {
    name: &'static str,
    /// The purpose of the script, as its head states it.
    title: &'static str,
    /// The number of parts, separated by dots, in a schema's name; 0 without schemas.
    schema_names: usize,
    quote: char,
    /// The other lines of the script's head.
    notes: &'static [&'static str],
    /// The statements before the functions, and after them.
    begin: fn(&Script<'_>) -> String,
    end: fn(&Script<'_>) -> String,
    define: fn(&Script<'_>, Function<'_>) -> String,
}

static DIALECTS: [Dialect; 7] =
    [postgresql::DIALECT, mysql::MARIADB, mysql::MYSQL, sqlite::DIALECT, duckdb::DIALECT, clickhouse::DIALECT, bigquery::DIALECT];

/// The functions, in the order of the script.
#[derive(Clone, Copy)]
enum Function<'a> {
    Time,
    UnixMs,
    Field(&'a Field),
    Base62,
    FromBase62,
    MinId,
    MaxId,
}

use Function::{Base62, FromBase62, MaxId, MinId, Time, UnixMs};

impl Function<'_> {
    /// The name after the prefix.
    fn name(&self) -> &str {
        match self {
            Time => "time",
            UnixMs => "unix_ms",
            Function::Field(field) => field.name(),
            Base62 => "base62",
            FromBase62 => "from_base62",
            MinId => "min_id",
            MaxId => "max_id",
        }
    }

    fn about(&self) -> String {
        match self {
            Time => "The instant at which the ID's tick starts.".to_owned(),
            UnixMs => "The instant at which the ID's tick starts, in Unix milliseconds.".to_owned(),
            Function::Field(field) => format!("The field {}, 0 to {}.", field.name(), field.max()),
            Base62 => "The ID as 11 characters of 0-9A-Za-z, which sort like the numbers if text is compared by bytes.".to_owned(),
            FromBase62 => "The ID of a text in base62.".to_owned(),
            MinId => "The smallest ID of the tick at an instant: WHERE id >= ...".to_owned(),
            MaxId => "The largest ID of the tick at an instant: WHERE id <= ...".to_owned(),
        }
    }
}

/// Names that no field may have, because the script's functions have them.
const TAKEN: [&str; 6] = ["unix_ms", "base62", "from_base62", "min_id", "max_id", "refuse"];

/// A layout's functions for one dialect.
struct Script<'a> {
    dialect: &'static Dialect,
    layout: Layout,
    schema: Option<&'a str>,
    prefix: &'a str,
}

/// Returns the script for a dialect and a layout of the command line.
///
/// # Errors
/// `OUT_OF_RANGE` for an unknown dialect; those of the layout; `UNKNOWN_KEY` for a spec with more than a layout; `SPEC` for an invalid
/// schema or prefix.
pub(super) fn script(dialect: &str, layout: &str, schema: Option<&str>, prefix: &str) -> Result<String> {
    let dialect = find(dialect)?;
    let layout = match (parse_layout(layout), systems::layout_of(layout)) {
        (Err(_), Ok((_, Some(system)))) if system.order().is_some() => {
            let order = system.order().unwrap_or_default();
            let why = "but the functions need whole milliseconds or seconds at the beginning: use frazil decode and frazil range";
            return Err(spec_error(format!("the IDs of {} are {order}, {why}", system.name)));
        }
        (Err(_), Ok((layout, Some(_)))) => layout,
        (parsed, _) => parsed?,
    };
    if let Some(schema) = schema {
        check_schema(dialect, schema)?;
    }
    check_prefix(prefix)?;
    if let Some(field) = layout.node_fields().iter().find(|field| TAKEN.contains(&field.name())) {
        let name = field.name();
        return Err(spec_error(format!(
            "the field {name} would have the name of another function, {prefix}{name}: rename it in the layout that you pass here, \
             which changes no ID"
        )));
    }
    Ok(Script { dialect, layout, schema, prefix }.text())
}

fn find(name: &str) -> Result<&'static Dialect> {
    DIALECTS.iter().find(|dialect| dialect.name == name).ok_or_else(|| {
        let names: Vec<_> = DIALECTS.iter().map(|dialect| dialect.name).collect();
        let near = did_you_mean(name, names.iter().copied());
        Error::new(ErrorKind::OutOfRange, format!("the dialect {}{near} is none of: {}", shown(name), names.join(", ")))
    })
}

/// Parses a preset's name, the fields of a layout, or a spec with only a layout.
pub(super) fn parse_layout(text: &str) -> Result<Layout> {
    if !text.contains('=') {
        return Layout::parse(text);
    }
    let spec = Spec::parse(text)?;
    check_keys_among(&spec, &["layout", "epoch"]).map_err(|error| {
        let why = "this command needs only the layout: use a preset's name or \"time:41@1ms ...\"";
        Error::new(error.kind(), format!("{error}; {why}"))
    })?;
    Ok(of_layout(text)?.0)
}

fn check_prefix(prefix: &str) -> Result<()> {
    let good = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    if prefix.len() <= LONGEST_PREFIX && prefix.bytes().all(good) && prefix.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Ok(());
    }
    Err(spec_error(format!("--prefix={} is not a prefix: a-z, then a-z, 0-9 and _, at most {LONGEST_PREFIX}", shown(prefix))))
}

fn check_schema(dialect: &Dialect, schema: &str) -> Result<()> {
    let Dialect { name, schema_names, .. } = dialect;
    if *schema_names == 0 {
        return Err(spec_error(format!(
            "--schema={} cannot be used with {name}, whose functions have no schema: remove it",
            shown(schema)
        )));
    }
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_name = |name: &str| {
        name.len() <= LONGEST_SCHEMA && name.chars().all(good) && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    };
    if schema.split('.').count() <= *schema_names && schema.split('.').all(is_name) {
        return Ok(());
    }
    let several = if *schema_names == 1 { "" } else { "; it may begin with one more such name and a dot" };
    let allowed = format!("a-z, A-Z or _, then these, 0-9 and -, at most {LONGEST_SCHEMA}{several}");
    Err(spec_error(format!("--schema={} is not a schema's name for {name}: {allowed}", shown(schema))))
}

impl Script<'_> {
    fn functions(&self) -> impl Iterator<Item = Function<'_>> {
        let fields = fields(&self.layout).into_iter().map(Function::Field);
        [Time, UnixMs].into_iter().chain(fields).chain([Base62, FromBase62, MinId, MaxId])
    }

    fn text(&self) -> String {
        let mut text = self.head();
        text.push_str(&(self.dialect.begin)(self));
        for function in self.functions() {
            text.push_str(&format!("\n-- {}\n{}\n", function.about(), (self.dialect.define)(self, function)));
        }
        text.push_str(&(self.dialect.end)(self));
        text
    }

    fn head(&self) -> String {
        let (version, title) = (env!("CARGO_PKG_VERSION"), self.dialect.title);
        let mut head = format!("-- frazil {version}: {title}\n-- Layout: {}\n-- Made by: {}\n", self.layout, self.command());
        for note in self.dialect.notes {
            head.push_str(&format!("-- {note}\n"));
        }
        head
    }

    /// The command that prints this script.
    fn command(&self) -> String {
        let line = self.layout.to_string();
        let layout =
            PRESETS.iter().find(|preset| preset.layout == line).map_or_else(|| format!("'{line}'"), |preset| preset.name.to_owned());
        let schema = self.schema.map_or_else(String::new, |schema| format!(" --schema {schema}"));
        let prefix = if self.prefix == DEFAULT_PREFIX { String::new() } else { format!(" --prefix {}", self.prefix) };
        format!("frazil sql {} {layout}{schema}{prefix}", self.dialect.name)
    }

    /// The quoted name of a function, with its schema.
    fn name(&self, function: &str) -> String {
        let quote = self.dialect.quote;
        let name = format!("{}{function}", self.prefix);
        let parts = self.schema.iter().flat_map(|schema| schema.split('.')).chain([name.as_str()]);
        parts.map(|part| format!("{quote}{part}{quote}")).collect::<Vec<_>>().join(".")
    }

    /// The largest ID whose time a date can represent.
    fn last_id(&self) -> u64 {
        // 128 bits avoid an overflow for layouts of 63 bits.
        (((u128::from(self.layout.last_tick()) + 1) << self.layout.time_shift()) - 1) as u64
    }

    /// The number of IDs of a tick.
    fn ids_in_a_tick(&self) -> u64 {
        1 << self.layout.time_shift()
    }

    /// The last millisecond that can be stamped.
    fn last_ms(&self) -> i64 {
        self.layout.expires_at_ms().map_or(LAST_MS, |end| end - 1)
    }

    /// The summand that makes the smallest ID of a tick the largest for `MaxId`; empty for `MinId`.
    fn to_the_end(&self, function: Function<'_>) -> String {
        if matches!(function, MaxId) { plus(self.ids_in_a_tick() as i64 - 1) } else { String::new() }
    }

    fn no_id(&self) -> Refusal {
        Refusal { code: ErrorKind::IdInvalid, why: format!("is not an ID of this layout: 0 to {}", self.last_id()) }
    }

    fn before_epoch(&self) -> Refusal {
        Refusal { code: ErrorKind::BeforeEpoch, why: format!("is before the epoch of the layout: {} UTC", instant(self.layout.epoch_ms())) }
    }

    fn expired(&self) -> Refusal {
        let code = if self.layout.expires_at_ms().is_some() { ErrorKind::LayoutExpired } else { ErrorKind::OutOfRange };
        Refusal { code, why: format!("is after the last instant of the layout: {} UTC", instant(self.last_ms())) }
    }
}

/// The text of a function's refusal, after the value.
struct Refusal {
    code: ErrorKind,
    why: String,
}

impl Refusal {
    /// A number that is not an ID of any layout.
    fn number() -> Self {
        Refusal { code: ErrorKind::IdInvalid, why: format!("is not an ID: 0 to {}", i64::MAX) }
    }

    /// A text that is not an ID in base62.
    fn text() -> Self {
        let (width, last) = (base62::WIDTH, base62::LAST);
        Refusal { code: ErrorKind::IdInvalid, why: format!("is not an ID in base62: {width} characters of 0-9A-Za-z, up to {last}") }
    }
}

/// Formats Unix milliseconds as an instant that every database reads.
fn instant(unix_ms: i64) -> String {
    // A civil date, because jiff's Timestamp ends a day before the end of the year 9999.
    let instant = date(1970, 1, 1).at(0, 0, 0, 0) + SignedDuration::from_millis(unix_ms);
    instant.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string()
}

/// Formats a summand as ` + 5`, ` - 5`, or nothing, because two minus signs would begin a comment.
fn plus(number: i64) -> String {
    match number {
        0 => String::new(),
        1.. => format!(" + {number}"),
        _ => format!(" - {}", number.unsigned_abs()),
    }
}
