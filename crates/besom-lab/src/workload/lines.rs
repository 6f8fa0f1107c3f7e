//! Files with a key a line.

use std::io::{BufRead, Read};

use super::{KeyStream, WorkloadError};

/// The lines of a text as keys, without their line ends (`\n` or `\r\n`). Blank lines are skipped, and counted.
///
/// ```
/// use besom_lab::workload::{KeyStream, Lines};
///
/// let mut lines = Lines::new("one\r\ntwo".as_bytes());
/// let mut key = Vec::new();
/// assert!(lines.next_key(&mut key)? && key == b"one");
/// assert!(lines.next_key(&mut key)? && key == b"two");
/// assert!(!lines.next_key(&mut key)?);
/// # Ok::<(), besom_lab::workload::WorkloadError>(())
/// ```
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    line: u64,
    offset: u64,
    skipped: u64,
}

/// The longest line that is taken for one: a file without line ends is no file of keys.
pub(super) const LONGEST: usize = 1 << 20;

impl<R: BufRead> Lines<R> {
    /// Reads keys from a text.
    pub fn new(reader: R) -> Self {
        Self { reader, line: 0, offset: 0, skipped: 0 }
    }

    /// The number of the line that was read last, counted from 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Reads a line into `text`; `false` at the end.
    pub(super) fn read(&mut self, text: &mut Vec<u8>) -> Result<bool, WorkloadError> {
        text.clear();
        let mut limited = (&mut self.reader).take(LONGEST as u64 + 2);
        let read = limited
            .read_until(b'\n', text)
            .map_err(|source| WorkloadError::Read { offset: self.offset, source })?;
        if read == 0 {
            return Ok(false);
        }
        self.line += 1;
        self.offset += read as u64;
        if text.last() == Some(&b'\n') {
            text.pop();
            if text.last() == Some(&b'\r') {
                text.pop();
            }
        }
        if text.len() > LONGEST {
            let problem = format!("longer than {LONGEST} bytes; is this a text with a key a line?");
            return Err(WorkloadError::Line { line: self.line, problem });
        }
        Ok(true)
    }
}

impl<R: BufRead + Send> KeyStream for Lines<R> {
    fn next_key(&mut self, key: &mut Vec<u8>) -> Result<bool, WorkloadError> {
        while self.read(key)? {
            if !key.is_empty() {
                return Ok(true);
            }
            self.skipped += 1;
        }
        Ok(false)
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_line_is_refused_with_its_number() {
        let mut text = b"short\n".to_vec();
        text.resize(LONGEST + 100, b'x');
        let mut lines = Lines::new(text.as_slice());
        let mut key = Vec::new();
        assert!(lines.next_key(&mut key).unwrap());
        let error = lines.next_key(&mut key).unwrap_err();
        assert!(matches!(error, WorkloadError::Line { line: 2, .. }), "{error}");
    }

    #[test]
    fn keys_may_be_any_bytes() {
        let mut lines = Lines::new(&b"\xff\x00\n\n\rx\n"[..]);
        let (mut key, mut keys) = (Vec::new(), Vec::new());
        while lines.next_key(&mut key).unwrap() {
            keys.push(key.clone());
        }
        assert_eq!(keys, [&b"\xff\x00"[..], b"\rx"]);
        assert_eq!(lines.skipped(), 1);
    }
}
