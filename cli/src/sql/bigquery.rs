//! BigQuery: SQL functions of one expression.

use super::{Base62, Dialect, FromBase62, Function, MaxId, MinId, Refusal, Script, Time, UnixMs, base62, instant, plus};
use frazil::admin::LayoutBits;

pub(super) const DIALECT: Dialect = Dialect {
    name: "bigquery",
    title: "functions for BigQuery",
    schema_names: 2,
    quote: '`',
    notes: &["Not run on BigQuery by frazil's own tests: ZetaSQL, Google's implementation of its language, ran the functions."],
    begin: |_| String::new(),
    end: |_| String::new(),
    define,
};

fn refuse(Refusal { code, why }: Refusal, value: &str) -> String {
    format!("ERROR(CONCAT('frazil: {}: ', {value}, \" {why}\"))", code.name())
}

fn define(script: &Script<'_>, function: Function<'_>) -> String {
    let unless_null = |input: &str, good: &str, value: &str, refused: &str| {
        format!("CASE WHEN {good} THEN {value}\n  WHEN {input} IS NOT NULL THEN {refused} END")
    };
    let id_text = "CAST(id AS STRING)";
    let of_id = |value: &str| unless_null("id", &format!("id BETWEEN 0 AND {}", script.last_id()), value, &refuse(script.no_id(), id_text));
    let unix_ms = format!("(id >> {}) * {}{}", script.layout.time_shift(), script.layout.tick_ms(), plus(script.layout.epoch_ms()));
    let (parameter, result, body) = match function {
        Time => ("id INT64", "TIMESTAMP", of_id(&format!("TIMESTAMP_MILLIS({unix_ms})"))),
        UnixMs => ("id INT64", "INT64", of_id(&unix_ms)),
        Function::Field(field) => ("id INT64", "INT64", of_id(&format!("(id >> {}) & {}", field.shift(), field.max()))),
        Base62 => {
            let value = format!("CONCAT({})", base62::each("SUBSTR('DIGITS', MOD(DIV(id, POWER), 62) + 1, 1)", ",\n    "));
            ("id INT64", "STRING", unless_null("id", "id >= 0", &value, &refuse(Refusal::number(), id_text)))
        }
        FromBase62 => {
            let value = base62::each("(STRPOS('DIGITS', SUBSTR(digits, PLACE, 1)) - 1) * POWER", "\n    + ");
            let good = format!("REGEXP_CONTAINS(digits, '^[0-9A-Za-z]{{11}}$') AND digits <= '{}'", base62::LAST);
            let refused = refuse(Refusal::text(), "FORMAT('%T', SUBSTR(digits, 1, 60))");
            ("digits STRING", "INT64", unless_null("digits", &good, &value, &refused))
        }
        MinId | MaxId => {
            let (epoch, last) = (script.layout.epoch_ms(), script.last_ms());
            let (first, end) = (format!("TIMESTAMP '{}+00'", instant(epoch)), format!("TIMESTAMP '{}999+00'", instant(last)));
            let tick = format!("DIV(UNIX_MICROS(instant){}, {})", plus(-epoch * 1000), script.layout.tick_ms() * 1000);
            let given = "FORMAT('%t', instant)";
            let body = format!(
                "CASE WHEN instant < {first} THEN {}\n  WHEN instant > {end} THEN {}\n  ELSE ({tick} << {}){} END",
                refuse(script.before_epoch(), given),
                refuse(script.expired(), given),
                script.layout.time_shift(),
                script.to_the_end(function),
            );
            ("instant TIMESTAMP", "INT64", body)
        }
    };
    format!("CREATE OR REPLACE FUNCTION {}({parameter}) RETURNS {result} AS (\n{body});", script.name(function.name()))
}
