//! New IDs for those that an earlier source has, and the SQL that puts them into the tables.

use super::failure::{Failure, Outcome};
use super::fields::Fields;
use super::progress::{Progress, grouped};
use super::result::Audit;
use super::sql::Script;
use crate::error::{Error, ErrorKind};
use crate::snowflake::Snowflake;
use crate::spec::Spec;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What was made.
pub(super) struct Remap {
    pub(super) spec: String,
    pub(super) node: String,
    pub(super) rows: u64,
    pub(super) files: Vec<PathBuf>,
}

/// The generator of the new IDs, opened before the sources are read: what is wrong with it is told at once.
pub(super) struct Mint {
    ids: Snowflake,
}

impl Mint {
    /// # Errors
    /// `SPEC` for another layout than the sources'; those of [`Snowflake::open`].
    pub(super) fn open(spec: &str, fields: &Fields) -> Outcome<Self> {
        let ids = Snowflake::open_spec(Spec::parse(spec)?, Duration::MAX)?;
        if ids.layout().shape() != fields.layout().shape() {
            let why =
                format!("--remap makes IDs of {}, and the sources hold those of {}: one layout is meant", ids.layout(), fields.layout());
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
        script: Option<&Script>,
        progress: &mut Progress,
    ) -> Outcome<Remap> {
        let Audit { tally, fields, names, .. } = audit;
        if tally.too_many_nodes {
            let why = "the sources hold more node numbers than are told apart, so that none is known to be fresh".to_owned();
            return Err(Error::new(ErrorKind::OutOfRange, why).into());
        }
        let used: HashSet<u64> = tally.nodes.keys().map(|(node, _)| *node).chain(tally.odd_nodes.iter().copied()).collect();
        let total: u64 = tally.pairs.values().sum();
        let path = out.join("remap.csv");
        let at = Failure::output(&path);
        let new = out.join("remap.csv.new");
        let mut table = BufWriter::new(File::create(&new).map_err(&at)?);
        table.write_all(b"old,new,source\n").map_err(&at)?;
        let mut scripts: Vec<Option<super::sql::Writer>> = names.iter().map(|_| None).collect();
        let mut rows = 0;
        for line in BufReader::new(File::open(list).map_err(Failure::output(list))?).lines() {
            let line = line.map_err(Failure::output(list))?;
            let (old, source) = line
                .split_once(',')
                .and_then(|(id, source)| Some((id, source.parse::<usize>().ok()?)))
                .ok_or_else(|| Failure::Output(format!("{} is not what was written", list.display())))?;
            let id = self.next(progress, rows, total)?;
            let node = fields.take(id).map(|taken| taken.node);
            if let Some(node) = node.filter(|node| used.contains(node)) {
                let why = format!(
                    "--remap mints with the node number {}, of which the sources hold IDs: name one that no server had",
                    fields.show_node(node)
                );
                return Err(Error::new(ErrorKind::Conflict, why).into());
            }
            writeln!(table, "{old},{id},{}", super::csv_field(names[source])).map_err(&at)?;
            if let Some(script) = script {
                if scripts[source].is_none() {
                    scripts[source] = Some(script.begin(out, source, names[source])?);
                }
                scripts[source].as_mut().expect("it was made above").row(old, id)?;
            }
            rows += 1;
        }
        table.into_inner().map_err(|error| at(error.into_error()))?.sync_data().map_err(&at)?;
        fs::rename(&new, &path).map_err(&at)?;
        let mut files = vec![path.clone()];
        for script in scripts.into_iter().flatten() {
            files.push(script.finish()?);
        }
        Ok(Remap { spec: self.ids.spec(), node: fields.show_node(self.ids.node()), rows, files })
    }

    /// A policy that refuses is waited for.
    fn next(&self, progress: &mut Progress, made: u64, total: u64) -> Outcome<u64> {
        const LOOK_EVERY: Duration = Duration::from_millis(100);
        loop {
            progress.say(|| format!("minting: {} of {} new IDs", grouped(made), grouped(total)))?;
            match self.ids.next_id() {
                Ok(id) => return Ok(id.get() as u64),
                Err(error) => match error.retry_after() {
                    Some(wait) => std::thread::sleep(wait.min(LOOK_EVERY)),
                    None => return Err(error.into()),
                },
            }
        }
    }
}
