//! The redb store as its users see it: against a model, under kills, with many threads, on bad input.

mod bad_input;
mod common;
#[path = "../shared/kill.rs"]
mod harness;
mod kill;
mod model;
mod threads;
mod transactions;
