//! The output of a command: streamed text, colours on a terminal, and tables with aligned columns.

mod hidden;
mod table;

use frazil::Error;
pub(super) use hidden::plain;
use serde_json::Value;
use std::io::{self, Write};
use table::GAP;
pub(super) use table::Table;

/// The reason why a command ended early.
#[derive(Debug)]
pub(super) enum Stop {
    Error(Error),
    /// The output cannot be written.
    Output(io::Error),
    /// A [code](super::code) of the command line, and a text.
    Failed(&'static str, String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Error(error)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Stop::Output(error)
    }
}

/// The exit status, or the reason why the command ended early.
pub(super) type Outcome = Result<i32, Stop>;

/// The meaning of a text, which sets its colour on a terminal.
#[derive(Clone, Copy)]
pub(super) enum Tone {
    Head,
    Good,
    Warn,
    Bad,
    Quiet,
    /// A remedy.
    Help,
}

/// The address of the page with all codes.
const PAGE: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/errors.md");
/// The width of text for a reader, if the output is not a terminal.
const WIDTH: usize = 80;
/// The widest text on a terminal, because longer lines are hard to read.
const WIDEST: usize = 100;

/// The properties of an output.
#[derive(Clone, Copy, Default)]
pub(super) struct Look {
    pub(super) colour: bool,
    /// The width of a terminal in characters.
    pub(super) width: Option<usize>,
}

impl Look {
    /// Returns the width of text for a reader.
    pub(super) fn measure(self) -> usize {
        self.width.map_or(WIDTH, |width| width.min(WIDEST))
    }

    /// Returns a text in its colour.
    fn paint(self, tone: Tone, text: &str) -> String {
        let [before, after] = if text.is_empty() { [""; 2] } else { self.around(tone) };
        format!("{before}{text}{after}")
    }

    fn around(self, tone: Tone) -> [&'static str; 2] {
        if !self.colour {
            return [""; 2];
        }
        let before = match tone {
            Tone::Head => "\x1b[1m",
            Tone::Good => "\x1b[32m",
            Tone::Warn => "\x1b[33m",
            Tone::Bad => "\x1b[1;31m",
            Tone::Quiet => "\x1b[2m",
            Tone::Help => "\x1b[1;36m",
        };
        [before, "\x1b[0m"]
    }

    /// Wraps a text on a terminal. Elsewhere it stays one line, which programs can search.
    fn fit(self, text: &str, first: usize, rest: usize) -> String {
        wrapped(text, first, rest, self.width.map_or(usize::MAX, |_| self.measure()))
    }
}

pub(super) struct Screen<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    look: Look,
    err_look: Look,
}

impl<'a> Screen<'a> {
    /// A screen for any output, without colours and a limit of width.
    pub(super) fn plain(out: &'a mut dyn Write, err: &'a mut dyn Write) -> Self {
        Screen::new(out, err, [Look::default(); 2])
    }

    /// A screen with the looks of the output and of the error output.
    pub(super) fn new(out: &'a mut dyn Write, err: &'a mut dyn Write, [look, err_look]: [Look; 2]) -> Self {
        Screen { out, err, look, err_look }
    }

    /// Adds text to the output.
    pub(super) fn print(&mut self, text: &str) -> Result<(), Stop> {
        Ok(self.out.write_all(text.as_bytes())?)
    }

    /// Adds a JSON document, in which hidden characters are escaped, because people read it, too.
    pub(super) fn json(&mut self, document: &Value) -> Result<(), Stop> {
        self.print(&hidden::escaped(&format!("{document:#}\n")))
    }

    /// Adds a JSON document as one line, as `json` does.
    pub(super) fn json_line(&mut self, document: &Value) -> Result<(), Stop> {
        self.print(&hidden::escaped(&format!("{document}\n")))
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        Ok(self.out.write_all(bytes)?)
    }

    pub(super) fn flush(&mut self) -> Result<(), Stop> {
        Ok(self.out.flush()?)
    }

    /// Writes a note to the error output, after what was printed.
    pub(super) fn note(&mut self, text: &str) -> Result<(), Stop> {
        let head = self.err_look.paint(Tone::Help, "note:");
        self.out.flush()?;
        self.say(&self.err_look.fit(&format!("{head} {text}"), 0, 2));
        Ok(())
    }

    /// Writes an error after which the command continues.
    pub(super) fn report_error(&mut self, error: &Error) -> Result<(), Stop> {
        self.out.flush()?;
        self.say(&self.error_text(error.kind().name(), &error.to_string()));
        Ok(())
    }

