//! SQLite, in which SQL cannot define functions: expressions, each in a query that shows its parameters.

use super::{Base62, Dialect, FromBase62, Function, MaxId, MinId, Refusal, Script, Time, UnixMs, base62, plus};
use frazil::admin::LayoutBits;

pub(super) const DIALECT: Dialect = Dialect {
    name: "sqlite",
    title: "expressions for SQLite 3.38 and later, in which SQL cannot define functions",
    schema_names: 0,
    quote: '"',
    notes: &[
        "Each query below runs with a parameter. For a view, an index or a generated column, copy the expression between SELECT and AS,",
        "where id, digits and unix_ms are columns. Instants are Unix milliseconds: unixepoch('2025-01-01T00:00:00Z') * 1000.",
    ],
    begin: |_| String::new(),
    end: |_| String::new(),
    define,
};

/// Raises an error by an invalid path into JSON, which quotes its text. RAISE works only in triggers.
fn refuse(Refusal { code, why }: Refusal, value: &str) -> String {
    format!("json_extract('{{}}', 'frazil: {}: ' || {value} || ' {why}')", code.name())
}

/// Accepts only integers, because a REAL may be rounded, and operators read a prefix of a text as a number.
fn checked(input: &str, good: &str, value: &str, refused: &str) -> String {
    format!("CASE WHEN typeof({input}) = 'integer' AND {good} THEN {value}\n  WHEN {input} IS NOT NULL THEN {refused} END")
}

fn define(script: &Script<'_>, function: Function<'_>) -> String {
    let of_id = |value: &str| checked("id", &format!("id BETWEEN 0 AND {}", script.last_id()), value, &refuse(script.no_id(), "id"));
    let unix_ms = format!("(id >> {}) * {}{}", script.layout.time_shift(), script.layout.tick_ms(), plus(script.layout.epoch_ms()));
    let (input, value) = match function {
        // Exact to the millisecond in the years 1 to 9999: the error of the double is less than half a millisecond.
        Time => ("id", of_id(&format!("strftime('%Y-%m-%d %H:%M:%f', ({unix_ms}) / 1000.0, 'unixepoch')"))),
        UnixMs => ("id", of_id(&unix_ms)),
        Function::Field(field) => ("id", of_id(&format!("id >> {} & {}", field.shift(), field.max()))),
        Base62 => {
            let value = base62::each("substr('DIGITS', id / POWER % 62 + 1, 1)", "\n    || ");
            ("id", checked("id", "id >= 0", &value, &refuse(Refusal::number(), "id")))
        }
        FromBase62 => {
            let value = base62::each("(instr('DIGITS', substr(digits, PLACE, 1)) - 1) * POWER", "\n    + ");
            let good = format!(
                "typeof(digits) = 'text' AND length(CAST(digits AS BLOB)) = 11 AND digits NOT GLOB '*[^0-9A-Za-z]*' \
                 AND digits COLLATE BINARY <= '{}'",
                base62::LAST
            );
            let refused = refuse(Refusal::text(), "quote(digits)");
            ("digits", format!("CASE WHEN {good} THEN {value}\n  WHEN digits IS NOT NULL THEN {refused} END"))
        }
        MinId | MaxId => {
            let (epoch, last) = (script.layout.epoch_ms(), script.last_ms());
            let id = format!(
                "((unix_ms{}) / {} << {}){}",
                plus(-epoch),
                script.layout.tick_ms(),
                script.layout.time_shift(),
                script.to_the_end(function)
            );
            let value = format!(
                "CASE WHEN typeof(unix_ms) = 'integer' AND unix_ms BETWEEN {epoch} AND {last} THEN {id}\n  \
                 WHEN typeof(unix_ms) = 'integer' AND unix_ms < {epoch} THEN {}\n  \
                 WHEN typeof(unix_ms) = 'integer' THEN {}\n  \
                 WHEN unix_ms IS NOT NULL THEN json_extract('{{}}', 'frazil: WRONG_TYPE: ' || quote(unix_ms) || ' is not an integer: use Unix milliseconds') END",
                refuse(script.before_epoch(), "unix_ms"),
                refuse(script.expired(), "unix_ms"),
            );
            ("unix_ms", value)
        }
    };
    format!("SELECT {value}\nAS {} FROM (SELECT :{input} AS {input});", script.name(function.name()))
}
