//! The command `besom-bench`.

use std::process::ExitCode;

use besom_bench::{Args, Meter};
use clap::Parser;

#[global_allocator]
static HEAP: Meter = Meter;

fn main() -> ExitCode {
    besom_bench::run(&Args::parse())
}
