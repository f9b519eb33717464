//! New IDs in place of those that an earlier source has, and the SQL that writes them to the tables.

use super::super::interrupt;
use super::csv_field;
use super::failure::{self, AuditResult};
use super::fields::Fields;
use super::progress::{Progress, grouped};
use super::result::{Audit, Remap};
use super::sql::{self, RemapScript};
use super::whole::AtomicFile;
use frazil::admin::LayoutBits;
use frazil::{Error, ErrorKind, Snowflake, Spec, Wait};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

const TABLE: &str = "remap.csv";

/// # Errors
/// `OUTPUT` if the folder contains a remap. It may have been applied, and a second one would give the same rows other IDs.
pub(super) fn check_fresh(out: &Path) -> AuditResult<()> {
    for entry in fs::read_dir(out).map_err(failure::unwritable(out))? {
        let path = entry.map_err(failure::unwritable(out))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name == TABLE || (name.starts_with("remap-") && name.ends_with(".sql")) {
            let why = "exists already, and may have been applied: move it away, or use another --out";
            return Err(failure::output(format!("{} {why}", path.display())));
        }
    }
    Ok(())
}

/// The generator of the new IDs. It is opened before the sources are read, so that its errors are reported at once.
pub(super) struct Mint {
    ids: Snowflake,
}

impl Mint {
    /// # Errors
    /// `SPEC` for another layout than the sources'; those of [`Snowflake::open`].
    pub(super) fn open(spec: &str, layouts: &[Fields]) -> AuditResult<Self> {
        let ids = Snowflake::open_spec(Spec::parse(spec)?, Wait::until(Duration::MAX, &interrupt::is_requested)).map_err(|error| {
            if interrupt::is_requested() {
                failure::interrupted("stopped while --remap waited for its store; nothing was read")
            } else {
                error.into()
            }
        })?;
        if let Some(other) = layouts.iter().find(|fields| fields.layout().shape() != ids.layout().shape()) {
            let other = other.layout();
            let why = format!("--remap makes IDs of {}, but the sources contain IDs of {other}: use one layout", ids.layout());
            return Err(Error::new(ErrorKind::Spec, why).into());
        }
        Ok(Mint { ids })
    }

    /// Writes the remap table, and the SQL of each source, from the list of repeats: `ID,SOURCE`.
    ///
    /// # Errors
    /// `CONFLICT` where the sources hold IDs of the new node number; those of the generator; `OUTPUT`, `INTERRUPTED`.
    pub(super) fn run(
        &self,
        list: &Path,
        out: &Path,
        audit: &Audit<'_>,
        script: Option<&RemapScript>,
        progress: &mut Progress,
    ) -> AuditResult<Remap> {
        let Audit { tally, layouts, names, .. } = audit;
        let fields = &layouts[0];
        if tally.too_many_nodes {
            let why = "the sources contain more node numbers than the audit counts, so it cannot find an unused one".to_owned();
            return Err(Error::new(ErrorKind::OutOfRange, why).into());
        }
        let used: HashSet<u64> = tally.nodes.keys().map(|(node, _)| *node).chain(tally.odd_nodes.iter().copied()).collect();
        let total: u64 = tally.pairs.values().sum();
        let mut table = AtomicFile::create(out.join(TABLE))?;
        table.write("old,new,source\n")?;
        let mut scripts: Vec<Option<sql::ScriptWriter>> = names.iter().map(|_| None).collect();
        let mut rows = 0;
        for line in BufReader::new(File::open(list).map_err(failure::unwritable(list))?).lines() {
            let line = line.map_err(failure::unwritable(list))?;
            let (old, source) = line
                .split_once(',')
                .and_then(|(id, source)| Some((id, source.parse::<usize>().ok()?)))
                .ok_or_else(|| failure::output(format!("{} has changed since it was written", list.display())))?;
            let id = self.next(progress, rows, total)?;
            let node = fields.take(id).map(|taken| taken.node);
            if let Some(node) = node.filter(|node| used.contains(node)) {
                let why = format!(
                    "--remap mints with the node number {}, which the sources already use: name one that no server used",
                    fields.show_node(node)
                );
                return Err(Error::new(ErrorKind::Conflict, why).into());
            }
            table.write(format_args!("{old},{id},{}\n", csv_field(names[source])))?;
            if let Some(script) = script {
                if scripts[source].is_none() {
                    scripts[source] = Some(script.begin(out, source, names[source])?);
                }
                scripts[source].as_mut().expect("the script was created above").row(old, id)?;
            }
            rows += 1;
        }
        let mut files = scripts.into_iter().flatten().map(sql::ScriptWriter::finish).collect::<AuditResult<Vec<_>>>()?;
        // The table is completed last: if it exists, all scripts do.
        files.insert(0, table.finish()?);
        Ok(Remap { spec: self.ids.spec(), node: fields.show_node(self.ids.node().expect("the generator is open")), rows, files })
    }

    /// Returns the next ID, and waits if the policy refuses one for now.
    fn next(&self, progress: &mut Progress, made: u64, total: u64) -> AuditResult<u64> {
        const CHECK_EVERY: Duration = Duration::from_millis(100);
        loop {
            progress.say(|| format!("minting: {} of {} new IDs", grouped(made), grouped(total)))?;
            match self.ids.next_id() {
                Ok(id) => return Ok(id.get() as u64),
                Err(error) => match error.retry_after() {
                    Some(wait) => std::thread::sleep(wait.min(CHECK_EVERY)),
                    None => return Err(error.into()),
                },
            }
        }
    }
}
