//! The quotient table, which four filters share, and the plain filter on it.

mod block;
mod builder;
mod compiled;
mod filter;
mod geometry;
mod insert;
mod machine;
mod operations;
mod probe;
mod query;
mod remove;
mod sorted;
mod table;
#[cfg(test)]
mod tests;
mod view;

pub use builder::QuotientFilterBuilder;
pub(crate) use builder::{DEFAULT_LOAD, DEFAULT_RATE, remainder_bits, slots_for};
pub use filter::QuotientFilter;
pub(crate) use geometry::Geometry;
pub(crate) use probe::{Answer, CHUNKS, HIGHEST_CHUNK, Probe};
pub(crate) use sorted::Appender;
pub(crate) use table::{Place, Run, Shift, Table, TableSize, fraction_bits};
