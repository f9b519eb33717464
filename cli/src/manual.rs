//! Completions for shells, and man pages, both generated from the commands and their arguments.

use super::code;
use super::line::Line;
use super::screen::{Screen, Stop};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, CommandFactory};
use clap_complete::Shell;
use frazil::admin::store::Address;
use frazil::admin::{PRESETS, shown};
use frazil::bindings::did_you_mean;
use frazil::{Error, ErrorKind, Spec};
use std::path::Path;

/// A script for a shell.
pub(super) fn completions(shell: Shell, screen: &mut Screen<'_>) -> Result<(), Stop> {
    let mut script = Vec::new();
    let mut line = Line::command().mut_subcommands(|command| command.mut_args(with_words));
    clap_complete::generate(shell, &mut line, "frazil", &mut script);
    match shell {
        Shell::Bash => script.extend_from_slice(BASH.as_bytes()),
        Shell::Fish => line.get_subcommands().for_each(|command| script.extend_from_slice(fish_words(command).as_bytes())),
        _ => {}
    }
    screen.bytes(&script)
}

const REACTIONS: &[&str] = &["error", "wait", "wait:", "ahead", "ahead:"];
/// The values of keys that are words. A number or a duration follows a colon.
const VALUES: &[(&str, &[&str])] = &[
    ("rollback", REACTIONS),
    ("exhausted", REACTIONS),
    ("start", &["zero", "alternate:", "random:", "continue:"]),
    ("lease", &["shared-slots", "disposable"]),
    ("clock", &["system", "manual"]),
    ("detached", &["true"]),
    ("shared", &["true"]),
];

/// The words of a spec that are known without a layout.
fn spec_words() -> Vec<String> {
    let presets = PRESETS.iter().map(|preset| preset.name.to_owned());
    let keys = Spec::KEYS.iter().flat_map(|key| {
        let values = VALUES.iter().find(|(name, _)| name == key).map_or(&[""][..], |(_, values)| values);
        let values = if *key == "store" { Address::kinds().collect() } else { values.to_vec() };
        values.into_iter().map(move |value| format!("{key}={value}"))
    });
    presets.chain(keys).collect()
}

/// Adds to an argument the words that a shell offers. The command itself accepts more.
fn with_words(argument: Arg) -> Arg {
    let presets = || PRESETS.iter().map(|preset| preset.name.to_owned()).collect();
    let words: Vec<String> = match argument.get_id().as_str() {
        "spec" if matches!(argument.get_action(), ArgAction::Append) => spec_words(),
        "spec" | "layout" | "remap" | "begin" => presets(),
        "store" => Address::kinds().map(str::to_owned).collect(),
        _ => return argument,
    };
    argument.value_parser(PossibleValuesParser::new(words))
}

/// Bash also splits words at = and :. The function offers the whole word, and removes the part that bash keeps. It adds no space after `store=redis://`.
const BASH: &str = r#"
_frazil_words() {
    local typed="${COMP_LINE:0:COMP_POINT}"
    typed="${typed##*[[:space:]]}"
    _frazil "$1" "$typed" "$3"
    COMPREPLY=("${COMPREPLY[@]#"${typed%"$2"}"}")
    [[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *[=:/] ]] || compopt -o nospace
}
complete -F _frazil_words -o bashdefault -o default frazil
"#;

/// The words of a command's positional arguments, which the generator for fish leaves out.
fn fish_words(command: &Command) -> String {
    let values = command.get_positionals().flat_map(|argument| argument.get_possible_values());
    let words: Vec<_> = values.map(|value| value.get_name().to_owned()).collect();
    if words.is_empty() {
        return String::new();
    }
    format!("complete -c frazil -n \"__fish_frazil_using_subcommand {}\" -a \"{}\"\n", command.get_name(), words.join(" "))
}

/// The page of a command, in roff.
pub(super) fn page(command: Option<&str>, screen: &mut Screen<'_>) -> Result<(), Stop> {
    let (pages, name) = (pages(), command.unwrap_or_default());
    let wanted = command.map_or_else(|| "frazil".to_owned(), |name| format!("frazil-{name}"));
    let Some((_, page)) = pages.iter().find(|(page, _)| *page == wanted) else {
        let near = did_you_mean(name, pages.iter().filter_map(|(page, _)| page.strip_prefix("frazil-")));
        return Err(Error::new(ErrorKind::OutOfRange, format!("unknown command {}{near}", shown(name))).into());
    };
    screen.bytes(page)
}

/// Writes every page to a file, `frazil.1` and `frazil-COMMAND.1`.
pub(super) fn write_pages(folder: &Path, screen: &mut Screen<'_>) -> Result<(), Stop> {
    for (name, page) in pages() {
        let path = folder.join(format!("{name}.1"));
        std::fs::write(&path, page)
            .map_err(|error| Stop::Failed(code::OUTPUT, format!("{} cannot be written: {error}", path.display())))?;
        screen.print(&format!("{}\n", path.display()))?;
    }
    Ok(())
}

/// The name and the content of each page, beginning with that of `frazil`.
fn pages() -> Vec<(String, Vec<u8>)> {
    let mut line = Line::command();
    line.build();
    let page = |name: String, command: &Command| {
        let mut page = Vec::new();
        clap_mangen::Man::new(command.clone()).render(&mut page).expect("writing to a Vec cannot fail");
        (name, page)
    };
    let commands = line.get_subcommands().filter(|command| command.get_name() != "help");
    let commands = commands.map(|command| page(format!("frazil-{}", command.get_name()), command));
    [page("frazil".to_owned(), &line)].into_iter().chain(commands).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil::Snowflake;

    /// Every offered word is accepted in a spec, with a number after a colon.
    #[test]
    fn every_offered_word_is_accepted_in_a_spec() {
        for (number, word) in spec_words().into_iter().enumerate() {
            let rest = match word.split_once('=') {
                None if word == "baidu" => " epoch=2025-01-01",
                None => "",
                Some((key, _)) if Spec::KEYS.contains(&key) && !VALUES.iter().any(|(name, _)| *name == key) => continue,
                Some((_, value)) if value.ends_with(':') => "7",
                Some(_) => "",
            };
            // A reaction needs a duration.
            let unit = if rest == "7" && !word.starts_with("start") { "s" } else { "" };
            let preset = if word.contains('=') { "standard " } else { "" };
            let store = || format!("store=memory namespace=manual-{number}");
            let node = match word.split('=').next() {
                Some("clock" | "shared") => format!("detached=true node={number}"),
                _ => store(),
            };
            let line = format!("{preset}{word}{rest}{unit} {node}");
            Snowflake::open(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }
}
