//! Functions for databases that read a layout's IDs and select them by time: one script for each dialect of SQL.

mod base62;
mod bigquery;
mod clickhouse;
mod duckdb;
mod mysql;
mod postgresql;
mod sqlite;

use super::inspect::systems;
use frazil::admin::{LAST_MS, LayoutBits, PRESETS, check_keys_among, of_layout, shown, spec_error};
use frazil::bindings::did_you_mean;
use frazil::{Error, ErrorKind, Field, Layout, Result, Spec};
use jiff::SignedDuration;
use jiff::civil::date;

/// With the longest field's name it is no longer than any of the databases allows.
const LONGEST_PREFIX: usize = 20;
const LONGEST_SCHEMA: usize = 63;
pub(super) const DEFAULT_PREFIX: &str = "frazil_";

/// The dialect of a database.
struct Dialect {
    name: &'static str,
    /// The purpose of the script, as its head states it.
    title: &'static str,
    /// The number of names, with dots between them, that a schema's name may have.
    schema_names: usize,
    quote: char,
    /// The other lines of its head.
    notes: &'static [&'static str],
    /// The statements before the functions, and after them.
    begin: fn(&Script<'_>) -> String,
    end: fn(&Script<'_>) -> String,
    define: fn(&Script<'_>, Function<'_>) -> String,
}

static DIALECTS: [Dialect; 7] =
    [postgresql::DIALECT, mysql::MARIADB, mysql::MYSQL, sqlite::DIALECT, duckdb::DIALECT, clickhouse::DIALECT, bigquery::DIALECT];

/// The definitions, in the order of the script.
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
    /// The name behind the prefix.
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
            UnixMs => "The same in Unix milliseconds.".to_owned(),
            Function::Field(field) => format!("The field {}, 0 to {}.", field.name(), field.max()),
            Base62 => "The ID as 11 characters of 0-9A-Za-z, which sort like the numbers where text is compared by its bytes.".to_owned(),
            FromBase62 => "The ID that such a text stands for.".to_owned(),
            MinId => "The smallest ID of the tick that holds an instant: WHERE id >= ...".to_owned(),
            MaxId => "The largest ID of the tick that holds an instant: WHERE id <= ...".to_owned(),
        }
    }
}

/// Names that no field may have: the functions', and those of what the functions use.
const TAKEN: [&str; 6] = ["unix_ms", "base62", "from_base62", "min_id", "max_id", "refuse"];

/// A layout's functions for one dialect.
struct Script<'a> {
    dialect: &'static Dialect,
    layout: Layout,
    schema: Option<&'a str>,
    prefix: &'a str,
}

