//! ClickHouse: lambdas without types, so each function checks its argument.
//!
//! To raise an error that shows the value, a function parses its message as a number. `throwIf` shows no value, and a call that contains it
//! is never constant, so no primary key could be used. A key's expression evaluates both branches of an `if` for every row, so good values
//! parse a '0'. Parsing a nullable text that is not a number gives NULL instead of an error, so `ifNull` makes the text not nullable.

use super::{Base62, Dialect, FromBase62, Function, MaxId, MinId, Refusal, Script, Time, UnixMs, base62, plus};
use frazil::admin::LayoutBits;

pub(super) const DIALECT: Dialect = Dialect {
    name: "clickhouse",
    title: "functions for ClickHouse 24.3 and later",
    schema_names: 0,
    quote: '`',
    notes: &["In ClickHouse before 26 a DateTime64 holds the years 1900 to 2299 only, where unix_ms has no such limit."],
    begin: |_| String::new(),
    end: |_| String::new(),
    define,
};

fn text(Refusal { code, why }: Refusal, value: &str) -> String {
    format!("concat('frazil: {}: ', ifNull({value}, ''), ' {why}')", code.name())
}

/// The value if the argument is good or NULL, otherwise an error.
fn checked(good: &str, value: &str, refused: &str) -> String {
    format!("if(ifNull({good}, 1), {value},\n  {})", refuse(good, refused))
}

fn refuse(good: &str, refused: &str) -> String {
    format!("toInt64(if(ifNull({good}, 1), '0', {refused}))")
}

fn define(script: &Script<'_>, function: Function<'_>) -> String {
    // Compares the argument without a cast, because a UInt64 above 2^63 must not become a negative Int64.
    let is_id = |last: u64| format!("(id >= 0) AND (id <= {last})");
    let of_id = |number: &str| checked(&is_id(script.last_id()), number, &text(script.no_id(), "toString(id)"));
    // bitOr rejects values that are not integers.
    let id = "toInt64(bitOr(id, 0))";
    let unix_ms =
        format!("bitShiftRight({id}, {}) * {}{}", script.layout.time_shift(), script.layout.tick_ms(), plus(script.layout.epoch_ms()));
    let (parameter, body) = match function {
        Time => ("id", format!("fromUnixTimestamp64Milli({}, 'UTC')", of_id(&unix_ms))),
        UnixMs => ("id", of_id(&unix_ms)),
        Function::Field(field) => ("id", of_id(&format!("toInt64(bitAnd(bitShiftRight({id}, {}), {}))", field.shift(), field.max()))),
        Base62 => {
            let (good, refused) = (is_id(i64::MAX as u64), text(Refusal::number(), "toString(id)"));
            let value = base62::each(&format!("substring('DIGITS', intDiv({id}, POWER) % 62 + 1, 1)"), ",\n    ");
            ("id", format!("if(ifNull({good}, 1), concat({value}),\n  toString({}))", refuse(&good, &refused)))
        }
        FromBase62 => {
            let value = base62::each("(toInt64(position('DIGITS', substring(digits, PLACE, 1))) - 1) * POWER", "\n    + ");
            let good = format!("match(digits, '^[0-9A-Za-z]{{11}}$') AND (length(digits) = 11) AND (digits <= '{}')", base62::LAST);
            ("digits", checked(&good, &value, &text(Refusal::text(), "substring(digits, 1, 60)")))
        }
        MinId | MaxId => {
            let (epoch, last) = (script.layout.epoch_ms(), script.last_ms());
            // toTimezone rejects texts and numbers, because it needs a DateTime or a DateTime64.
            let utc = "toTimezone(instant, 'UTC')";
            let us = format!("toUnixTimestamp64Micro(toDateTime64({utc}, 6, 'UTC'))");
            let tick = format!("intDiv({us}{}, {})", plus(-epoch * 1000), script.layout.tick_ms() * 1000);
            let id = format!("bitShiftLeft({tick}, {}){}", script.layout.time_shift(), script.to_the_end(function));
            let shown = format!("toString({utc})");
            let (first, end) = (epoch * 1000, last * 1000 + 999);
            let [before, expired] = [script.before_epoch(), script.expired()].map(|refusal| text(refusal, &shown));
            let refused = format!("if(ifNull({us} < {first}, 0), {before},\n  {expired})");
            ("instant", checked(&format!("({us} >= {first}) AND ({us} <= {end})"), &id, &refused))
        }
    };
    format!("CREATE OR REPLACE FUNCTION {} AS ({parameter}) ->\n{body};", script.name(function.name()))
}
