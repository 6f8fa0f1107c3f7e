//! The quotient table, which four filters share, and the plain filter on it.

mod block;
mod builder;
pub(crate) mod bulk;
mod compiled;
mod dispatch;
mod filter;
#[cfg(any(test, target_arch = "x86_64"))]
mod fixed_line;
mod geometry;
mod insert;
mod items;
mod local_run;
mod machine;
mod persist;
mod questions;
mod remove;
mod runs;
mod sorted;
mod table;
#[cfg(test)]
mod tests;

pub use builder::QuotientFilterBuilder;
pub(crate) use builder::{DEFAULT_LOAD, remainder_bits, slots_for};
pub use filter::QuotientFilter;
pub(crate) use geometry::{CodeShare, Geometry, MARKED};
pub(crate) use insert::Agreed;
pub(crate) use questions::{Answer, CHUNKS, Probe};
pub(crate) use sorted::Appender;
pub(crate) use table::{Place, Run, Shift, Table, TableSize, fraction_bits};
