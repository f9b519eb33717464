//! DuckDB: macros with typed parameters, which reject values of other types.

use super::{Base62, Dialect, FromBase62, Function, MaxId, MinId, Refusal, Script, Time, UnixMs, base62, instant, plus};
use frazil::admin::LayoutBits;

pub(super) const DIALECT: Dialect = Dialect {
    name: "duckdb",
    title: "macros for DuckDB 1.4 and later",
    schema_names: 2,
    quote: '"',
    notes: &[],
    begin: |_| String::new(),
    end: |_| String::new(),
    define,
};

/// Raises an error by a cast of the message to a number. `error` has a side effect, which the expression of an index may not have.
fn refuse(Refusal { code, why }: Refusal, value: &str) -> String {
    format!("('frazil: {}: ' || {value} || ' {why}')::BIGINT", code.name())
}

fn define(script: &Script<'_>, function: Function<'_>) -> String {
    let of_id =
        |value: &str| format!("CASE WHEN id BETWEEN 0 AND {} THEN {value}\n  ELSE {} END", script.last_id(), refuse(script.no_id(), "id"));
    let unix_ms = format!("(id >> {}) * {}{}", script.layout.time_shift(), script.layout.tick_ms(), plus(script.layout.epoch_ms()));
    let (parameter, body) = match function {
        Time => ("id BIGINT", format!("make_timestamp(({}) * 1000) AT TIME ZONE 'UTC'", of_id(&unix_ms))),
        UnixMs => ("id BIGINT", of_id(&unix_ms)),
        Function::Field(field) => ("id BIGINT", of_id(&format!("(id >> {}) & {}", field.shift(), field.max()))),
        Base62 => {
            let value = base62::each("substr('DIGITS', id // POWER % 62 + 1, 1)", "\n    || ");
            ("id BIGINT", format!("CASE WHEN id >= 0 THEN {value}\n  ELSE {} END", refuse(Refusal::number(), "id") + "::VARCHAR"))
        }
        FromBase62 => {
            let value = base62::each("(strpos('DIGITS', substr(digits COLLATE \"C\", PLACE, 1)) - 1) * POWER", "\n    + ");
            let good = format!("regexp_full_match(digits, '[0-9A-Za-z]{{11}}') AND digits COLLATE \"C\" <= '{}'", base62::LAST);
            ("digits VARCHAR", format!("CASE WHEN {good} THEN {value}\n  ELSE {} END", refuse(Refusal::text(), "digits[:60]")))
        }
        MinId | MaxId => {
            let (epoch, last) = (script.layout.epoch_ms(), script.last_ms());
            let (first, end) = (format!("TIMESTAMPTZ '{}+00'", instant(epoch)), format!("TIMESTAMPTZ '{}999+00'", instant(last)));
            let tick = format!("(epoch_us(instant){}) // {}", plus(-epoch * 1000), script.layout.tick_ms() * 1000);
            let body = format!(
                "CASE WHEN instant < {first} THEN {}\n  WHEN instant > {end} THEN {}\n  ELSE ({tick} << {}){} END",
                refuse(script.before_epoch(), "instant"),
                refuse(script.expired(), "instant"),
                script.layout.time_shift(),
                script.to_the_end(function),
            );
            ("instant TIMESTAMPTZ", body)
        }
    };
    format!("CREATE OR REPLACE MACRO {}({parameter}) AS\n{body};", script.name(function.name()))
}