    /// Writes the error that ended the command, with the page of its code, even if the output is closed.
    pub(super) fn fail(&mut self, code: &str, why: &str) {
        let page = format!("{PAGE}#{}", code.to_ascii_lowercase());
        let text = format!("{}  {}\n", self.error_text(code, why), self.err_look.paint(Tone::Quiet, &page));
        self.say(&text);
    }

    /// Prints what clap says: help to the output, an error to the error output.
    pub(super) fn usage(&mut self, said: &clap::Error) -> Result<(), Stop> {
        let look = if said.use_stderr() { self.err_look } else { self.look };
        let said_text = said.render();
        let text = if look.colour { said_text.ansi().to_string() } else { said_text.to_string() };
        let end = if look.colour { "\x1b[0m" } else { "" };
        let most = look.width.map_or(usize::MAX, |_| look.measure());
        let lines = text.lines().map(|line| {
            let line = if said.use_stderr() { without_url(line, end).replacen("tip:", "help:", 1) } else { line.to_owned() };
            let indent = line.len() - line.trim_start().len();
            if visible(&line) <= most { line + "\n" } else { wrapped(line.trim_start(), indent, indent + 2, most) }
        });
        let text: String = lines.collect();
        if !said.use_stderr() {
            return self.print(&text);
        }
        self.out.flush()?;
        self.say(&text);
        Ok(())
    }

    /// Formats what is wrong and the remedy, each on its own line.
    fn error_text(&self, code: &str, why: &str) -> String {
        let look = self.err_look;
        let (what, help) = remedy(&plain(why));
        let head = look.paint(Tone::Bad, &format!("error[{code}]:"));
        let help = help.map(|help| look.fit(&format!("{} {help}", look.paint(Tone::Help, "help:")), 2, 8));
        look.fit(&format!("{head} {what}"), 0, 2) + &help.unwrap_or_default()
    }

    /// Writes to the error output. One that cannot be written is ignored.
    fn say(&mut self, text: &str) {
        let _ = self.out.flush();
        let _ = self.err.write_all(text.as_bytes()).and_then(|()| self.err.flush());
    }

    pub(super) fn is_coloured(&self) -> bool {
        self.look.colour
    }

    /// Returns the width of text for a reader.
    pub(super) fn measure(&self) -> usize {
        self.look.measure()
    }

    /// Returns whether text of this width fits on a terminal.
    pub(super) fn has_room(&self, width: usize) -> bool {
        self.look.width.is_none_or(|most| width <= most)
    }

    /// Returns a text in its colour.
    pub(super) fn paint(&self, tone: Tone, text: &str) -> String {
        self.look.paint(tone, text)
    }

    /// Returns the control sequences before and after a text in a colour.
    pub(super) fn around(&self, tone: Tone) -> [&'static str; 2] {
        self.look.around(tone)
    }

    /// Prints values after their names. A name may be empty: its value continues the one before.
    pub(super) fn facts<'n>(&mut self, facts: impl IntoIterator<Item = (&'n str, String)>) -> Result<(), Stop> {
        let facts: Vec<_> = facts.into_iter().collect();
        let column = facts.iter().map(|(name, _)| visible(name)).max().unwrap_or_default() + GAP;
        for (name, value) in facts {
            let value = self.look.fit(&value, column, column);
            let gap = &value[visible(name)..];
            self.print(&format!("{}{gap}", self.paint(Tone::Head, name)))?;
        }
        Ok(())
    }
}

/// Removes everything after the scheme of a URL, because a usage error may quote a URL with a password.
fn without_url(line: &str, end: &str) -> String {
    line.split_once("://").map_or_else(|| line.to_owned(), |(before, _)| format!("{before}://...{end}"))
}

/// The first words of a remedy. Errors name it after what is wrong.
const REMEDIES: &[&str] = &[
    "call ",
    "check ",
    "choose ",
    "close ",
    "create ",
    "export ",
    "give ",
    "install ",
    "keep ",
    "move ",
    "name ",
    "open ",
    "or give ",
    "pass ",
    "quote ",
    "remove ",
    "run ",
    "set ",
    "start ",
    "stop ",
    "there are: ",
    "try ",
    "use ",
    "wait ",
    "write ",
    "keys: ",
];

