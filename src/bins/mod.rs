//! Cache-line bins: a table that never shifts anything across a cache line, and the plain filter on it.
//!
//! | | |
//! |---|---|
//! | how a line is cut | `layout` |
//! | what a line does | `line`, with the instructions of `machine` |
//! | bins, and what is behind them | `table`, `operations` (compiled per machine), `next` |
//! | the second level, and what does not fit there | `second`, `rest`, `turn` |
//! | whole tables | `grow`, `bulk` (from many keys at once) |
//! | the plain filter | `filter`, `builder`, `ahead` (many keys at once) |
//! | for what is kept beside the bins | `flagged`, `values` |
//! | the extension filter | `extending` |

mod ahead;
mod builder;
mod bulk;
mod extending;
mod filter;
mod fingerprints;
mod flagged;
mod grow;
mod layout;
mod line;
mod machine;
mod next;
mod operations;
mod persist;
mod rest;
mod second;
mod table;
#[cfg(test)]
mod tests;
mod turn;
mod values;

pub(crate) use ahead::{Ahead, Doubts};
pub use builder::BinFilterBuilder;
pub(crate) use builder::{LOADS, Plan};
pub(crate) use extending::{BinParameters, ExtendingBins};
pub use filter::BinFilter;
pub(crate) use layout::Shape;
pub(crate) use line::{Entry, Found};
pub(crate) use next::Refused;
pub(crate) use table::{Place, STEP, Table};
pub(crate) use values::Values;

/// Bare filters for the tests that all tables share.
#[cfg(test)]
pub(crate) mod testing {
    pub(crate) use super::extending::tests::extension_bins;
    pub(crate) use super::next::fault;
}
