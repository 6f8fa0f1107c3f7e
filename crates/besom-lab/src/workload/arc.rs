//! Disk traces in the format of the ARC paper (Megiddo and Modha, FAST 2003).

use std::io::BufRead;
use std::ops::Range;

use super::{KeyStream, Lines, WorkloadError};

/// Requests for pages: each line `start count …` asks for the pages start, start + 1, …, start + count − 1.
/// Further fields of a line are ignored.
///
/// ```
/// use besom_lab::workload::{ArcTrace, KeyStream};
///
/// let mut trace = ArcTrace::new("64 2 0 0\n7 1 0 1\n".as_bytes());
/// let (mut key, mut pages) = (Vec::new(), Vec::new());
/// while trace.next_key(&mut key)? {
///     pages.push(u64::from_le_bytes(key.as_slice().try_into().unwrap()));
/// }
/// assert_eq!(pages, [64, 65, 7]);
/// # Ok::<(), besom_lab::workload::WorkloadError>(())
/// ```
#[derive(Debug)]
pub struct ArcTrace<R> {
    lines: Lines<R>,
    text: Vec<u8>,
    pages: Range<u64>,
}

impl<R: BufRead> ArcTrace<R> {
    /// Reads a trace.
    pub fn new(reader: R) -> Self {
        Self { lines: Lines::new(reader), text: Vec::new(), pages: 0..0 }
    }

    fn parse(&self) -> Result<Range<u64>, String> {
        let text = std::str::from_utf8(&self.text).map_err(|error| error.to_string())?;
        let mut fields = text.split_ascii_whitespace();
        let mut number = |name: &str| {
            let field = fields.next().ok_or_else(|| format!("no {name} in `{}`", text.trim()))?;
            field.parse::<u64>().map_err(|error| format!("the {name} `{field}`: {error}"))
        };
        let (start, count) = (number("first page")?, number("number of pages")?);
        let end = start.checked_add(count).ok_or_else(|| format!("{start} + {count} is beyond 64 bits"))?;
        Ok(start..end)
    }
}

impl<R: BufRead + Send> KeyStream for ArcTrace<R> {
    fn next_key(&mut self, key: &mut Vec<u8>) -> Result<bool, WorkloadError> {
        loop {
            if let Some(page) = self.pages.next() {
                key.clear();
                key.extend_from_slice(&page.to_le_bytes());
                return Ok(true);
            }
            if !self.lines.read(&mut self.text)? {
                return Ok(false);
            }
            // Files may end with an empty line.
            if self.text.iter().any(|byte| !byte.is_ascii_whitespace()) {
                let line = self.lines.line();
                self.pages = self.parse().map_err(|problem| WorkloadError::Line { line, problem })?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(text: &str) -> String {
        let mut trace = ArcTrace::new(text.as_bytes());
        let mut key = Vec::new();
        loop {
            match trace.next_key(&mut key) {
                Ok(true) => {}
                Ok(false) => return "none".into(),
                Err(error) => return error.to_string(),
            }
        }
    }

    #[test]
    fn errors_name_the_line() {
        assert_eq!(error_of("1 1 0 0\n5\n"), "line 2: no number of pages in `5`");
        assert_eq!(error_of("1 1\n\nx 1\n"), "line 3: the first page `x`: invalid digit found in string");
        assert_eq!(error_of("18446744073709551615 2"), "line 1: 18446744073709551615 + 2 is beyond 64 bits");
        assert!(error_of("\u{fffd}\n").starts_with("line 1"));
        assert_eq!(error_of("1 0 0 0\n2 1 0 1\n\n"), "none");
    }
}
