//! Keys from files and from standard input.

use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use besom_lab::workload::{self, Format, KeyStream};

use crate::error::{Failure, Outcome};
use crate::interrupt;
use crate::keys::KeySet;

/// Standard input on command lines.
const STDIN: &str = "-";

/// The formats of files of keys, for `--help`.
const FORMATS: &str = "\
Formats of files of keys:
  lines         one key per line, of any bytes; skips blank lines. The default for all other names
  csv:COLUMN    a column of a comma-separated table: its heading, or its number from 1 if there is no heading (.csv)
  tsv:COLUMN    the same with tabs (.tsv)
  jsonl:FIELD   a field of one JSON object per line: strings and numbers (.jsonl, .ndjson)
  arc, capture  disk traces of the ARC paper (.lis), packet captures
A table with a single column needs no COLUMN. Files may be compressed with gzip or zstd. A byte-order mark is not part
of a key. UTF-16 and binary files are refused.";

/// What stands below the help of a command that reads keys.
pub(crate) fn with_formats(text: &str) -> String {
    format!("{text}\n\n{FORMATS}")
}

/// A file of keys, or standard input.
pub(crate) struct Input {
    /// What it is called in messages.
    pub(crate) name: String,
    stream: Box<dyn KeyStream>,
    /// Whether there is a line that can be read without waiting.
    ready: Arc<AtomicBool>,
}

impl Input {
    /// Opens a file; `-` is standard input. Plain, gzip or zstd; the format is found out if it is not given.
    pub(crate) fn open(path: &Path, format: Option<&Format>) -> Outcome<Self> {
        let name =
            if path == Path::new(STDIN) { "standard input".into() } else { path.display().to_string() };
        let ready = Arc::new(AtomicBool::new(true));
        let stream = if path == Path::new(STDIN) {
            let piped = Piped { stdin: io::stdin(), buffer: Vec::new(), start: 0, ready: ready.clone() };
            interrupt::while_idle(|| workload::read(Path::new(&name), format.cloned(), piped))
        } else {
            match format {
                Some(format) => workload::open_as(path, format.clone()),
                None => workload::open(path),
            }
        };
        match stream {
            Ok(stream) => Ok(Self { name, stream, ready }),
            // These have the name in them already.
            Err(workload::WorkloadError::Open { source, .. }) => Err(Failure::Io { what: name, source }),
            Err(source) => Err(Failure::Keys { name, source }),
        }
    }

    /// The next key; `false` at the end.
    pub(crate) fn next(&mut self, key: &mut Vec<u8>) -> Outcome<bool> {
        self.stream.next_key(key).map_err(|source| Failure::Keys { name: self.name.clone(), source })
    }

    /// Whether the next key is there already: one who answers line by line answers now if it is not.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    /// How many blank lines were passed over so far.
    pub(crate) fn skipped(&self) -> u64 {
        self.stream.skipped()
    }

    /// All keys, each once.
    pub(crate) fn into_set(mut self) -> Outcome<(KeySet, Passed)> {
        interrupt::while_idle(|| {
            let (mut set, mut key, mut repeated) = (KeySet::new(), Vec::new(), 0);
            while self.next(&mut key)? {
                let (_, new) = set.insert(&key).ok_or_else(|| too_many(&self.name))?;
                repeated += u64::from(!new);
            }
            if set.len() == 0 {
                return Err(self.empty());
            }
            Ok((set, Passed { repeated, blank: self.skipped() }))
        })
    }

    /// There was nothing in it.
    pub(crate) fn empty(&self) -> Failure {
        Failure::Usage(format!("{}: contains no keys", self.name))
    }
}

/// Lines that are no key of a set.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Passed {
    /// Lines that repeated a key.
    pub(crate) repeated: u64,
    pub(crate) blank: u64,
}

impl Passed {
    /// In brackets, if there were any.
    pub(crate) fn describe(self) -> String {
        let thousands = crate::output::thousands;
        match (self.repeated, self.blank) {
            (0, 0) => String::new(),
            (repeated, 0) => format!(" ({} lines repeated a key)", thousands(repeated)),
            (0, blank) => format!(" ({} blank lines skipped)", thousands(blank)),
            (repeated, blank) => {
                format!(
                    " ({} lines repeated a key, {} blank ones skipped)",
                    thousands(repeated),
                    thousands(blank)
                )
            }
        }
    }
}

/// More keys than have numbers.
pub(crate) fn too_many(name: &str) -> Failure {
    Failure::Usage(format!("{name}: more than {} distinct keys; take a part of them", KeySet::MOST))
}

/// Standard input, which tells whether a whole line is there.
struct Piped {
    stdin: io::Stdin,
    buffer: Vec<u8>,
    start: usize,
    ready: Arc<AtomicBool>,
}

/// Bytes that are read at once.
const AT_ONCE: usize = 1 << 16;

impl Read for Piped {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(bytes)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Piped {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.buffer.len() {
            self.buffer.resize(AT_ONCE, 0);
            let read = self.stdin.read(&mut self.buffer)?;
            self.buffer.truncate(read);
            self.start = 0;
        }
        Ok(&self.buffer[self.start..])
    }

    fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        self.ready.store(self.buffer[self.start..].contains(&b'\n'), Ordering::Relaxed);
    }
}
