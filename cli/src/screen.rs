//! The output of a command: text as it arises, colour in a terminal only, tables whose columns are aligned.

use frazil::Error;
use std::fmt;
use std::io::{self, Write};

/// Why a command ended before its work was done.
pub(super) enum Stop {
    Error(Error),
    /// The output takes no more.
    Output(io::Error),
    /// One of the command's own [codes](super::code), and a text.
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

/// The exit status.
pub(super) type Outcome = Result<i32, Stop>;

/// The meaning of a text, which a terminal shows by its colour.
#[derive(Clone, Copy)]
pub(super) enum Tone {
    Head,
    Good,
    Warn,
    Bad,
    Quiet,
}

pub(super) struct Screen<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    colour: bool,
    /// In characters, of a terminal.
    width: Option<usize>,
}

impl<'a> Screen<'a> {
    /// A screen for any output: no colour, and no limit of width.
    pub(super) fn plain(out: &'a mut dyn Write, err: &'a mut dyn Write) -> Self {
        Screen { out, err, colour: false, width: None }
    }

    pub(super) fn terminal(out: &'a mut dyn Write, err: &'a mut dyn Write, colour: bool, width: Option<usize>) -> Self {
        Screen { out, err, colour, width }
    }

    /// The output and the errors of a command that writes them itself and returns its status.
    pub(super) fn hand_over(&mut self, command: impl FnOnce(&mut dyn Write, &mut dyn Write) -> i32) -> i32 {
        command(self.out, self.err)
    }

    /// Adds to the output.
    pub(super) fn print(&mut self, text: &str) -> Result<(), Stop> {
        Ok(self.out.write_all(text.as_bytes())?)
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        Ok(self.out.write_all(bytes)?)
    }

    pub(super) fn flush(&mut self) -> Result<(), Stop> {
        Ok(self.out.flush()?)
    }

    /// Tells the person at the terminal, behind what was printed.
    pub(super) fn tell(&mut self, text: &str) -> Result<(), Stop> {
        self.out.flush()?;
        // Where even errors cannot be written, there is nobody to tell.
        let _ = self.err.write_all(format!("{text}\n").as_bytes()).and_then(|()| self.err.flush());
        Ok(())
    }

    /// The screen of an output that takes nothing.
    pub(super) fn tell_despite(&mut self, text: &str) -> Result<(), Stop> {
        Ok(self.err.write_all(format!("{text}\n").as_bytes()).and_then(|()| self.err.flush())?)
    }

    pub(super) fn tell_error(&mut self, error: &Error) -> Result<(), Stop> {
        self.tell(&format!("frazil: {}: {error}", error.kind().name()))
    }

    pub(super) fn width(&self) -> Option<usize> {
        self.width
    }

    pub(super) fn is_coloured(&self) -> bool {
        self.colour
    }

    /// A text in its colour.
    pub(super) fn paint(&self, tone: Tone, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Head => "1",
            Tone::Good => "32",
            Tone::Warn => "33",
            Tone::Bad => "31",
            Tone::Quiet => "2",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Prints a table.
    pub(super) fn table(&mut self, table: &Table) -> Result<(), Stop> {
        let text = table.text(self.width);
        let (head, rows) = text.split_once('\n').unwrap_or((&text, ""));
        let head = self.paint(Tone::Head, head);
        self.print(&format!("{head}\n{rows}"))
    }
}

/// Rows under a head.
pub(super) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

struct Column {
    name: String,
    is_number: bool,
    /// Left out where a terminal is too narrow for all.
    is_spare: bool,
}

impl Table {
    pub(super) fn new() -> Self {
        Table { columns: Vec::new(), rows: Vec::new() }
    }

    pub(super) fn text_column(mut self, name: impl Into<String>) -> Self {
        self.columns.push(Column { name: name.into(), is_number: false, is_spare: false });
        self
    }

    pub(super) fn number_column(mut self, name: impl Into<String>) -> Self {
        self.columns.push(Column { name: name.into(), is_number: true, is_spare: false });
        self
    }

    /// The last column may be left out.
    pub(super) fn spare(mut self) -> Self {
        if let Some(column) = self.columns.last_mut() {
            column.is_spare = true;
        }
        self
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<_> = self.columns.iter().map(|column| column.name.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        widths
    }

    /// The head, and a line for each row; spare columns, the last first, give way to a width.
    pub(super) fn text(&self, width: Option<usize>) -> String {
        const GAP: usize = 2;
        let widths = self.widths();
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let total = |shown: &[usize]| shown.iter().map(|&at| widths[at] + GAP).sum::<usize>().saturating_sub(GAP);
        while width.is_some_and(|width| total(&shown) > width) {
            let Some(place) = shown.iter().rposition(|&at| self.columns[at].is_spare) else { break };
            shown.remove(place);
        }
        let line = |cell: &dyn Fn(usize) -> String| {
            let cells: Vec<_> = shown
                .iter()
                .map(|&at| {
                    let (cell, width) = (cell(at), widths[at]);
                    if self.columns[at].is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
                })
                .collect();
            cells.join("  ").trim_end().to_owned() + "\n"
        };
        let mut text = line(&|at| self.columns[at].name.clone());
        for row in &self.rows {
            text += &line(&|at| row.get(at).cloned().unwrap_or_default());
        }
        text
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(None))
    }
}

/// 1234567 as `1,234,567`.
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

/// A text in lines of at most 80 characters, the first indented by `first` and the others by `rest`.
pub(super) fn wrapped(text: &str, first: usize, rest: usize) -> String {
    const WIDTH: usize = 80;
    let mut lines = vec![" ".repeat(first)];
    let mut is_fresh = true;
    for word in text.split(' ') {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if !is_fresh && line + 1 + word.chars().count() > WIDTH {
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

/// Text of a store, a log or a person on a terminal: what would steer it is shown as an escape.
pub(super) fn plain(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_spare_ones_give_way() {
        let mut table = Table::new().text_column("name").number_column("count").text_column("about").spare();
        table.row(["ä".to_owned(), "7".to_owned(), "long text".to_owned()]);
        table.row(["twitter".to_owned(), "1234567".to_owned()]);
        assert_eq!(table.to_string(), "name       count  about\nä              7  long text\ntwitter  1234567\n");
        assert_eq!(table.text(Some(20)), "name       count\nä              7\ntwitter  1234567\n");
        assert_eq!(table.text(Some(3)), table.text(Some(20)), "no other column gives way");
    }

    #[test]
    fn lines_are_wrapped() {
        let word = "abcdefghi";
        let text = wrapped(&[word; 9].join(" "), 2, 4);
        assert_eq!(text, format!("  {}\n    {word} {word}\n", [word; 7].join(" ")));
        assert_eq!(wrapped(&"x".repeat(100), 0, 2), "x".repeat(100) + "\n");
    }

    #[test]
    fn numbers_in_groups() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (4_194_304, "4,194,304")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn a_terminal_is_not_steered() {
        assert_eq!(plain("ä\u{1b}[2J\n"), "ä\\u{1b}[2J\\n");
    }
}
