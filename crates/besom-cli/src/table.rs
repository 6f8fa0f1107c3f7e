//! Tables in the terminal.

use crate::output::Paint;

/// To which side the cells of a column lean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table of texts, which may be coloured.
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<T: AsRef<str>>(columns: &[(T, Align)]) -> Self {
        let columns = columns.iter().map(|(heading, align)| (heading.as_ref().to_owned(), *align)).collect();
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row of as many cells as there are columns.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    pub(crate) fn render(&self, paint: Paint) -> String {
        let width = |index: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(index)).map(|cell| visible(cell));
            cells.chain([self.columns[index].0.chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let headings: Vec<String> = self.columns.iter().map(|(heading, _)| paint.bold(heading)).collect();
        let mut text = self.line(&headings, &widths);
        let rule: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
        text += &paint.dim(self.line(&rule, &widths).trim_end());
        text.push('\n');
        self.rows.iter().for_each(|row| text += &self.line(row, &widths));
        text
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let padded = cells.iter().zip(&self.columns).zip(widths).map(|((cell, (_, align)), &width)| {
            let room = " ".repeat(width.saturating_sub(visible(cell)));
            if *align == Align::Right { room + cell } else { cell.clone() + &room }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    }
}

/// The letters of a text that are seen: colours are not.
fn visible(text: &str) -> usize {
    let (mut count, mut escaped) = (0, false);
    for letter in text.chars() {
        match letter {
            '\x1b' => escaped = true,
            'm' if escaped => escaped = false,
            _ => count += usize::from(!escaped),
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_take_no_room() {
        assert_eq!(visible("\x1b[32m\x1b[1mab\x1b[0m\x1b[0mc"), 3);
        assert_eq!(visible("größer"), 6);
    }
}
