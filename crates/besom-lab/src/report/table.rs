//! Tables, in the terminal and on the page.

use std::fmt;

use serde::Serialize;

/// A column's heading, and whether its cells are numbers (and lean right).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Column {
    /// The heading, with the unit.
    pub heading: String,
    /// Whether cells lean right.
    pub numeric: bool,
}

impl Column {
    /// A column of words.
    pub fn text(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), numeric: false }
    }

    /// A column of numbers.
    pub fn number(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), numeric: true }
    }
}

/// A captioned table of texts.
///
/// ```
/// use besom_lab::report::{Column, Table};
///
/// let mut table = Table::new("Space", vec![Column::text("filter"), Column::number("bits a key")]);
/// table.row(["broom", "11.2"]);
/// assert_eq!(table.to_string(), "Space\n\nfilter  bits a key\n──────  ──────────\nbroom         11.2\n");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Table {
    /// What the table shows.
    pub caption: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows; each has one cell per column.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(caption: impl Into<String>, columns: Vec<Column>) -> Self {
        Self { caption: caption.into(), columns, rows: Vec::new() }
    }

    /// Adds a row. Missing cells stay empty, surplus ones are dropped.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let mut row: Vec<String> = cells.into_iter().map(Into::into).collect();
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    /// The width of each column in the terminal: that of its longest line.
    fn widths(&self, rows: &[Vec<Vec<String>>]) -> Vec<usize> {
        let width = |index: usize| {
            let cells = rows.iter().flat_map(|row| &row[index]).map(|line| line.chars().count());
            cells.chain([self.columns[index].heading.chars().count()]).max().unwrap_or(0)
        };
        (0..self.columns.len()).map(width).collect()
    }
}

/// The longest line of a cell of words in the terminal.
const LONGEST: usize = 52;

/// A cell in lines of at most [`LONGEST`] letters, broken between words.
fn wrap(cell: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in cell.split(' ') {
        let line = lines.last_mut().expect("there is a line from the start");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > LONGEST {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wrapped = |row: &Vec<String>| -> Vec<Vec<String>> {
            let cells = row.iter().zip(&self.columns);
            cells.map(|(cell, column)| if column.numeric { vec![cell.clone()] } else { wrap(cell) }).collect()
        };
        let rows: Vec<Vec<Vec<String>>> = self.rows.iter().map(wrapped).collect();
        let widths = self.widths(&rows);
        writeln!(f, "{}\n", self.caption)?;
        let headings = self.columns.iter().map(|column| column.heading.as_str());
        write_line(f, &self.columns, &widths, headings)?;
        let rules: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
        write_line(f, &self.columns, &widths, rules.iter().map(String::as_str))?;
        for row in &rows {
            let height = row.iter().map(Vec::len).max().unwrap_or(0);
            for line in 0..height {
                let cells = row.iter().map(|cell| cell.get(line).map_or("", String::as_str));
                write_line(f, &self.columns, &widths, cells)?;
            }
        }
        Ok(())
    }
}

fn write_line<'a>(
    f: &mut fmt::Formatter<'_>,
    columns: &[Column],
    widths: &[usize],
    cells: impl Iterator<Item = &'a str>,
) -> fmt::Result {
    let padded = columns.iter().zip(widths).zip(cells).map(|((column, &width), cell)| {
        if column.numeric { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
    });
    let line = padded.collect::<Vec<_>>().join("  ");
    writeln!(f, "{}", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_of_a_table_are_broken_into_lines() {
        let mut table = Table::new("T", vec![Column::text("what"), Column::number("n")]);
        table.row(["word ".repeat(20).trim_end().to_owned(), "1".to_owned()]);
        table.row(["x".repeat(LONGEST + 5)]);
        let text = table.to_string();
        let lines: Vec<&str> = text.lines().skip(4).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].ends_with('1') && lines[1].ends_with("word") && lines[2].ends_with('x'));
    }

    #[test]
    fn rows_have_as_many_cells_as_there_are_columns() {
        let mut table = Table::new("T", vec![Column::text("a"), Column::text("b")]);
        table.row(["1"]);
        table.row(["1", "2", "3"]);
        assert_eq!(table.rows, [["1", ""], ["1", "2"]]);
    }
}
