//! The command `besom`.

mod attack;
mod build;
mod compare;
mod delta;
mod digests;
mod error;
mod filters;
mod input;
mod inspect;
mod interrupt;
mod keys;
mod other;
mod output;
mod progress;
mod query;
mod rate;
mod rewrite;
mod table;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::Outcome;

/// Membership filters that repair their false positives: compare them on your own data, build and query filter files,
/// attack them.
#[derive(Debug, Parser)]
#[command(name = "besom", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Replay queries through every filter in front of a store, and say which one saves most reads
    Compare(compare::Compare),
    /// Build a filter file from keys; with known negatives, an exact list
    Build(build::Build),
    /// Ask a filter file which keys it may have
    Query(query::Query),
    /// Show what a filter file holds: kind, parameters, load, repairs, rate
    Inspect(inspect::Inspect),
    /// Check that a filter file is undamaged and sound
    Verify(query::Verify),
    /// Merge filter files that were built with the same parameters
    Merge(rewrite::Merge),
    /// Rewrite a filter file: with or without its seed, another generation, the newest format
    Convert(rewrite::Convert),
    /// Write what changed between two filter files
    Diff(delta::Diff),
    /// Turn a filter file into a later one
    Apply(delta::Apply),
    /// Attack every filter with every adversary, and show which ones keep their rate
    Attack(attack::Attack),
    /// Print completions for a shell
    Completions(other::Completions),
    /// Print the manual, or write its pages
    Man(other::Man),
}

impl Verb {
    fn run(&self) -> Outcome {
        match self {
            Self::Compare(command) => command.run(),
            Self::Build(command) => command.run(),
            Self::Query(command) => command.run(),
            Self::Inspect(command) => command.run(),
            Self::Verify(command) => command.run(),
            Self::Merge(command) => command.run(),
            Self::Convert(command) => command.run(),
            Self::Diff(command) => command.run(),
            Self::Apply(command) => command.run(),
            Self::Attack(command) => command.run(),
            Self::Completions(command) => command.run(),
            Self::Man(command) => command.run(),
        }
    }
}

fn main() -> ExitCode {
    match Cli::parse().verb.run() {
        Ok(ending) => ending.into(),
        Err(failure) => {
            // Anyone who closed the pipe has seen enough.
            if !failure.is_closed_pipe() {
                eprintln!("besom: {failure}");
            }
            failure.code()
        }
    }
}
