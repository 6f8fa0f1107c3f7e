//! Speed and space of besom's filters beside the filters that people use today, in one run.
//!
//! Every repeat goes through all filters, so that a disturbance of the machine hits all of them alike; what is
//! reported is the median over the repeats. `subjects` is the list of what can be measured.
//!
//! A program that measures must have [`Meter`] for its allocator:
//!
//! ```
//! #[global_allocator]
//! static HEAP: besom_bench::Meter = besom_bench::Meter;
//! ```

mod args;
mod heap;
mod keys;
mod measure;
mod report;
mod scale;
mod subject;
mod subjects;

use std::io;
use std::process::ExitCode;

pub use args::Args;
pub use heap::{Meter, live};

/// Does what was asked for, reports on standard output and says on standard error what went wrong. Failure if some
/// filter could not be measured; the report then says why.
#[must_use]
pub fn run(args: &Args) -> ExitCode {
    if let Err(error) = args.choose_isa() {
        eprintln!("besom-bench: {error}");
        return ExitCode::FAILURE;
    }
    measure_and_report(args).unwrap_or_else(|error| {
        eprintln!("besom-bench: cannot write the report: {error}");
        ExitCode::FAILURE
    })
}

fn measure_and_report(args: &Args) -> io::Result<ExitCode> {
    if args.list {
        report::list(&subjects::all())?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.scale {
        return Ok(match args.scales().iter().try_for_each(scale::Scale::run) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("besom-bench: {error}");
                ExitCode::FAILURE
            }
        });
    }
    let plan = args.plan();
    let rows = measure::run(&plan);
    if args.json {
        report::json(&rows)?;
    } else {
        report::table(&plan, &rows)?;
    }
    let failed = rows.iter().any(|row| row.error.is_some());
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
