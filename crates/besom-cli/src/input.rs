//! Keys from files and from standard input.

use std::io::{self, BufReader};
use std::path::Path;

use besom_lab::workload::{self, Format, KeyStream};

use crate::error::{Failure, Outcome};
use crate::interrupt;
use crate::keys::KeySet;

/// Standard input on command lines.
const STDIN: &str = "-";

/// A file of keys, or standard input.
pub(crate) struct Input {
    /// What it is called in messages.
    pub(crate) name: String,
    stream: Box<dyn KeyStream>,
}

impl Input {
    /// Opens a file; `-` is standard input. Plain, gzip or zstd; the format is found out if it is not given.
    pub(crate) fn open(path: &Path, format: Option<&Format>) -> Outcome<Self> {
        let name =
            if path == Path::new(STDIN) { "standard input".into() } else { path.display().to_string() };
        let stream = if path == Path::new(STDIN) {
            interrupt::while_idle(|| {
                workload::read(Path::new(&name), format.cloned(), BufReader::new(io::stdin()))
            })
        } else {
            match format {
                Some(format) => workload::open_as(path, format.clone()),
                None => workload::open(path),
            }
        };
        match stream {
            Ok(stream) => Ok(Self { name, stream }),
            // These have the name in them already.
            Err(workload::WorkloadError::Open { source, .. }) => Err(Failure::Io { what: name, source }),
            Err(source) => Err(Failure::Keys { name, source }),
        }
    }

    /// The next key; `false` at the end.
    pub(crate) fn next(&mut self, key: &mut Vec<u8>) -> Outcome<bool> {
        self.stream.next_key(key).map_err(|source| Failure::Keys { name: self.name.clone(), source })
    }

    /// All keys, each once, and how many came more than once.
    pub(crate) fn into_set(mut self) -> Outcome<(KeySet, u64)> {
        interrupt::while_idle(|| {
            let (mut set, mut key, mut repeated) = (KeySet::new(), Vec::new(), 0);
            while self.next(&mut key)? {
                let (_, new) = set.insert(&key).ok_or_else(|| too_many(&self.name))?;
                repeated += u64::from(!new);
            }
            if set.len() == 0 {
                return Err(Failure::Usage(format!("{}: there is no key in it", self.name)));
            }
            Ok((set, repeated))
        })
    }
}

/// More keys than have numbers.
pub(crate) fn too_many(name: &str) -> Failure {
    Failure::Usage(format!("{name}: more than {} distinct keys; take a part of them", KeySet::MOST))
}
