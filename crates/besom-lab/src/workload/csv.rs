//! Columns of CSV and TSV files.

use std::io::Read;

use super::{KeyStream, WorkloadError};

/// What stands between the fields of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Separator {
    /// CSV: commas, and quotes around fields that need them.
    Comma,
    /// TSV: tabs, and no quotes.
    Tab,
}

/// The fields of one column of a table as keys: CSV (RFC 4180: commas, quotes that are doubled) or TSV.
///
/// The column is a heading of the first line. If it is a number, and no heading is called so, it is counted from 1 and
/// the first line has keys like any other. Without a column, the table must have only one, with a heading.
///
/// ```
/// use besom_lab::workload::{CsvColumn, KeyStream, Separator};
///
/// let mut column = CsvColumn::new("id,name\n1,\"a,b\"\n2,c\n".as_bytes(), Separator::Comma, Some("name"))?;
/// let mut key = Vec::new();
/// assert!(column.next_key(&mut key)? && key == b"a,b");
/// assert!(column.next_key(&mut key)? && key == b"c");
/// assert!(!column.next_key(&mut key)?);
/// # Ok::<(), besom_lab::workload::WorkloadError>(())
/// ```
pub struct CsvColumn<R> {
    reader: csv::Reader<R>,
    record: csv::ByteRecord,
    /// Counted from 0.
    column: usize,
    /// The first line was read to find headings, and is a record.
    pending: bool,
}

impl<R: Read> CsvColumn<R> {
    /// Reads a column of a file.
    ///
    /// # Errors
    ///
    /// [`WorkloadError::Line`] if there is no such column, or none was named where there are several, and what is wrong
    /// with the input.
    pub fn new(input: R, separator: Separator, column: Option<&str>) -> Result<Self, WorkloadError> {
        let mut builder = csv::ReaderBuilder::new();
        builder.has_headers(false).flexible(true);
        if separator == Separator::Tab {
            builder.delimiter(b'\t').quoting(false);
        }
        let mut reader = builder.from_reader(input);
        let mut record = csv::ByteRecord::new();
        let some = reader.read_byte_record(&mut record).map_err(|error| broken(&error))?;
        let Some(column) = column else {
            return if record.len() < 2 {
                Ok(Self { reader, record, column: 0, pending: false })
            } else {
                Err(unclear(&record, separator))
            };
        };
        let heading = record.iter().position(|field| field == column.as_bytes());
        let number = column.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        match (heading, number) {
            (Some(column), _) => Ok(Self { reader, record, column, pending: false }),
            (None, Some(column)) => Ok(Self { reader, record, column, pending: some }),
            (None, None) => {
                let problem = format!("no column is called {column}; there are {}", headings(&record));
                Err(WorkloadError::Line { line: 1, problem })
            }
        }
    }
}

fn headings(record: &csv::ByteRecord) -> String {
    record.iter().map(String::from_utf8_lossy).collect::<Vec<_>>().join(", ")
}

/// Several columns, and nobody said which.
fn unclear(record: &csv::ByteRecord, separator: Separator) -> WorkloadError {
    let kind = if separator == Separator::Comma { "csv" } else { "tsv" };
    let problem =
        format!("which column has the keys? Say {kind}:COLUMN as the format; there are {}", headings(record));
    WorkloadError::Line { line: 1, problem }
}

impl<R: Read + Send> KeyStream for CsvColumn<R> {
    fn next_key(&mut self, key: &mut Vec<u8>) -> Result<bool, WorkloadError> {
        if !std::mem::take(&mut self.pending) {
            let some = self.reader.read_byte_record(&mut self.record).map_err(|error| broken(&error))?;
            if !some {
                return Ok(false);
            }
        }
        let Some(field) = self.record.get(self.column) else {
            let line = self.record.position().map_or(0, csv::Position::line);
            let problem =
                format!("{} columns, where column {} was asked for", self.record.len(), self.column + 1);
            return Err(WorkloadError::Line { line, problem });
        };
        key.clear();
        key.extend_from_slice(field);
        Ok(true)
    }
}

fn broken(error: &csv::Error) -> WorkloadError {
    let place = error.position();
    WorkloadError::Line { line: place.map_or(0, csv::Position::line), problem: error.to_string() }
}

impl<R> std::fmt::Debug for CsvColumn<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CsvColumn").field("column", &self.column).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str, column: &str) -> Result<Vec<String>, String> {
        let text = text.to_owned();
        let mut stream = CsvColumn::new(
            std::io::Cursor::new(text),
            Separator::Comma,
            Some(column).filter(|it| !it.is_empty()),
        )
        .map_err(|error| error.to_string())?;
        let (mut key, mut keys) = (Vec::new(), Vec::new());
        while stream.next_key(&mut key).map_err(|error| error.to_string())? {
            keys.push(String::from_utf8(key.clone()).unwrap());
        }
        Ok(keys)
    }

    #[test]
    fn columns_have_headings_or_numbers() {
        assert_eq!(keys("a,b\n1,2\n3,4\n", "b").unwrap(), ["2", "4"]);
        assert_eq!(keys("a,b\n1,2\n", "2").unwrap(), ["b", "2"]);
        assert_eq!(keys("1,2\n3,4\n", "2").unwrap(), ["4"], "a heading comes first");
        assert!(keys("", "1").unwrap().is_empty());
        assert_eq!(keys("a\n1\n2\n", "").unwrap(), ["1", "2"], "the only one, with a heading");
        assert!(keys("a,b\n1,2\n", "").unwrap_err().contains("csv:COLUMN as the format; there are a, b"));
    }

    #[test]
    fn errors_say_where() {
        assert!(keys("a,b\n1,2\n", "c").unwrap_err().contains("there are a, b"));
        assert_eq!(
            keys("a,b\n1,2\n3\n", "b").unwrap_err(),
            "line 3: 1 columns, where column 2 was asked for"
        );
        assert!(keys("a\n1\n", "0").unwrap_err().contains("no column is called 0"));
    }
}
