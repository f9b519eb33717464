//! The SQL script that gives the rows of one source their new IDs.

use super::failure::AuditResult;
use super::whole::AtomicFile;
use frazil::admin::{shown, spec_error};
use frazil::{Error, ErrorKind};
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// The number of rows in one INSERT, which every database accepts.
const ROWS: u64 = 500;

pub(super) struct RemapScript {
    dialect: Database,
    /// The columns that contain the IDs: first the key, then those that refer to it.
    columns: Vec<TargetColumn>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Database {
    Postgresql,
    Mysql,
    Sqlite,
}

struct TargetColumn {
    table: String,
    name: String,
}

impl RemapScript {
    /// # Errors
    /// `SPEC` for a column that is not `TABLE.COLUMN`, `OUT_OF_RANGE` for an unknown dialect.
    pub(super) fn new(dialect: &str, columns: &[String]) -> AuditResult<Self> {
        let dialect = match dialect {
            "postgresql" => Database::Postgresql,
            "mysql" | "mariadb" => Database::Mysql,
            "sqlite" => Database::Sqlite,
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
            Ok(TargetColumn { table: table.to_owned(), name: name.to_owned() })
        };
        Ok(RemapScript { dialect, columns: columns.iter().map(column).collect::<Result<_, Error>>()? })
    }

    /// Begins the script of a source.
    pub(super) fn begin(&self, out: &Path, source: usize, name: &str) -> AuditResult<ScriptWriter<'_>> {
        let mut writer = ScriptWriter { script: self, file: AtomicFile::create(out.join(format!("remap-{}.sql", source + 1)))?, rows: 0 };
        let stop = if self.dialect == Database::Sqlite {
            "-- Stops the program sqlite3 at an error; otherwise it would continue and commit half. For other programs, remove this line.\n\
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

    fn update(&self, TargetColumn { table, name }: &TargetColumn) -> String {
        let quote = if self.dialect == Database::Mysql { '`' } else { '"' };
        let quoted = |name: &str| format!("{quote}{name}{quote}");
        let whole = table.split('.').map(quoted).collect::<Vec<_>>().join(".");
        let column = quoted(name);
        match self.dialect {
            // MySQL allows a temporary table only once in a statement, and has no UPDATE ... FROM.
            Database::Mysql => format!("UPDATE {whole} AS t JOIN frazil_remap AS r ON t.{column} = r.old_id SET t.{column} = r.new_id;\n"),
            Database::Postgresql | Database::Sqlite => {
                format!("UPDATE {whole} AS t SET {column} = r.new_id FROM frazil_remap AS r WHERE t.{column} = r.old_id;\n")
            }
        }
    }
}

pub(super) struct ScriptWriter<'a> {
    script: &'a RemapScript,
    file: AtomicFile,
    rows: u64,
}

impl ScriptWriter<'_> {
    pub(super) fn row(&mut self, old: impl Display, new: u64) -> AuditResult<()> {
        let before = match self.rows {
            0 => "INSERT INTO frazil_remap (old_id, new_id) VALUES\n",
            rows if rows.is_multiple_of(ROWS) => ";\nINSERT INTO frazil_remap (old_id, new_id) VALUES\n",
            _ => ",\n",
        };
        self.rows += 1;
        self.file.write(format_args!("{before}({old}, {new})"))
    }

    pub(super) fn finish(mut self) -> AuditResult<PathBuf> {
        // A foreign key that is checked at each statement would refuse the UPDATE of the key itself.
        let keys = match self.script.dialect {
            Database::Postgresql => ("SET CONSTRAINTS ALL DEFERRED;\n", ""),
            Database::Mysql => {
                ("SET @frazil_checks = @@foreign_key_checks, foreign_key_checks = 0;\n", "SET foreign_key_checks = @frazil_checks;\n")
            }
            Database::Sqlite => ("PRAGMA defer_foreign_keys = ON;\n", ""),
        };
        let drop =
            if self.script.dialect == Database::Mysql { "DROP TEMPORARY TABLE frazil_remap;\n" } else { "DROP TABLE frazil_remap;\n" };
        self.file.write(format_args!(";\n{}{}{}{drop}COMMIT;\n", keys.0, self.script.updates(), keys.1))?;
        self.file.finish()
    }
}
