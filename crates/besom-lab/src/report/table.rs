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

    fn widths(&self) -> Vec<usize> {
        let width = |index: usize| {
            let cells = self.rows.iter().map(|row| row[index].chars().count());
            cells.chain([self.columns[index].heading.chars().count()]).max().unwrap_or(0)
        };
        (0..self.columns.len()).map(width).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        writeln!(f, "{}\n", self.caption)?;
        let headings = self.columns.iter().map(|column| column.heading.as_str());
        write_line(f, &self.columns, &widths, headings)?;
        let rules: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
        write_line(f, &self.columns, &widths, rules.iter().map(String::as_str))?;
        self.rows
            .iter()
            .try_for_each(|row| write_line(f, &self.columns, &widths, row.iter().map(String::as_str)))
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
