//! Completions for shells, and man pages: both made from what the commands take.

use super::screen::{Screen, Stop};
use super::{Line, code};
use crate::error::{Error, ErrorKind, shown};
use crate::nearest::did_you_mean;
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::Path;

/// A script for a shell.
pub(super) fn completions(shell: Shell, screen: &mut Screen<'_>) -> Result<(), Stop> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Line::command(), "frazil", &mut script);
    screen.bytes(&script)
}

/// The page of a command, in roff.
pub(super) fn page(command: Option<&str>, screen: &mut Screen<'_>) -> Result<(), Stop> {
    let page = match command {
        None => pages().swap_remove(0).1,
        Some(name) => {
            let mut pages = pages();
            let wanted = format!("frazil-{name}");
            let Some(at) = pages.iter().position(|(page, _)| *page == wanted) else {
                let names = pages.iter().filter_map(|(page, _)| page.strip_prefix("frazil-"));
                let near = did_you_mean(name, names);
                return Err(Error::new(ErrorKind::OutOfRange, format!("there is no command {}{near}", shown(name))).into());
            };
            pages.swap_remove(at).1
        }
    };
    screen.bytes(&page)
}

/// Every page as a file, `frazil.1` and `frazil-COMMAND.1`.
pub(super) fn write_pages(folder: &Path, screen: &mut Screen<'_>) -> Result<(), Stop> {
    for (name, page) in pages() {
        let path = folder.join(format!("{name}.1"));
        std::fs::write(&path, page)
            .map_err(|error| Stop::Failed(code::OUTPUT, format!("{} cannot be written: {error}", path.display())))?;
        screen.print(&format!("{}\n", path.display()))?;
    }
    Ok(())
}

/// The name and the content of each page; first frazil's own.
fn pages() -> Vec<(String, Vec<u8>)> {
    let mut line = Line::command();
    line.build();
    let commands = line.get_subcommands().filter(|command| command.get_name() != "help").map(|command| {
        let name = format!("frazil-{}", command.get_name());
        (name, command.clone())
    });
    let all: Vec<_> = [("frazil".to_owned(), line.clone())].into_iter().chain(commands).collect();
    all.into_iter()
        .map(|(name, command)| {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page).expect("a Vec takes all that is written");
            (name, page)
        })
        .collect()
}
