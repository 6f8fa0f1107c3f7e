//! `SlateStore` and `SlateReader`, beside exact models.
#![cfg(feature = "slatedb")]

mod bucket;
mod chaos;
mod failures;
mod model;
mod processes;
mod requests;
#[cfg(feature = "s3-test")]
mod s3;
mod snapshots;
