//! Fields of JSON lines.

use std::io::BufRead;

use super::{KeyStream, Lines, WorkloadError};

/// One field of files with a JSON object a line (`.jsonl`, `.ndjson`): texts and numbers are keys.
///
/// ```
/// use besom_lab::workload::{JsonField, KeyStream};
///
/// let text = "{\"name\": \"a\", \"n\": 1}\n{\"name\": \"b\"}\n";
/// let mut field = JsonField::new(text.as_bytes(), Some("name".into()));
/// let mut key = Vec::new();
/// assert!(field.next_key(&mut key)? && key == b"a");
/// assert!(field.next_key(&mut key)? && key == b"b");
/// assert!(!field.next_key(&mut key)?);
/// # Ok::<(), besom_lab::workload::WorkloadError>(())
/// ```
#[derive(Debug)]
pub struct JsonField<R> {
    lines: Lines<R>,
    field: Option<String>,
}

impl<R: BufRead> JsonField<R> {
    /// Reads a field of each object; without a name, the only one of the first.
    pub fn new(reader: R, field: Option<String>) -> Self {
        Self { lines: Lines::new(reader), field }
    }

    /// The key in a line, or what is wrong with it.
    fn key(&mut self, line: &[u8]) -> Result<String, String> {
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(line).map_err(|error| format!("no JSON object: {error}"))?;
        let names = || object.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let field = match (&self.field, object.len()) {
            (Some(field), _) => field.clone(),
            (None, 1) => names(),
            (None, _) => {
                return Err(format!(
                    "which field has the keys? Say jsonl:FIELD as the format; there are {}",
                    names()
                ));
            }
        };
        let key = match object.get(&field) {
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(serde_json::Value::Number(number)) => number.to_string(),
            Some(_) => return Err(format!("the field {field} is neither a text nor a number")),
            None => return Err(format!("there is no field {field}; there are {}", names())),
        };
        self.field = Some(field);
        Ok(key)
    }
}

impl<R: BufRead + Send> KeyStream for JsonField<R> {
    fn next_key(&mut self, key: &mut Vec<u8>) -> Result<bool, WorkloadError> {
        if !self.lines.next_key(key)? {
            return Ok(false);
        }
        let found = self.key(&std::mem::take(key));
        let found = found.map_err(|problem| WorkloadError::Line { line: self.lines.line(), problem })?;
        *key = found.into_bytes();
        Ok(true)
    }

    fn skipped(&self) -> u64 {
        self.lines.skipped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(text: &str, field: Option<&str>) -> Result<String, String> {
        let mut stream = JsonField::new(text.as_bytes(), field.map(str::to_owned));
        let mut key = Vec::new();
        stream.next_key(&mut key).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(key).unwrap())
    }

    #[test]
    fn what_is_no_key_is_named_with_its_line() {
        assert_eq!(first("\n{\"a\": 12.5}", None).unwrap(), "12.5");
        assert_eq!(first("{\"a\": 1, \"b\": \"\\u00e4\"}", Some("b")).unwrap(), "ä");
        assert!(
            first("{\"a\": 1, \"b\": 2}", None)
                .unwrap_err()
                .contains("jsonl:FIELD as the format; there are a, b")
        );
        assert!(first("{\"a\": 1}", Some("b")).unwrap_err().starts_with("line 1: there is no field b"));
        assert!(first("{\"a\": [1]}", None).unwrap_err().contains("neither a text nor a number"));
        assert!(first("\n\n[1]", None).unwrap_err().starts_with("line 3: no JSON object"));
    }
}
