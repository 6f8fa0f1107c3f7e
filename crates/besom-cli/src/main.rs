//! The command `besom`.

mod compare;
mod error;
mod input;
mod interrupt;
mod keys;
mod output;
mod progress;
mod table;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::Outcome;

/// The benchmark measures memory by it; everything else only passes through.
#[global_allocator]
static HEAP: besom_bench::Meter = besom_bench::Meter;

/// Membership filters that repair their false positives: compare them on your own data, build and query filter files,
/// attack them, measure them.
#[derive(Debug, Parser)]
#[command(name = "besom", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Put every filter in front of a store, replay queries, and say which one saves most
    Compare(compare::Compare),
}

impl Verb {
    fn run(&self) -> Outcome {
        match self {
            Self::Compare(command) => command.run(),
        }
    }
}

fn main() -> ExitCode {
    match Cli::parse().verb.run() {
        Ok(ending) => ending.into(),
        Err(failure) => {
            eprintln!("besom: {failure}");
            failure.code()
        }
    }
}
