//! `besom merge` and `besom convert`: new files from old ones.

use std::path::{Path, PathBuf};

use besom::any::{AnyFilter, AnyHasher};
use besom::format::{Kind, WriteOptions};
use besom::{HashKind, MergeError, Seed, SipHash, Xxh3};
use clap::Args;
use serde::Serialize;

use crate::error::{Ending, Failure, Outcome};
use crate::filters::{self, How, Opened, named, typed};
use crate::interrupt;
use crate::output::{self, thousands};

/// Which files are put together.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  besom build monday.txt  --seed 7 --capacity 1000000 --filter bins -o monday.besom
  besom build tuesday.txt --seed 7 --capacity 1000000 --filter bins -o tuesday.besom
  besom merge monday.besom tuesday.besom -o week.besom

Merges filters of kind bins, quotient, bloom and blocked-bloom that were built with the same seed, rate and capacity.
Adaptive filters cannot be merged without the hash indexes behind them, which only their stores can merge.

Exit codes: 0 success, 2 usage or input error.")]
pub(crate) struct Merge {
    /// The filter files
    #[arg(value_name = "FILE", required = true, num_args = 2..)]
    files: Vec<PathBuf>,
    /// The file to write; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The seed, if the files do not contain it
    #[arg(long, value_name = "SEED", value_parser = filters::seed)]
    seed: Option<u128>,
    /// A number of your choice [default: that of the first file]
    #[arg(long, value_name = "N")]
    generation: Option<u64>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// What was written.
#[derive(Serialize)]
struct Written {
    file: String,
    filter: &'static str,
    keys: usize,
    bytes: u64,
}

fn show(path: &Path, kind: Kind, filter: &dyn Opened, bytes: u64, json: bool) -> Outcome {
    let file = path.display().to_string();
    let written = Written { file, filter: kind.name(), keys: filter.stats().items, bytes };
    if json {
        output::say_json(&written, path)?;
    } else {
        let (keys, bytes) = (thousands(written.keys as u64), thousands(bytes));
        output::say(&format!("{}: {kind}, {keys} keys, {bytes} bytes\n", written.file), path)?;
    }
    Ok(Ending::Fine)
}

impl Merge {
    pub(crate) fn run(&self) -> Outcome {
        output::check_target(&self.output)?;
        interrupt::install();
        let first = self.files.first().ok_or_else(|| Failure::Usage("no file to merge".into()))?;
        let (_, header) = filters::map(first)?;
        let filter = match header.hash {
            HashKind::SipHash => self.merge::<SipHash>(header.kind),
            _ => self.merge::<Xxh3>(header.kind),
        }?;
        let generation = self.generation.unwrap_or(header.generation);
        let options = WriteOptions::new().generation(generation).include_seed(header.seed.is_some());
        let bytes = filters::save(filter.as_ref(), &self.output, &options)?;
        show(&self.output, header.kind, filter.as_ref(), bytes, self.json)
    }

    fn merge<H: AnyHasher>(&self, kind: Kind) -> Outcome<Box<dyn Opened>> {
        let mut union: Option<AnyFilter<H>> = None;
        for path in &self.files {
            let (region, _) = filters::map(path)?;
            let (filter, _) = typed::<AnyFilter<H>>(&region, self.seed, How::Checked)
                .map_err(|error| named(path, error))?;
            match &mut union {
                None => union = Some(filter),
                Some(union) => {
                    besom::Merge::merge(union, &filter).map_err(|error| refused(kind, path, &error))?;
                }
            }
        }
        union
            .map(|filter| Box::new(filter) as Box<dyn Opened>)
            .ok_or_else(|| Failure::Usage("no file to merge".into()))
    }
}

fn refused(kind: Kind, path: &Path, error: &MergeError) -> Failure {
    Failure::Usage(match error {
        MergeError::Unsupported => format!(
            "{}: filters of kind {kind} cannot be merged without their keys, nor with another kind; build one filter \
             from all keys",
            path.display()
        ),
        error => format!("{}: {error}", path.display()),
    })
}

/// What is changed about a file.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  besom build revoked.txt --seed 7 -o revoked.besom
  besom convert revoked.besom --without-seed -o public.besom
  besom convert public.besom --seed 7 --generation 12 -o private.besom

Keeps the filter, changes what the file says about it, and writes the newest format.

Exit codes: 0 success, 2 usage or input error.")]
pub(crate) struct Convert {
    /// The filter file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The file to write; it may be the same. - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Leave the seed out, so that those who get the file cannot aim at the filter; queries then need --seed
    #[arg(long)]
    without_seed: bool,
    /// The seed, if the file does not contain it
    #[arg(long, value_name = "SEED", value_parser = filters::seed)]
    seed: Option<u128>,
    /// A number of your choice [default: that of the file]
    #[arg(long, value_name = "N")]
    generation: Option<u64>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

impl Convert {
    pub(crate) fn run(&self) -> Outcome {
        output::check_target(&self.output)?;
        interrupt::install();
        let (filter, header) = filters::open(&self.file, self.seed, How::Checked)?;
        if self.without_seed && !self.json {
            self.tell_seed(header.seed)?;
        }
        let generation = self.generation.unwrap_or(header.generation);
        let options = WriteOptions::new().generation(generation).include_seed(!self.without_seed);
        let bytes = filters::save(filter.as_ref(), &self.output, &options)?;
        show(&self.output, header.kind, filter.as_ref(), bytes, self.json)
    }

    /// A seed that is nowhere else would be lost.
    fn tell_seed(&self, seed: Option<Seed>) -> Outcome<()> {
        let Some(seed) = seed.map(Seed::to_u128).or(self.seed) else { return Ok(()) };
        output::say(&format!("the seed, which the file does not contain: {seed:#x}\n"), &self.output)
    }
}
