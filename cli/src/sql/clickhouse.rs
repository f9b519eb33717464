//! ClickHouse: lambdas without types, so that each checks what it is given.
//!
//! What is refused is parsed as a number, which it is not. `throwIf` shows no value, and a call with constants that contains it is no constant, so
//! that no primary key would serve it. In the expression of a key both branches of an `if` are worked out for every row: hence the '0'. And a text
//! that may be NULL and is no number is NULL, and no error: hence ifNull.

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

/// A value where the argument is good or NULL, and else an error.
fn checked(good: &str, value: &str, refused: &str) -> String {
    format!("if(ifNull({good}, 1), {value},\n  {})", refuse(good, refused))
}

fn refuse(good: &str, refused: &str) -> String {
    format!("toInt64(if(ifNull({good}, 1), '0', {refused}))")
}

fn define(script: &Script<'_>, function: Function<'_>) -> String {
    // What is compared is the argument as it came: a UInt64 above 2^63 is no negative Int64.
    let is_id = |last: u64| format!("(id >= 0) AND (id <= {last})");
    let of_id = |number: &str| checked(&is_id(script.last_id()), number, &text(script.no_id(), "toString(id)"));
    // bitOr refuses whatever is no integer.
    let id = "toInt64(bitOr(id, 0))";
    let unix_ms =
        format!("bitShiftRight({id}, {}) * {}{}", script.layout.time_shift(), script.layout.tick_ms(), plus(script.layout.epoch_ms()));
    let (parameter, body) = match function {
        Time => ("id", format!("fromUnixTimestamp64Milli({}, 'UTC')", of_id(&unix_ms))),
        UnixMs => ("id", of_id(&unix_ms)),
        Function::Field(field) => ("id", of_id(&format!("toInt64(bitAnd(bitShiftRight({id}, {}), {}))", field.shift(), field.max()))),
        Base62 => {
            let digits = base62::powers().map(|power| format!("substring('{}', intDiv({id}, {power}) % 62 + 1, 1)", base62::DIGITS));
            let (good, refused) = (is_id(i64::MAX as u64), text(Refusal::number(), "toString(id)"));
            let value = digits.collect::<Vec<_>>().join(",\n    ");
            ("id", format!("if(ifNull({good}, 1), concat({value}),\n  toString({}))", refuse(&good, &refused)))
        }
        FromBase62 => {
            let digits = base62::powers().enumerate().map(|(place, power)| {
                format!("(toInt64(position('{}', substring(digits, {}, 1))) - 1) * {power}", base62::DIGITS, place + 1)
            });
            let value = digits.collect::<Vec<_>>().join("\n    + ");
            let good = format!("match(digits, '^[0-9A-Za-z]{{11}}$') AND (length(digits) = 11) AND (digits <= '{}')", base62::LAST);
            ("digits", checked(&good, &value, &text(Refusal::text(), "substring(digits, 1, 60)")))
        }
        MinId | MaxId => {
            let (epoch, last) = (script.layout.epoch_ms(), script.last_ms());
            // Neither a text nor a number: toTimezone takes a DateTime or a DateTime64.
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