/// Splits the text of an error into what is wrong and the remedy, which begins with a suggestion if there is one.
fn remedy(text: &str) -> (String, Option<String>) {
    let begins = |rest: &str| REMEDIES.iter().any(|word| rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)));
    // Quotes and backticks enclose values and commands, which may hold any text.
    let is_quoted = |at: usize| ['"', '`'].iter().any(|quote| text[..at].matches(*quote).count() % 2 == 1);
    let marks = text.match_indices([':', ';', '.']).filter(|(at, _)| text[at + 1..].starts_with(' ') && !is_quoted(*at));
    let place = marks.map(|(at, _)| at).find(|at| begins(&text[at + 2..]));
    let (what, help) = place.map_or((text, None), |at| (&text[..at], Some(text[at + 2..].to_owned())));
    let near = what.find(" (did you mean ").filter(|at| !is_quoted(*at));
    let near = near.and_then(|at| Some((&what[..at], what[at + " (did you mean ".len()..].split_once(')')?)));
    let Some((before, (name, after))) = near else { return (what.to_owned(), help) };
    let help = help.map_or_else(String::new, |help| format!(" {help}"));
    (format!("{before}{after}"), Some(format!("did you mean {name}{help}")))
}

/// Formats 1234567 as `1,234,567`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 ID`, `2,000 IDs`
pub(super) fn counted(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Wraps a text at a width. Indents the first line by `first` and the others by `rest`.
pub(super) fn wrapped(text: &str, first: usize, rest: usize, width: usize) -> String {
    let mut lines = vec![" ".repeat(first)];
    let mut is_fresh = true;
    for word in text.split(' ') {
        let line = lines.last().map_or(0, |line| visible(line));
        if !is_fresh && line + 1 + visible(word) > width {
            lines.push(" ".repeat(rest));
            is_fresh = true;
        }
        if let Some(line) = lines.last_mut() {
            if !is_fresh {
                line.push(' ');
            }
            line.push_str(word);
        }
        is_fresh = false;
    }
    lines.join("\n") + "\n"
}

/// Returns the number of characters, without the control sequences of colours.
fn visible(text: &str) -> usize {
    let sequences: usize = text.split('\x1b').skip(1).map(|part| part.find('m').map_or(0, |end| end + 2)).sum();
    text.chars().count().saturating_sub(sequences)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped() {
        let word = "abcdefghi";
        let text = wrapped(&[word; 9].join(" "), 2, 4, 80);
        assert_eq!(text, format!("  {}\n    {word} {word}\n", [word; 7].join(" ")));
        assert_eq!(wrapped(&"x".repeat(100), 0, 2, 80), "x".repeat(100) + "\n");
        assert_eq!(wrapped("\x1b[1;31mab\x1b[0m cd ef", 0, 1, 5), "\x1b[1;31mab\x1b[0m cd\n ef\n", "colours have no width");
    }

    #[test]
    fn an_error_has_what_and_help_and_a_page() {
        let said = |look: Look| {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let why = "the preset \"x\" is unknown (did you mean y?): it is short; use one of `frazil layouts`. Use a spec otherwise";
            Screen::new(&mut out, &mut err, [look; 2]).fail("SPEC", why);
            String::from_utf8(err).unwrap()
        };
        let plain = "error[SPEC]: the preset \"x\" is unknown: it is short\n  help: did you mean y? use one of `frazil layouts`. Use a spec \
            otherwise\n  https://github.com/frazil/frazil/blob/main/docs/errors.md#spec\n";
        assert_eq!(said(Look::default()), plain);
        let narrow = said(Look { colour: true, width: Some(40) });
        assert!(
            narrow.starts_with("\x1b[1;31merror[SPEC]:\x1b[0m the preset \"x\" is unknown:\n  it is short\n  \x1b[1;36mhelp:"),
            "{narrow}"
        );
        assert!(narrow.contains("did you mean y? use one of\n        `frazil layouts`."), "{narrow}");
    }

    #[test]
    fn quoted_values_are_not_split_and_control_characters_are_escaped() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut screen = Screen::plain(&mut out, &mut err);
        screen.fail("SPEC", "\"a: use b (did you mean c?)\" in `x; run y` or \x1b[2J is wrong: use another");
        let text = String::from_utf8(err).unwrap();
        let says = "error[SPEC]: \"a: use b (did you mean c?)\" in `x; run y` or \\u{1b}[2J is wrong\n  help: use another\n";
        assert!(text.starts_with(says), "{text}");
    }

    #[test]
    fn numbers_in_groups() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (4_194_304, "4,194,304")] {
            assert_eq!(grouped(number), text);
        }
    }
}
