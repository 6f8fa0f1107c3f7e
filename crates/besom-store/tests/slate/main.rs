//! `SlateStore` and `SlateReader`, beside exact models.
#![cfg(feature = "slatedb")]

mod bucket;
mod failures;
mod model;
mod processes;
mod snapshots;
