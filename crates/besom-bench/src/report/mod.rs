//! What the user sees: a table, JSON, or the list of filters.

mod json;
mod table;

use std::io::{self, Write, stdout};

use crate::measure::{Plan, Row};
use crate::subject::Entry;

/// Writes the rows as a JSON list to standard output.
pub(crate) fn json(rows: &[Row]) -> io::Result<()> {
    writeln!(stdout().lock(), "{}", json::render(rows)?)
}

/// Writes the rows as tables to standard output, with footnotes.
pub(crate) fn table(plan: &Plan, rows: &[Row]) -> io::Result<()> {
    stdout().lock().write_all(table::render(plan, rows).as_bytes())
}

/// Writes names and configurations of the filters to standard output.
pub(crate) fn list(entries: &[Entry]) -> io::Result<()> {
    stdout().lock().write_all(table::footnotes(entries).as_bytes())
}
