//! Key-value stores behind adaptive filters: the filter in memory, data and reverse map in one database.

#[cfg(feature = "slatedb")]
pub mod slate;
