//! The journal: one line of JSON per finished task, written and flushed at once.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::experiment::{Point, Setting, Size};

/// The journal's name in the folder of a run.
pub(super) const FILE: &str = "points.jsonl";

/// Why a journal cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JournalError {
    /// It cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The journal.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// There is something else where the folder of the run should be.
    #[error("{path} is no folder; choose another --out")]
    NoFolder {
        /// What was given.
        path: PathBuf,
    },
    /// It was written with other settings, so that its points do not fit this run.
    #[error(
        "{path} holds a run with {theirs}, this one has {ours}; leave --resume out, or choose another --out"
    )]
    OtherRun {
        /// The journal.
        path: PathBuf,
        /// The settings it was written with.
        theirs: String,
        /// The settings of this run.
        ours: String,
    },
    /// A line that is not the last one cannot be understood.
    #[error("{path}, line {line}: {source}")]
    Malformed {
        /// The journal.
        path: PathBuf,
        /// Which line, counted from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// The first line: what the points depend on.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Head {
    version: String,
    size: Size,
    seed: u64,
    runs: Option<u32>,
    data: Option<PathBuf>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    experiment: String,
    task: String,
    points: Vec<Point>,
}

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
}

impl Journal {
    /// Starts a journal in the folder, or goes on with the one that is there; returns what it holds already, by
    /// experiment and task.
    ///
    /// # Errors
    ///
    /// When it cannot be read or written, or was made with other settings.
    #[expect(clippy::type_complexity, reason = "a name would hide that it is a map from (experiment, task)")]
    pub fn open(
        folder: &Path,
        setting: &Setting,
        resume: bool,
    ) -> Result<(Self, HashMap<(String, String), Vec<Point>>), JournalError> {
        let path = folder.join(FILE);
        let io = |source| JournalError::Io { path: path.clone(), source };
        if folder.exists() && !folder.is_dir() {
            return Err(JournalError::NoFolder { path: folder.to_owned() });
        }
        fs::create_dir_all(folder).map_err(io)?;
        let head = Head {
            version: env!("CARGO_PKG_VERSION").into(),
            size: setting.size,
            seed: setting.seed,
            runs: setting.runs,
            data: setting.data.clone(),
        };
        let mut finished = HashMap::new();
        if resume && path.exists() {
            let whole = read(&path, &head, &mut finished)?;
            let file = OpenOptions::new().write(true).open(&path).map_err(io)?;
            // What an interruption left of its last line goes.
            file.set_len(whole).map_err(io)?;
            drop(file);
            let file = OpenOptions::new().append(true).open(&path).map_err(io)?;
            return Ok((Self { file }, finished));
        }
        let mut file = File::create(&path).map_err(io)?;
        serde_json::to_writer(&file, &head).map_err(|error| io(error.into()))?;
        file.write_all(b"\n").map_err(io)?;
        Ok((Self { file }, finished))
    }

    /// Adds a finished task.
    ///
    /// # Errors
    ///
    /// When the journal cannot be written.
    pub fn append(&mut self, experiment: &str, task: &str, points: &[Point]) -> io::Result<()> {
        let entry = Entry { experiment: experiment.into(), task: task.into(), points: points.to_vec() };
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.file.flush()
    }
}

/// Reads a journal and returns the length of its whole lines in bytes.
fn read(
    path: &Path,
    head: &Head,
    finished: &mut HashMap<(String, String), Vec<Point>>,
) -> Result<u64, JournalError> {
    let io = |source| JournalError::Io { path: path.to_owned(), source };
    let malformed = |line, source| JournalError::Malformed { path: path.to_owned(), line, source };
    let mut reader = BufReader::new(File::open(path).map_err(io)?);
    let (mut text, mut whole) = (String::new(), 0);
    for number in 1.. {
        text.clear();
        reader.read_line(&mut text).map_err(io)?;
        if !text.ends_with('\n') {
            break;
        }
        if number == 1 {
            let theirs: Head = serde_json::from_str(&text).map_err(|error| malformed(number, error))?;
            if theirs != *head {
                let (theirs, ours) = (describe(&theirs), describe(head));
                return Err(JournalError::OtherRun { path: path.to_owned(), theirs, ours });
            }
        } else {
            let entry: Entry = serde_json::from_str(&text).map_err(|error| malformed(number, error))?;
            finished.insert((entry.experiment, entry.task), entry.points);
        }
        whole += text.len() as u64;
    }
    if whole == 0 {
        let source = io::Error::new(io::ErrorKind::InvalidData, "no first line; leave --resume out");
        return Err(JournalError::Io { path: path.to_owned(), source });
    }
    Ok(whole)
}

fn describe(head: &Head) -> String {
    let Head { version, size, seed, runs, data } = head;
    let runs = runs.map_or_else(|| "the size's".into(), |runs| runs.to_string());
    let data = data.as_ref().map_or_else(|| "none".into(), |data| data.display().to_string());
    format!("size {size:?}, seed {seed}, runs {runs}, data {data}, version {version}").to_lowercase()
}