/// The script for a dialect and a layout, each as the command line says it.
///
/// # Errors
/// `OUT_OF_RANGE` for a dialect that is not there; what the layout says; `UNKNOWN_KEY` for a spec that holds more than a layout; `SPEC` for a
/// schema or a prefix that cannot be.
pub(super) fn script(dialect: &str, layout: &str, schema: Option<&str>, prefix: &str) -> Result<String> {
    let dialect = find(dialect)?;
    let layout = match (parse_layout(layout), systems::layout_of(layout)) {
        (Err(_), Ok((_, Some(system)))) if system.order().is_some() => {
            let order = system.order().unwrap_or_default();
            let why = "and the functions read whole milliseconds or seconds at the beginning: frazil decode and frazil range read them";
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
            "the field {name} would have the name of another function, {prefix}{name}: call it something else in the layout that is given here, \
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

/// A preset's name, a layout's fields, or what a spec says of them.
pub(super) fn parse_layout(text: &str) -> Result<Layout> {
    if !text.contains('=') {
        return Layout::parse(text);
    }
    let spec = Spec::parse(text)?;
    check_keys_among(&spec, &["layout", "epoch"]).map_err(|error| {
        let why = "only the layout is meant here: give a preset's name or \"time:41@1ms ...\"";
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
        return Err(spec_error(format!("--schema={} has no meaning for {name}, whose functions lie in no schema", shown(schema))));
    }
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_name = |name: &str| {
        name.len() <= LONGEST_SCHEMA && name.chars().all(good) && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    };
    if schema.split('.').count() <= *schema_names && schema.split('.').all(is_name) {
        return Ok(());
    }
    let several = if *schema_names == 1 { "" } else { "; one more such name and a dot may stand before it" };
    let allowed = format!("a-z, A-Z or _, then these, 0-9 and -, at most {LONGEST_SCHEMA}{several}");
    Err(spec_error(format!("--schema={} is not a schema's name for {name}: {allowed}", shown(schema))))
}

impl Script<'_> {
    fn functions(&self) -> impl Iterator<Item = Function<'_>> {
        let mut fields: Vec<_> = self.layout.node_fields().iter().chain([self.layout.sequence()]).collect();
        fields.sort_by_key(|field| std::cmp::Reverse(field.shift()));
        let fields = fields.into_iter().map(Function::Field);
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

    /// The command that makes the same script.
    fn command(&self) -> String {
        let line = self.layout.to_string();
        let layout =
            PRESETS.iter().find(|preset| preset.layout == line).map_or_else(|| format!("'{line}'"), |preset| preset.name.to_owned());
        let schema = self.schema.map_or_else(String::new, |schema| format!(" --schema {schema}"));
        let prefix = if self.prefix == DEFAULT_PREFIX { String::new() } else { format!(" --prefix {}", self.prefix) };
        format!("frazil sql {} {layout}{schema}{prefix}", self.dialect.name)
    }

    /// A function's name, quoted, in its schema.
    fn name(&self, function: &str) -> String {
        let quote = self.dialect.quote;
        let name = format!("{}{function}", self.prefix);
        let parts = self.schema.iter().flat_map(|schema| schema.split('.')).chain([name.as_str()]);
        parts.map(|part| format!("{quote}{part}{quote}")).collect::<Vec<_>>().join(".")
    }

    /// The largest ID with a time that a date can hold.
    fn last_id(&self) -> u64 {
        // In 128 bits: of a layout of 63 bits it is 2^63 - 1.
        (((u128::from(self.layout.last_tick()) + 1) << self.layout.time_shift()) - 1) as u64
    }

    /// The IDs of a tick.
    fn ids_in_a_tick(&self) -> u64 {
        1 << self.layout.time_shift()
    }

    /// The last millisecond that can be stamped.
    fn last_ms(&self) -> i64 {
        self.layout.expires_at_ms().map_or(LAST_MS, |end| end - 1)
    }

    /// The summand to the smallest ID of a tick: nothing, or the one that makes it the largest.
    fn to_the_end(&self, function: Function<'_>) -> String {
        if matches!(function, MaxId) { plus(self.ids_in_a_tick() as i64 - 1) } else { String::new() }
    }

    fn no_id(&self) -> Refusal {
        Refusal { code: ErrorKind::IdInvalid, why: format!("is no ID of this layout: 0 to {}", self.last_id()) }
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
    /// A number that is no ID of any layout.
    fn number() -> Self {
        Refusal { code: ErrorKind::IdInvalid, why: format!("is no ID: 0 to {}", i64::MAX) }
    }

    /// A text that stands for no ID.
    fn text() -> Self {
        let (width, last) = (base62::WIDTH, base62::LAST);
        Refusal { code: ErrorKind::IdInvalid, why: format!("is no ID in base62: {width} characters of 0-9A-Za-z, up to {last}") }
    }
}

/// An instant of Unix milliseconds as every database reads it.
fn instant(unix_ms: i64) -> String {
    // A date's type: a Timestamp of jiff ends a day before the year 9999 does.
    let instant = date(1970, 1, 1).at(0, 0, 0, 0) + SignedDuration::from_millis(unix_ms);
    instant.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string()
}

/// ` + 5`, ` - 5`, or nothing: two minus signs would begin a comment.
fn plus(number: i64) -> String {
    match number {
        0 => String::new(),
        1.. => format!(" + {number}"),
        _ => format!(" - {}", number.unsigned_abs()),
    }
}
