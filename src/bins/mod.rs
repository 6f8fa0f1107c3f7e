//! Cache-line bins: a ground that never shifts anything across a cache line, and the plain filter on it.

mod ahead;
mod builder;
mod filter;
mod grow;
mod layout;
mod line;
mod machine;
mod next;
mod operations;
mod rest;
mod second;
mod table;
#[cfg(test)]
mod tests;
mod turn;

pub use builder::BinFilterBuilder;
pub use filter::BinFilter;
