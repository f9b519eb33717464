//! PostgreSQL: functions that the planner inlines into the query, so that it can use indexes and partitions.
//!
//! Their bodies are parsed when they are created, so a later `search_path` does not change their meaning. Types are exact, so the
//! `search_path` at their creation does not either.

use super::{Base62, Dialect, FromBase62, Function, MaxId, MinId, Refusal, Script, Time, UnixMs, base62, instant, plus};
use frazil::admin::LayoutBits;

pub(super) const DIALECT: Dialect = Dialect {
    name: "postgresql",
    title: "functions for PostgreSQL 14 and later",
    schema_names: 1,
    quote: '"',
    notes: &[],
    begin,
    end: |_| String::new(),
    define,
};

/// Defines the function that raises errors, because expressions cannot.
fn begin(script: &Script<'_>) -> String {
    let name = script.name("refuse");
    format!(
        "\n-- Raises the errors of the other functions.\n\
         CREATE OR REPLACE FUNCTION {name}(why text) RETURNS bigint\n\
         LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 1\n\
         AS $$ BEGIN RAISE EXCEPTION 'frazil: %', why USING ERRCODE = 'invalid_parameter_value'; END $$;\n"
    )
}

fn define(script: &Script<'_>, function: Function<'_>) -> String {
    let refuse = |Refusal { code, why }: Refusal, what: &str, value: &str| {
        format!("{}('{}: {what}' || {value} || ' {why}')", script.name("refuse"), code.name())
    };
    let no_id = refuse(script.no_id(), "", "id::text");
    let of_id =
        |value: String, refused: String| format!("CASE WHEN id BETWEEN 0 AND {} THEN {value}\n  ELSE {refused} END", script.last_id());
    let since = format!("(id >> {}) * {}", script.layout.time_shift(), script.layout.tick_ms());
    let (parameter, result, body) = match function {
        // Avoids products of doubles, and timestamptz + interval, which depends on the session's time zone.
        Time => {
            let value = format!(
                "(timestamp '{}'\n    + interval '1 second' * ({since} / 1000)::double precision\n    \
                 + interval '1 millisecond' * ({since} % 1000::bigint)::double precision) AT TIME ZONE 'UTC'",
                instant(script.layout.epoch_ms())
            );
            ("id bigint", "timestamptz", of_id(value, format!("pg_catalog.to_timestamp({no_id}::double precision)")))
        }
        UnixMs => ("id bigint", "bigint", of_id(format!("{since}{}", plus(script.layout.epoch_ms())), no_id)),
        Function::Field(field) => ("id bigint", "bigint", of_id(format!("id >> {} & {}::bigint", field.shift(), field.max()), no_id)),
        Base62 => {
            let negative = refuse(Refusal::number(), "", "id::text");
            let digit = "pg_catalog.substr('DIGITS'::text, (id / POWER::bigint % 62::bigint)::integer + 1, 1)";
            let value = base62::each(digit, "\n    || ");
            ("id bigint", "text", format!("CASE WHEN id >= 0 THEN {value}\n  ELSE {negative}::text END"))
        }
        FromBase62 => {
            let digit = "(pg_catalog.strpos('DIGITS'::text, pg_catalog.substr(digits COLLATE \"C\", PLACE, 1)) - 1) * POWER::bigint";
            let value = base62::each(digit, "\n    + ");
            let last = base62::LAST;
            (
                "digits text",
                "bigint",
                format!(
                    "CASE WHEN digits COLLATE \"C\" ~ '^[0-9A-Za-z]{{11}}$' AND digits COLLATE \"C\" <= '{last}' THEN {value}\n  ELSE {} END",
                    refuse(Refusal::text(), "", "pg_catalog.quote_literal(pg_catalog.left(digits, 60))")
                ),
            )
        }
        MinId | MaxId => {
            let seconds = "EXTRACT(epoch FROM instant AT TIME ZONE 'UTC')";
            let tick = format!(
                "(pg_catalog.floor({seconds} * 1000::numeric)::bigint{}) / {}",
                plus(-script.layout.epoch_ms()),
                script.layout.tick_ms()
            );
            let id = format!("(({tick}) << {}){}", script.layout.time_shift(), script.to_the_end(function));
            let bound = |ms: i64, end: &str| format!("timestamptz '{}{end}+00'", instant(ms));
            (
                "instant timestamptz",
                "bigint",
                format!(
                    "CASE WHEN instant BETWEEN {} AND {} THEN {id}\n  \
                     WHEN instant < {} THEN {}\n  ELSE {} END",
                    bound(script.layout.epoch_ms(), ""),
                    bound(script.last_ms(), "999"),
                    bound(script.layout.epoch_ms(), ""),
                    refuse(script.before_epoch(), "Unix time ", &format!("{seconds}::text")),
                    refuse(script.expired(), "Unix time ", &format!("{seconds}::text")),
                ),
            )
        }
    };
    let name = script.name(function.name());
    format!("CREATE OR REPLACE FUNCTION {name}({parameter}) RETURNS {result}\nLANGUAGE sql IMMUTABLE PARALLEL SAFE\nRETURN {body};")
}
