//! A source of IDs: a file of lines, a column of CSV, or the rows of a query.

use super::super::code;
use super::super::screen::{Stop, plain};
use super::failure::{self, AuditResult};
use super::work::Identity;
use frazil::admin::{Secret, address, resolve};
use frazil::{Error, ErrorKind};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

#[derive(Debug)]
pub(super) enum Kind {
    Text(PathBuf),
    /// Without a delimiter, it is found in the first row.
    Csv {
        path: PathBuf,
        delimiter: Option<u8>,
    },
    /// A line of JSON for each row.
    Json(PathBuf),
    /// `INSERT` and `COPY`, as pg_dump, mysqldump and sqlite3 write them.
    Dump(PathBuf),
    /// The rows of a query, by the program sqlite3.
    Sqlite(PathBuf),
    Query(Secret),
}

#[derive(Debug)]
pub(super) struct Source {
    /// The source as it is shown, without a secret.
    pub(super) name: String,
    pub(super) kind: Kind,
}

impl Source {
    /// Parses a path, the URL of a database, or `env:NAME`, which holds one of them.
    ///
    /// # Errors
    /// `SPEC` for the URL of anything else, and for a variable that is not set.
    pub(super) fn parse(given: &str, has_query: bool) -> AuditResult<Self> {
        let text = resolve("source", given)?;
        if let Some((scheme, _)) = text.split_once("://") {
            let name = address(&text);
            if !matches!(scheme, "postgresql" | "postgres" | "mysql" | "mariadb") {
                let why = format!(
                    "source={name} is not a supported database: use postgresql:// or mysql://, or export its column to a file, see \
                     frazil merge-audit --help"
                );
                return Err(Error::new(ErrorKind::Spec, why).into());
            }
            let text = text.strip_prefix("mariadb://").map_or_else(|| text.clone(), |rest| format!("mysql://{rest}"));
            return Ok(Source { name, kind: Kind::Query(Secret::new(text)) });
        }
        let path = PathBuf::from(&text);
        let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
        let kind = match ending.as_deref() {
            Some("csv") => Kind::Csv { path, delimiter: None },
            Some("tsv") => Kind::Csv { path, delimiter: Some(b'\t') },
            Some("json" | "jsonl" | "ndjson") => Kind::Json(path),
            Some("sql") => Kind::Dump(path),
            Some("db" | "sqlite" | "sqlite3") if has_query => Kind::Sqlite(path),
            Some(binary @ ("parquet" | "db" | "sqlite" | "sqlite3" | "gz" | "zst" | "xlsx")) => {
                return Err(failure::input(format!("the source {} is not text: {}", plain(&text), fix(binary))));
            }
            _ => Kind::Text(path),
        };
        // A file's name may contain control characters.
        Ok(Source { name: plain(&text), kind })
    }

    pub(super) fn is_query(&self) -> bool {
        matches!(self.kind, Kind::Query(_) | Kind::Sqlite(_))
    }

    /// The identity by which the file is recognised later; `None` for a query.
    pub(super) fn identity(&self) -> AuditResult<Option<Identity>> {
        let (Kind::Text(path) | Kind::Csv { path, .. } | Kind::Json(path) | Kind::Dump(path)) = &self.kind else { return Ok(None) };
        let at = failure::unreadable(&self.name);
        if !std::fs::metadata(path).map_err(&at)?.is_file() {
            let why = "it is not a regular file, so the audit cannot see whether it changes: write the IDs to a file";
            return Err(failure::input(format!("the source {} cannot be read: {why}", self.name)));
        }
        let path = std::fs::canonicalize(path).map_err(&at)?;
        Ok(Some(File::open(&path).and_then(|file| identity(&path, &file)).map_err(&at)?))
    }

    /// Opens a file and checks that it has the expected identity.
    pub(super) fn open(&self, path: &Path, expected: &Identity) -> AuditResult<File> {
        let at = failure::unreadable(&self.name);
        let file = File::open(path).map_err(&at)?;
        self.check(&file, expected)?;
        Ok(file)
    }

    /// # Errors
    /// `INPUT_CHANGED` if the file has changed.
    pub(super) fn check(&self, file: &File, expected: &Identity) -> AuditResult<()> {
        let at = failure::unreadable(&self.name);
        let now = identity(Path::new(&expected.path), file).map_err(&at)?;
        if now == *expected { Ok(()) } else { self.changed() }
    }

    pub(super) fn changed(&self) -> AuditResult<()> {
        let why = "export to a new file, and audit it once it is complete; the IDs of the other sources are kept";
        Err(Stop::Failed(code::INPUT_CHANGED, format!("the source {} changed while it was read: {why}", self.name)))
    }
}

fn fix(ending: &str) -> &'static str {
    match ending {
        "parquet" => "duckdb -csv -c \"select id from 'FILE'\" > ids.csv",
        "db" | "sqlite" | "sqlite3" => "sqlite3 FILE 'select id from items' > ids.txt, or use --query 'select id from items'",
        "gz" | "zst" => "unpack it first",
        _ => "save it as CSV, with the ID column as text, or its digits are lost",
    }
}

/// # Errors
/// `SPEC` for a file that is given twice, because each of its IDs would be a duplicate.
pub(super) fn check_distinct(sources: &[Source], identities: &[Option<Identity>]) -> AuditResult<()> {
    for (later, identity) in identities.iter().enumerate() {
        let Some(identity) = identity else { continue };
        let same = |other: &Identity| match identity.inode {
            0 => other.path == identity.path,
            inode => (other.device, other.inode) == (identity.device, inode),
        };
        if let Some(earlier) = identities[..later].iter().position(|other| other.as_ref().is_some_and(same)) {
            let (earlier, later) = (&sources[earlier].name, &sources[later].name);
            let why = format!("the sources {earlier} and {later} are the same file: give each once, or every ID is a duplicate");
            return Err(Error::new(ErrorKind::Spec, why).into());
        }
    }
    Ok(())
}

fn identity(path: &Path, file: &File) -> std::io::Result<Identity> {
    let metadata = file.metadata()?;
    #[cfg(unix)]
    let (device, inode, changed_ns) = {
        use std::os::unix::fs::MetadataExt;
        (metadata.dev(), u128::from(metadata.ino()), metadata.ctime().saturating_mul(1_000_000_000).saturating_add(metadata.ctime_nsec()))
    };
    #[cfg(windows)]
    let (device, inode, changed_ns) = super::windows::identity(file)?;
    let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Identity {
        path: path.to_string_lossy().into_owned(),
        device,
        inode,
        bytes: metadata.len(),
        modified_ns: u64::try_from(modified.as_nanos()).unwrap_or(u64::MAX),
        changed_ns,
    })
}
