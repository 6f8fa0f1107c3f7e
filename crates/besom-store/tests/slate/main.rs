//! `SlateStore` and `SlateReader`, beside exact models.
#![cfg(feature = "slatedb")]

mod bucket;
mod model;
