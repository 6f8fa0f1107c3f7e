//! The command `besom-lab`.

use std::process::ExitCode;

use besom_lab::command::{self, Reproduce};
use clap::{Parser, Subcommand};

/// The experiments of the papers behind besom's filters, reproducible with one command each.
#[derive(Debug, Parser)]
#[command(name = "besom-lab", version)]
struct Command {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run experiments, and write tables, plots and an HTML page.
    Reproduce(Reproduce),
    /// Show the experiments and the filters by name.
    List,
}

fn main() -> ExitCode {
    match Command::parse().verb {
        Verb::Reproduce(arguments) => match command::reproduce(&arguments) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("besom-lab: {error}");
                ExitCode::FAILURE
            }
        },
        Verb::List => match command::list(&mut std::io::stdout().lock()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("besom-lab: {error}");
                ExitCode::FAILURE
            }
        },
    }
}
