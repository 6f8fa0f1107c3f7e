//! `besom query`: asks a filter file.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use besom_lab::workload::Format;
use clap::Args;
use serde::Serialize;

use crate::error::{Ending, Failure, Outcome};
use crate::filters::{self, How, Opened};
use crate::input::{Input, with_formats};
use crate::output;

/// Which filter, and what it is asked.
#[derive(Debug, Args)]
#[command(after_help = with_formats("\
Examples:
  besom query revoked.besom names.txt
  besom query revoked.besom names.txt --count
  besom query revoked.besom names.txt --only maybe
  echo example.org | besom query revoked.besom --quiet && echo maybe revoked

Prints one line per key: `maybe` or `no`, a tab, the key. Keys from a pipe are answered as they arrive. With --only,
prints only the keys with that answer, without the answer.

Exit codes: 0 every key may be stored, 1 some key certainly is not, 2 usage or input error. With --quiet, --only or
--invert as in grep: 0 if some key has the answer (maybe, unless you choose the other one), 1 if no key has it."))]
pub(crate) struct Query {
    /// The filter file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The keys, one a line; - is standard input. Plain, gzip or zstd
    #[arg(value_name = "KEYS", default_value = "-")]
    keys: PathBuf,
    /// Print only how many keys may be stored and how many certainly are not
    #[arg(long, conflicts_with = "quiet")]
    count: bool,
    /// Print nothing; the exit code is the answer
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
    /// Print only the keys with this answer, without the answer
    #[arg(long, value_name = "ANSWER", conflicts_with = "count")]
    only: Option<Answer>,
    /// Choose the keys that certainly are not stored; with --only no, those that may be
    #[arg(long, short = 'v', conflicts_with = "count")]
    invert: bool,
    /// Open the file without checking it, which takes no time at any size. Only for files that nobody else writes
    #[arg(long)]
    trust: bool,
    /// The seed, if the file does not contain it
    #[arg(long, value_name = "SEED", value_parser = filters::seed)]
    seed: Option<u128>,
    /// The format of the keys: lines, csv:COLUMN, tsv:COLUMN, jsonl:FIELD and others, see below [default: by name and
    /// first bytes]
    #[arg(long, value_name = "FORMAT")]
    keys_format: Option<Format>,
    /// Write JSON: one object per key, or the counts. A key that is not UTF-8 is written as `key_hex`
    #[arg(long)]
    json: bool,
}

/// What a filter answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Answer {
    /// The key may be stored.
    Maybe,
    /// The key certainly is not stored.
    No,
}

/// How the keys were answered.
#[derive(Debug, Default, Serialize)]
struct Counts {
    keys: u64,
    maybe: u64,
    no: u64,
    blank_lines: u64,
}

/// An answer as JSON: the key as text, or as hexadecimal digits if it is none.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_hex: Option<String>,
    maybe: bool,
}

impl<'a> Line<'a> {
    fn new(key: &'a [u8], maybe: bool) -> Self {
        match std::str::from_utf8(key) {
            Ok(text) => Self { key: Some(text), key_hex: None, maybe },
            Err(_) => {
                let digits = key.iter().map(|byte| format!("{byte:02x}")).collect();
                Self { key: None, key_hex: Some(digits), maybe }
            }
        }
    }
}

/// Keys that are asked at once, and the bytes after which no more are.
const BATCH: usize = 4096;
const BATCH_BYTES: usize = 1 << 22;

impl Query {
    pub(crate) fn run(&self) -> Outcome {
        let how = if self.trust { How::Trusted } else { How::Checked };
        let (filter, _) = filters::open(&self.file, self.seed, how)?;
        let mut input = Input::open(&self.keys, self.keys_format.as_ref())?;
        let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        let counts = self.answer(filter.as_ref(), &mut input, &mut out)?;
        if self.count {
            let text = if self.json {
                serde_json::to_string(&counts).map_err(|error| Failure::Output(error.into()))?
            } else {
                let blank = if counts.blank_lines > 0 {
                    format!(", {} blank lines skipped", counts.blank_lines)
                } else {
                    String::new()
                };
                format!("{} maybe, {} no{blank}", counts.maybe, counts.no)
            };
            writeln!(out, "{text}").map_err(Failure::Output)?;
        }
        out.flush().map_err(Failure::Output)?;
        let fine = match self.chosen() {
            Some(Answer::Maybe) => counts.maybe > 0,
            Some(Answer::No) => counts.no > 0,
            None => counts.no == 0,
        };
        Ok(if fine { Ending::Fine } else { Ending::No })
    }

