//! MariaDB and MySQL: stored functions of one statement each, so that no client needs a DELIMITER.
//!
//! A function of one statement cannot SIGNAL. To raise an error, it adds to the largest BIGINT, which fails under every sql_mode, and the error
//! quotes the summand. Arithmetic uses DIV and MOD, which are signed; the operators on bits give BIGINT UNSIGNED.

use super::{Base62, Dialect, FromBase62, Function, MaxId, MinId, Refusal, Script, Time, UnixMs, base62, instant, plus};
use frazil::Field;

pub(super) const MARIADB: Dialect = Dialect {
    name: "mariadb",
    title: "functions for MariaDB 10.6 and later",
    schema_names: 1,
    quote: '`',
    notes: &["Instants are DATETIME in UTC, whatever the session's time_zone is: pass UTC_TIMESTAMP(6), not NOW()."],
    begin,
    end,
    define: |script, function| format!("CREATE OR REPLACE FUNCTION {}", define(script, function)),
};

pub(super) const MYSQL: Dialect = Dialect {
    name: "mysql",
    title: "functions for MySQL 8.0 and later",
    notes: &[MARIADB.notes[0], "Not run on MySQL by frazil's own tests: MariaDB ran the same functions."],
    define: |script, function| {
        let name = script.name(function.name());
        format!("DROP FUNCTION IF EXISTS {name};\nCREATE FUNCTION {}", define(script, function))
    },
    ..MARIADB
};

/// A function keeps the sql_mode under which it was created.
fn begin(_: &Script<'_>) -> String {
    "\nSET @frazil_sql_mode = @@SESSION.sql_mode, SESSION sql_mode = 'STRICT_ALL_TABLES';\n".to_owned()
}

/// Adds the expressions of generated columns, which may not call functions.
fn end(script: &Script<'_>) -> String {
    let mut end = "\nSET SESSION sql_mode = @frazil_sql_mode;\n\n\
        -- A generated column may not call functions. Use these expressions of a column id; DATETIME(6), because fewer digits would round:\n"
        .to_owned();
    for function in script.functions() {
        let column = match function {
            Time => format!("created_at DATETIME(6) AS ({})", time(script, "id")),
            Function::Field(field) => format!("`{}` BIGINT AS ({})", field.name(), of_field("id", field)),
            _ => continue,
        };
        end.push_str(&format!("--   {column}\n"));
    }
    end
}

fn time(script: &Script<'_>, id: &str) -> String {
    let (epoch, tick_us) = (instant(script.layout.epoch_ms()), script.layout.tick_ms() * 1000);
    format!("TIMESTAMP'{epoch}' + INTERVAL ({id} DIV {} * {tick_us}) MICROSECOND", script.ids_in_a_tick())
}

fn of_field(id: &str, field: &Field) -> String {
    format!("{id} DIV {} MOD {}", 1_u64 << field.shift(), field.max() + 1)
}

fn refuse(Refusal { code, why }: Refusal, value: &str) -> String {
    format!("9223372036854775807 + CHAR_LENGTH(CONCAT('frazil: {}: ', {value}, ' {why}'))", code.name())
}

fn define(script: &Script<'_>, function: Function<'_>) -> String {
    let id = format!("IF(`id` BETWEEN 0 AND {}, `id`,\n  {})", script.last_id(), refuse(script.no_id(), "`id`"));
    let ids = script.ids_in_a_tick();
    let (parameter, result, value) = match function {
        Time => ("`id` BIGINT", "DATETIME(3)", time(script, &id)),
        UnixMs => ("`id` BIGINT", "BIGINT", format!("{id} DIV {ids} * {}{}", script.layout.tick_ms(), plus(script.layout.epoch_ms()))),
        Function::Field(field) => ("`id` BIGINT", "BIGINT", of_field(&id, field)),
        Base62 => {
            let value = base62::each("SUBSTR('DIGITS', `id` DIV POWER MOD 62 + 1, 1)", ",\n    ");
            let value = format!("IF(`id` >= 0, CONCAT({value}),\n  {})", refuse(Refusal::number(), "`id`"));
            ("`id` BIGINT", "CHAR(11) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", value)
        }
        FromBase62 => {
            let value = base62::each("(LOCATE(SUBSTR(`digits`, PLACE, 1), 'DIGITS') - 1) * POWER", "\n    + ");
            // The length is checked, because $ also matches before a final line end.
            let good = format!("CHAR_LENGTH(`digits`) = 11 AND `digits` REGEXP '^[0-9A-Za-z]{{11}}$' AND `digits` <= '{}'", base62::LAST);
            let value = format!("IF({good}, {value},\n  {})", refuse(Refusal::text(), "`digits`"));
            ("`digits` VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "BIGINT", value)
        }
        MinId | MaxId => {
            let (first, last) = (instant(script.layout.epoch_ms()), instant(script.last_ms()));
            let tick = format!("TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'{first}', `instant`) DIV {}", script.layout.tick_ms() * 1000);
            let value = format!(
                "CASE WHEN `instant` < TIMESTAMP'{first}' THEN {}\n  WHEN `instant` > TIMESTAMP'{last}999' THEN {}\n  ELSE {tick} * {ids}{} END",
                refuse(script.before_epoch(), "`instant`"),
                refuse(script.expired(), "`instant`"),
                script.to_the_end(function),
            );
            ("`instant` DATETIME(6)", "BIGINT", value)
        }
    };
    let name = script.name(function.name());
    format!("{name}({parameter}) RETURNS {result}\nDETERMINISTIC NO SQL SQL SECURITY INVOKER\nRETURN {value};")
}
