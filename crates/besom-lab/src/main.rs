//! The command `besom-lab`.

use std::io;
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

/// 0 fine, 1 something failed or was left undone, 2 usage or input error, 141 nobody reads standard output any more.
fn main() -> ExitCode {
    let done = match Command::parse().verb {
        Verb::Reproduce(arguments) => command::reproduce(&arguments),
        Verb::List => command::list(&mut io::stdout().lock()).map(|()| true).map_err(Into::into),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if is_closed_pipe(error.as_ref()) => ExitCode::from(141),
        Err(error) => {
            eprintln!("besom-lab: {error}");
            ExitCode::from(2)
        }
    }
}

fn is_closed_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
