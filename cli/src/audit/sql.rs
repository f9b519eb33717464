//! The script that gives the rows of one source their new IDs.

use super::failure::Outcome;
use super::whole::Whole;
use frazil::admin::{shown, spec_error};
use frazil::{Error, ErrorKind};
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// So many rows are in one INSERT: every database takes it.
const ROWS: u64 = 500;

pub(super) struct Script {
    dialect: Dialect,
    /// The columns that hold the IDs: the key first, then what refers to it.
    columns: Vec<Column>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Postgresql,
    Mysql,
    Sqlite,
}

struct Column {
    table: String,
    name: String,
}

impl Script {
    /// # Errors
    /// `SPEC` for a column that is not `TABLE.COLUMN`, `OUT_OF_RANGE` for a dialect that is not there.
    pub(super) fn new(dialect: &str, columns: &[String]) -> Outcome<Self> {
        let dialect = match dialect {
            "postgresql" => Dialect::Postgresql,
            "mysql" | "mariadb" => Dialect::Mysql,
            "sqlite" => Dialect::Sqlite,
            _ => {
                let why = format!("--dialect={} is none of: postgresql, mysql, mariadb, sqlite", shown(dialect));
                return Err(Error::new(ErrorKind::OutOfRange, why).into());
            }
        };
        let good = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        let column = |text: &String| {
            let parts = text.rsplit_once('.').filter(|(table, name)| good(name) && table.split('.').all(good));
            let (table, name) = parts.ok_or_else(|| {
                spec_error(format!("--apply-to={} is not TABLE.COLUMN (or SCHEMA.TABLE.COLUMN) of letters, digits and _", shown(text)))
            })?;
            Ok(Column { table: table.to_owned(), name: name.to_owned() })
        };
        Ok(Script { dialect, columns: columns.iter().map(column).collect::<Result<_, Error>>()? })
    }

    /// The script of a source.
    pub(super) fn begin(&self, out: &Path, source: usize, name: &str) -> Outcome<Writer<'_>> {
        let mut writer = Writer { script: self, file: Whole::create(out.join(format!("remap-{}.sql", source + 1)))?, rows: 0 };
        let stop = if self.dialect == Dialect::Sqlite {
            "-- The program sqlite3 would otherwise go on behind an error, and commit the half. For other programs, take this line away.\n\
             .bail on\n"
        } else {
            ""
        };
        writer.file.write(format_args!(
            "-- New IDs for the rows of {name} whose IDs an earlier source of the audit has.\n\
             -- Run it in that database before the merge, once, while nothing writes to it. It is one transaction.\n\
             {stop}\
             BEGIN;\n\
             CREATE TEMPORARY TABLE frazil_remap (old_id BIGINT NOT NULL PRIMARY KEY, new_id BIGINT NOT NULL UNIQUE);\n"
        ))?;
        Ok(writer)
    }

    fn updates(&self) -> String {
        self.columns.iter().map(|column| self.update(column)).collect()
    }

    fn update(&self, Column { table, name }: &Column) -> String {
        let quote = if self.dialect == Dialect::Mysql { '`' } else { '"' };
        let quoted = |name: &str| format!("{quote}{name}{quote}");
        let whole = table.split('.').map(quoted).collect::<Vec<_>>().join(".");
        let column = quoted(name);
        match self.dialect {
            // MySQL may name a temporary table only once in a statement, and knows no UPDATE ... FROM.
            Dialect::Mysql => format!("UPDATE {whole} AS t JOIN frazil_remap AS r ON t.{column} = r.old_id SET t.{column} = r.new_id;\n"),
            Dialect::Postgresql | Dialect::Sqlite => {
                format!("UPDATE {whole} AS t SET {column} = r.new_id FROM frazil_remap AS r WHERE t.{column} = r.old_id;\n")
            }
        }
    }
}

pub(super) struct Writer<'a> {
    script: &'a Script,
    file: Whole,
    rows: u64,
}

impl Writer<'_> {
    pub(super) fn row(&mut self, old: impl Display, new: u64) -> Outcome<()> {
        let before = match self.rows {
            0 => "INSERT INTO frazil_remap (old_id, new_id) VALUES\n",
            rows if rows.is_multiple_of(ROWS) => ";\nINSERT INTO frazil_remap (old_id, new_id) VALUES\n",
            _ => ",\n",
        };
        self.rows += 1;
        self.file.write(format_args!("{before}({old}, {new})"))
    }

    pub(super) fn finish(mut self) -> Outcome<PathBuf> {
        // Where foreign keys are checked at each statement, the key's own UPDATE would be refused.
        let keys = match self.script.dialect {
            Dialect::Postgresql => ("SET CONSTRAINTS ALL DEFERRED;\n", ""),
            Dialect::Mysql => {
                ("SET @frazil_checks = @@foreign_key_checks, foreign_key_checks = 0;\n", "SET foreign_key_checks = @frazil_checks;\n")
            }
            Dialect::Sqlite => ("PRAGMA defer_foreign_keys = ON;\n", ""),
        };
        let drop =
            if self.script.dialect == Dialect::Mysql { "DROP TEMPORARY TABLE frazil_remap;\n" } else { "DROP TABLE frazil_remap;\n" };
        self.file.write(format_args!(";\n{}{}{}{drop}COMMIT;\n", keys.0, self.script.updates(), keys.1))?;
        self.file.finish()
    }
}
