//! What can be wrong with a file of keys.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// A file of keys could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// It could not be opened.
    #[error("{path}: {source}")]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Reading stopped in the middle: the disk failed, or compressed data is damaged.
    #[error("byte {offset}: {source}")]
    Read {
        /// How many bytes were read before (after decompression).
        offset: u64,
        /// What happened.
        source: io::Error,
    },
    /// The text is in UTF-16.
    #[error("this is UTF-16 text; convert it to UTF-8 first, for example with iconv -f UTF-16 -t UTF-8")]
    Utf16,
    /// It is no text.
    #[error(
        "this is a binary file, not text with a key a line; if its lines are keys all the same, say so with the format lines"
    )]
    Binary,
    /// A line is not what the format wants.
    #[error("line {line}: {problem}")]
    Line {
        /// Which line, counted from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// A packet capture is damaged.
    #[error("byte {offset}: {problem}")]
    Capture {
        /// Where the damaged block begins.
        offset: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// A parameter of a generator makes no sense.
    #[error("{name} = {value}: {problem}")]
    Parameter {
        /// Which parameter.
        name: &'static str,
        /// Its value.
        value: f64,
        /// What is wrong with it.
        problem: &'static str,
    },
}
