//! `besom diff` and `besom apply`: what changed between two filter files, and the way from one to the other.

use std::fs;
use std::path::{Path, PathBuf};

use besom::delta::{self, DeltaError, Method};
use clap::Args;
use serde::Serialize;

use crate::error::{Ending, Failure, Outcome};
use crate::output::{self, thousands};

/// Two files, and what is between them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  besom diff monday.besom tuesday.besom -o tuesday.delta
  besom apply monday.besom tuesday.delta -o tuesday.besom

The delta turns the old file into the new one, or into one with the same fingerprints. It fits no other file. A key
that was added to a filter on bins takes about 2 bytes. An exact list changes as a whole, so the new file is always
smaller than a delta.

Exit codes: 0 success, 1 the new file is smaller than a delta (which is not written), 2 usage or input error.")]
pub(crate) struct Diff {
    /// The file that readers have
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The file that they need
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// The delta to write; an old file is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Write JSON instead of a sentence
    #[arg(long)]
    json: bool,
}

/// What came of it.
#[derive(Serialize)]
struct Difference {
    file: Option<String>,
    method: Option<&'static str>,
    delta_bytes: usize,
    new_bytes: usize,
    smaller: bool,
}

impl Diff {
    pub(crate) fn run(&self) -> Outcome {
        output::check_target(&self.output)?;
        let (old, new) = (read(&self.old)?, read(&self.new)?);
        let delta = match delta::diff(&old, &new) {
            Ok(delta) => delta,
            Err(DeltaError::NotSmaller { delta, file }) => return self.not_smaller(delta, file),
            Err(error) => {
                return Err(Failure::Usage(format!(
                    "{}, {}: {error}",
                    self.old.display(),
                    self.new.display()
                )));
            }
        };
        output::write_bytes(&self.output, &delta)?;
        let method = match delta::inspect(&delta) {
            Ok(said) if said.method == Method::Fingerprints => "fingerprints",
            _ => "bytes",
        };
        let file = self.output.display().to_string();
        if self.json {
            let (delta_bytes, new_bytes) = (delta.len(), new.len());
            let file = Some(file);
            output::print_json(&Difference {
                file,
                method: Some(method),
                delta_bytes,
                new_bytes,
                smaller: true,
            })?;
        } else {
            let [delta, new] = [delta.len(), new.len()].map(|bytes| thousands(bytes as u64));
            output::print(&format!("{file}: {method}, {delta} bytes for a file of {new}\n"))?;
        }
        Ok(Ending::Fine)
    }

    fn not_smaller(&self, delta: usize, file: usize) -> Outcome {
        if self.json {
            let nothing =
                Difference { file: None, method: None, delta_bytes: delta, new_bytes: file, smaller: false };
            output::print_json(&nothing)?;
        } else {
            let [delta, file] = [delta, file].map(|bytes| thousands(bytes as u64));
            output::print(&format!(
                "no delta written: it would take {delta} bytes, and {} has only {file}; send the file instead\n",
                self.new.display()
            ))?;
        }
        Ok(Ending::No)
    }
}

/// A file and what changed since.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  besom apply monday.besom tuesday.delta -o tuesday.besom
  besom apply list.besom change.delta -o list.besom

Exit codes: 0 success, 2 usage or input error, such as a delta that fits another file. An error leaves no partial file.")]
pub(crate) struct Apply {
    /// The file that the delta was made for
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The delta
    #[arg(value_name = "DELTA")]
    delta: PathBuf,
    /// The file to write; it may be the old one
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl Apply {
    pub(crate) fn run(&self) -> Outcome {
        output::check_target(&self.output)?;
        let (old, delta) = (read(&self.old)?, read(&self.delta)?);
        let new = delta::apply(&old, &delta)
            .map_err(|error| Failure::Usage(format!("{}: {error}", self.delta.display())))?;
        output::write_bytes(&self.output, &new)?;
        let bytes = thousands(new.len() as u64);
        output::print(&format!("{}: {bytes} bytes\n", self.output.display()))?;
        Ok(Ending::Fine)
    }
}

fn read(path: &Path) -> Outcome<Vec<u8>> {
    fs::read(path).map_err(Failure::io(path.display().to_string()))
}
