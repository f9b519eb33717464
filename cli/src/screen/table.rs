//! Tables with aligned columns.

use super::{Screen, Stop, Tone};

/// The characters between two columns.
pub(super) const GAP: usize = 2;

/// Rows under a head.
pub(in super::super) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

struct Column {
    name: String,
    is_number: bool,
    /// True if the column is left out on a narrow terminal.
    is_spare: bool,
    /// True if the cells may be shortened on a narrow terminal.
    is_elastic: bool,
}

impl Table {
    /// The least width of a column that is shortened.
    const LEAST: usize = 8;

    /// Makes a table of columns. `#` before a name aligns numbers to the right. A narrow terminal may leave a column out
    /// with `?` after its name, and shorten the cells of one with `~`.
    pub(in super::super) fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let column = |name: &str| Column {
            name: name.trim_matches(['#', '?', '~']).to_owned(),
            is_number: name.starts_with('#'),
            is_spare: name.ends_with('?'),
            is_elastic: name.ends_with('~'),
        };
        Table { columns: names.into_iter().map(column).collect(), rows: Vec::new() }
    }

    pub(in super::super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<_> = self.columns.iter().map(|column| column.name.chars().count()).collect();
        for row in &self.rows {
            // The last cell of a short row may extend over the other columns.
            let aligned = if row.len() < self.columns.len() { row.len().saturating_sub(1) } else { row.len() };
            for (width, cell) in widths.iter_mut().zip(&row[..aligned]) {
                *width = cell.chars().count().max(*width);
            }
        }
        widths
    }

    /// Selects the columns that fit the width: spare ones are left out, from the last. `None` if it is too narrow for the others.
    fn shown(&self, width: Option<usize>) -> Option<Vec<usize>> {
        let widths = self.widths();
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let least = |at: usize| if self.columns[at].is_elastic { widths[at].min(Self::LEAST) } else { widths[at] };
        let total = |shown: &[usize]| shown.iter().map(|&at| least(at) + GAP).sum::<usize>().saturating_sub(GAP);
        while width.is_some_and(|width| total(&shown) > width) {
            shown.remove(shown.iter().rposition(|&at| self.columns[at].is_spare)?);
        }
        Some(shown)
    }

    /// Formats the head and the rows.
    fn text(&self, shown: &[usize], width: Option<usize>) -> String {
        let mut widths = self.widths();
        let total = shown.iter().map(|&at| widths[at] + GAP).sum::<usize>().saturating_sub(GAP);
        if let Some(&at) = shown.iter().find(|&&at| self.columns[at].is_elastic) {
            widths[at] -= total.saturating_sub(width.unwrap_or(total)).min(widths[at].saturating_sub(Self::LEAST));
        }
        let line = |cells: &[String]| {
            let mut line = String::new();
            for (place, &at) in shown.iter().enumerate() {
                let cell = cells.get(at).map_or("", String::as_str);
                // The last cell of a short row extends over the other columns.
                let others = if at + 1 == cells.len() { &shown[place + 1..] } else { &[] };
                let room = widths[at] + others.iter().map(|&at| widths[at] + GAP).sum::<usize>();
                let cell = if width.is_some() && cell.chars().count() > room {
                    cell.chars().take(room.saturating_sub(2)).chain("..".chars()).collect()
                } else {
                    cell.to_owned()
                };
                let width = widths[at];
                line += &if self.columns[at].is_number { format!("{cell:>width$}  ") } else { format!("{cell:<width$}  ") };
            }
            line.trim_end().to_owned() + "\n"
        };
        let names: Vec<_> = self.columns.iter().map(|column| column.name.clone()).collect();
        [names].iter().chain(&self.rows).map(|cells| line(cells)).collect()
    }
}

impl Screen<'_> {
    /// Prints a table, and what the width of the terminal left out.
    pub(in super::super) fn table(&mut self, table: &Table) -> Result<(), Stop> {
        let Some(shown) = table.shown(self.look.width) else { return self.blocks(table) };
        let text = table.text(&shown, self.look.width);
        let (head, rows) = text.split_once('\n').unwrap_or((&text, ""));
        let head = self.paint(Tone::Head, head);
        self.print(&format!("{head}\n{rows}"))?;
        let missing: Vec<_> = (0..table.columns.len()).filter(|at| !shown.contains(at)).map(|at| &*table.columns[at].name).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let note = format!("Not shown in {} columns: {}. --json has them.", self.measure(), missing.join(", "));
        let note = self.look.fit(&note, 0, 0);
        self.print(&format!("\n{}\n", self.paint(Tone::Quiet, note.trim_end())))
    }

    /// Prints the rows one below the other, for a table that is too wide.
    fn blocks(&mut self, table: &Table) -> Result<(), Stop> {
        for (number, row) in table.rows.iter().enumerate() {
            if number > 0 {
                self.print("\n")?;
            }
            let cells = table.columns.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
            self.facts(cells.map(|(column, cell)| (column.name.as_str(), cell.clone())))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Look;
    use super::*;

    fn printed(table: &Table, width: usize) -> String {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let look = Look { colour: false, width: Some(width) };
        Screen::new(&mut out, &mut err, [look; 2]).table(table).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_long_cell_of_a_short_row_fits_any_column() {
        let mut table = Table::new(["a", "b?"]);
        table.row(["twitter".to_owned()]);
        table.row(["x".to_owned(), "long text".to_owned()]);
        assert_eq!(printed(&table, 8), "a\n..\nx\n\nNot\nshown in\n8\ncolumns:\nb.\n--json\nhas\nthem.\n");
    }

    #[test]
    fn columns_are_aligned_and_spare_ones_are_left_out() {
        let mut table = Table::new(["name~", "#count", "about?"]);
        table.row(["ä".to_owned(), "7".to_owned(), "long text".to_owned()]);
        table.row(["twitter-by-x".to_owned(), "1234567".to_owned(), String::new()]);
        let wide = "name            count  about\nä                   7  long text\ntwitter-by-x  1234567\n";
        assert_eq!(printed(&table, 32), wide);
        assert_eq!(printed(&table, 30), "name          count  about\nä                 7  long text\ntwitter-..  1234567\n");
        let narrow =
            "name           count\nä                  7\ntwitter-b..  1234567\n\nNot shown in 20\ncolumns: about.\n--json has them.\n";
        assert_eq!(printed(&table, 20), narrow);
        assert_eq!(printed(&table, 10), "name   ä\ncount  7\nabout  long\n       text\n\nname   twitter-by-x\ncount  1234567\n");
    }
}
