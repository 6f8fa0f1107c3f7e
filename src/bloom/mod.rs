//! Bloom filters: the classic one, the one that touches a single cache line, and how large they must be.
//!
//! | | cache lines per query | bits per key at 1/256 | adapts |
//! |---|---|---|---|
//! | [`BloomFilter`] | up to k, 2.7 on average if the key is absent | 11.6 | no |
//! | [`BlockedBloomFilter`] | 1 | 12.9 | no |
//!
//! Both hash a key once: everything is cut from its 128-bit digest.

mod blocked;
mod builder;
mod half;
mod line;
mod merge;
mod persist;
mod plain;
pub(crate) mod size;

pub use blocked::BlockedBloomFilter;
pub use builder::{BlockedBloomFilterBuilder, BloomFilterBuilder};
pub use plain::BloomFilter;

/// Ends the program as the standard library's collections do when they cannot grow.
fn out_of_memory() -> ! {
    std::alloc::handle_alloc_error(std::alloc::Layout::new::<u64>())
}
