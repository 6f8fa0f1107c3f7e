//! The broom filter.

mod adaptivity;
mod backyard;
mod builder;
mod filter;
mod fingerprint;
mod frontier;
mod functions;
mod ghosts;
mod hints;
mod level;
mod rebuild;
mod secondary;
#[cfg(test)]
mod tests;
mod transaction;

pub use builder::BroomFilterBuilder;
pub use filter::{BroomFilter, BroomLevels};
