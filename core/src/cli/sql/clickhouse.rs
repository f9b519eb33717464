//! ClickHouse: lambdas without types, so that each checks what it is given.

use super::{Base62, Dialect, FromBase62, Function, MaxId, MinId, Refusal, Script, Time, UnixMs, base62, plus};

pub(super) const DIALECT: Dialect = Dialect {
    name: "clickhouse",
    title: "functions for ClickHouse 23.3 and later",
    schema_names: 0,
    quote: '`',
    notes: &["Before ClickHouse 26 a DateTime64 holds the years 1900 to 2299 only; unix_ms has no such limit."],
    begin: |_| String::new(),
    end: |_| String::new(),
    define,
};

/// What is thrown is a constant, and can show no value; where nothing is thrown it is 0.
fn throw_if(condition: &str, Refusal { code, why }: Refusal) -> String {
    format!("throwIf({condition}, 'frazil: {}: the argument {}')", code.name(), why)
}

fn define(script: &Script<'_>, function: Function<'_>) -> String {
    // What is compared is the argument as it came: a UInt64 above 2^63 is no negative Int64. bitOr refuses whatever is no integer.
    let checked = |last: u64, refusal: Refusal| {
        let thrown = throw_if(&format!("(id < 0) OR (id > {last})"), refusal);
        format!("(toInt64(bitOr(id, 0)) + {thrown})")
    };
    let id = checked(script.last_id(), script.no_id());
    let unix_ms =
        format!("bitShiftRight({id}, {}) * {}{}", script.layout.time_shift(), script.layout.tick_ms(), plus(script.layout.epoch_ms()));
    let (parameter, body) = match function {
        Time => ("id", format!("fromUnixTimestamp64Milli(toInt64({unix_ms}), 'UTC')")),
        UnixMs => ("id", format!("toInt64({unix_ms})")),
        Function::Field(field) => ("id", format!("toInt64(bitAnd(bitShiftRight({id}, {}), {}))", field.shift(), field.max())),
        Base62 => {
            let id = checked(i64::MAX as u64, Refusal::negative());
            let digits = base62::powers().map(|power| format!("substring('{}', intDiv({id}, {power}) % 62 + 1, 1)", base62::DIGITS));
            ("id", format!("concat({})", digits.collect::<Vec<_>>().join(",\n  ")))
        }
        FromBase62 => {
            let digits = base62::powers().enumerate().map(|(place, power)| {
                format!("(toInt64(position('{}', substring(digits, {}, 1))) - 1) * {power}", base62::DIGITS, place + 1)
            });
            let bad = format!("NOT match(digits, '^[0-9A-Za-z]{{11}}$') OR length(digits) != 11 OR digits > '{}'", base62::LAST);
            let thrown = throw_if(&bad, Refusal::text());
            ("digits", format!("{}\n  + {thrown}", digits.collect::<Vec<_>>().join("\n  + ")))
        }
        MinId | MaxId => {
            let (epoch, last) = (script.layout.epoch_ms(), script.last_ms());
            // Neither a text nor a number: of Date, which has no zone, say toDateTime64(day, 3, 'UTC').
            let us = "toUnixTimestamp64Micro(toDateTime64(toTimezone(instant, 'UTC'), 6, 'UTC'))";
            let tick = format!("intDiv({us}{}, {})", plus(-epoch * 1000), script.layout.tick_ms() * 1000);
            let body = format!(
                "bitShiftLeft({tick}, {}){}\n  + {}\n  + {}",
                script.layout.time_shift(),
                script.to_the_end(function),
                throw_if(&format!("{us} < {}", epoch * 1000), script.before_epoch()),
                throw_if(&format!("{us} > {}", last * 1000 + 999), script.expired()),
            );
            ("instant", body)
        }
    };
    format!("CREATE OR REPLACE FUNCTION {} AS ({parameter}) ->\n{body};", script.name(function.name()))
}