    /// The answer that keys are chosen by, if they are, as grep chooses lines.
    fn chosen(&self) -> Option<Answer> {
        let chosen = self.only.or((self.quiet || self.invert).then_some(Answer::Maybe))?;
        Some(match (chosen, self.invert) {
            (Answer::Maybe, true) => Answer::No,
            (Answer::No, true) => Answer::Maybe,
            (chosen, false) => chosen,
        })
    }

    fn answer(&self, filter: &dyn Opened, input: &mut Input, out: &mut impl Write) -> Outcome<Counts> {
        let (mut counts, mut answers, mut key) = (Counts::default(), Vec::new(), Vec::new());
        let (mut bytes, mut ends, mut more) = (Vec::new(), Vec::new(), true);
        while more {
            bytes.clear();
            ends.clear();
            while ends.len() < BATCH && bytes.len() < BATCH_BYTES {
                more = input.next(&mut key)?;
                if !more {
                    break;
                }
                bytes.extend_from_slice(&key);
                ends.push(bytes.len());
                if !input.is_ready() {
                    break;
                }
            }
            let keys = slices(&bytes, &ends);
            filter.contains_many(&keys, &mut answers);
            for (&key, &maybe) in keys.iter().zip(&answers) {
                counts.keys += 1;
                counts.maybe += u64::from(maybe);
                counts.no += u64::from(!maybe);
                self.line(key, maybe, out).map_err(Failure::Output)?;
            }
            // Anyone who is to send the next key may be waiting for this answer.
            if !input.is_ready() {
                out.flush().map_err(Failure::Output)?;
            }
            if self.quiet && self.is_settled(&counts) {
                break;
            }
        }
        counts.blank_lines = input.skipped();
        Ok(counts)
    }

    /// Whether the exit code cannot change any more.
    fn is_settled(&self, counts: &Counts) -> bool {
        match self.chosen() {
            Some(Answer::No) => counts.no > 0,
            _ => counts.maybe > 0,
        }
    }

    fn line(&self, key: &[u8], maybe: bool, out: &mut impl Write) -> io::Result<()> {
        let chosen = self.chosen();
        if self.count || self.quiet || chosen.is_some_and(|chosen| (chosen == Answer::Maybe) != maybe) {
            return Ok(());
        }
        if self.json {
            return writeln!(out, "{}", serde_json::to_string(&Line::new(key, maybe))?);
        }
        if chosen.is_none() {
            out.write_all(if maybe { b"maybe\t" } else { b"no\t" })?;
        }
        out.write_all(key)?;
        out.write_all(b"\n")
    }
}

/// The pieces between the ends.
fn slices<'a>(bytes: &'a [u8], ends: &[usize]) -> Vec<&'a [u8]> {
    let starts = std::iter::once(&0).chain(ends);
    starts.zip(ends).map(|(&start, &end)| &bytes[start..end]).collect()
}

/// `besom verify`: whether a filter file is as it was written, and sound.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  besom verify revoked.besom
  besom verify revoked.besom --json

Exit codes: 0 sound, 1 damaged, 2 not a filter file, or not readable.")]
pub(crate) struct Verify {
    /// The filter file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The seed, if the file does not contain it
    #[arg(long, value_name = "SEED", value_parser = filters::seed)]
    seed: Option<u128>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// The verdict as JSON.
#[derive(Serialize)]
struct Checked {
    sound: bool,
    filter: &'static str,
    keys: u64,
    problem: Option<String>,
}

impl Verify {
    pub(crate) fn run(&self) -> Outcome {
        let (_, header) = filters::map(&self.file)?;
        let problem = match filters::open(&self.file, self.seed, How::Checked) {
            Ok(_) => None,
            // The file is not at fault.
            Err(Failure::Filter {
                source: besom::format::FormatError::SeedMissing | besom::format::FormatError::SeedMismatch,
                path,
            }) => {
                return Err(Failure::Usage(format!(
                    "{}: give the seed of this file with --seed",
                    path.display()
                )));
            }
            Err(Failure::Filter { source, .. }) => Some(source.to_string()),
            Err(failure) => return Err(failure),
        };
        let sound = problem.is_none();
        if self.json {
            output::print_json(&Checked { sound, filter: header.kind.name(), keys: header.len, problem })?;
        } else {
            let verdict = problem.unwrap_or_else(|| {
                format!("sound: {} of {} keys", header.kind, output::thousands(header.len))
            });
            output::print(&format!("{}: {verdict}\n", self.file.display()))?;
        }
        Ok(if sound { Ending::Fine } else { Ending::No })
    }
}
