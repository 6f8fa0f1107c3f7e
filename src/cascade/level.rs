//! What can be a level of a cascade.

use crate::bloom::size::BloomSize;
use crate::quotient::{DEFAULT_LOAD, Table, remainder_bits, slots_for};
use crate::{
    BlockedBloomFilter, BloomFilter, BuildError, Digest, FullError, Insert, KeyHasher, QuotientFilter,
    Remove, Xxh3,
};

/// A filter that can be a level of a [`Cascade`](super::Cascade).
///
/// The cascade hashes keys itself and gives each level digests of its own; a level's own hash function is never
/// asked.
pub trait LevelFilter: Insert + Sized {
    /// Whether [`take_out`](Self::take_out) removes anything.
    const REMOVES: bool;

    /// An empty filter that holds `capacity` keys at this false-positive rate.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if there can be none.
    fn for_level(capacity: usize, rate: f64) -> Result<Self, BuildError>;

    /// The memory of that filter, in bits: [`FilterStats::bits`](crate::FilterStats::bits).
    ///
    /// # Errors
    ///
    /// [`BuildError`] if there can be none.
    fn level_bits(capacity: usize, rate: f64) -> Result<usize, BuildError>;

    /// Inserts the key with this digest, and counts it even if the filter accepts it already.
    ///
    /// # Errors
    ///
    /// [`FullError`] without room for it.
    fn take_in(&mut self, digest: Digest) -> Result<(), FullError> {
        self.insert_digest(digest).map(drop)
    }

    /// Removes the key with this digest, which was inserted, if [`REMOVES`](Self::REMOVES).
    fn take_out(&mut self, digest: Digest);
}

impl LevelFilter for BloomFilter {
    const REMOVES: bool = false;

    fn for_level(capacity: usize, rate: f64) -> Result<Self, BuildError> {
        Self::sized(capacity, bloom_size(capacity as f64, rate), Xxh3::with_seed(0_u64.into()))
    }

    fn level_bits(capacity: usize, rate: f64) -> Result<usize, BuildError> {
        Ok(bloom_size(capacity as f64, rate).memory())
    }

    fn take_in(&mut self, digest: Digest) -> Result<(), FullError> {
        self.insert_counted(digest)
    }

    fn take_out(&mut self, _: Digest) {}
}

impl LevelFilter for BlockedBloomFilter {
    const REMOVES: bool = false;

    fn for_level(capacity: usize, rate: f64) -> Result<Self, BuildError> {
        Self::builder().capacity(capacity).false_positive_rate(rate).seed(0_u64).build()
    }

    fn level_bits(capacity: usize, rate: f64) -> Result<usize, BuildError> {
        Self::builder().capacity(capacity).false_positive_rate(rate).size_in_bits()
    }

    fn take_in(&mut self, digest: Digest) -> Result<(), FullError> {
        self.insert_counted(digest)
    }

    fn take_out(&mut self, _: Digest) {}
}

impl LevelFilter for QuotientFilter {
    const REMOVES: bool = true;

    fn for_level(capacity: usize, rate: f64) -> Result<Self, BuildError> {
        Self::builder().capacity(capacity).false_positive_rate(rate).seed(0_u64).build()
    }

    fn level_bits(capacity: usize, rate: f64) -> Result<usize, BuildError> {
        let slots = slots_for(capacity, DEFAULT_LOAD)?;
        Ok(Table::size(slots, remainder_bits(rate, DEFAULT_LOAD)?, false).bits)
    }

    fn take_out(&mut self, digest: Digest) {
        let removed = self.remove_digest(digest);
        debug_assert_eq!(removed, Ok(true), "a key that was inserted is not there");
    }
}

/// The Bloom filter that a level is: fewer probes than optimal only where the space for repairs, which is in proportion
/// to the rate, allows it.
pub(super) fn bloom_size(keys: f64, rate: f64) -> BloomSize {
    BloomSize::fastest(keys, rate, 2.0 * rate)
}

/// The state of one level of a [`Cascade`](super::Cascade), for reports.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct LevelStats {
    /// The false-positive rate of the level's filter; 0 for the last level, which stores whole digests.
    pub rate: f64,
    /// Keys that were inserted into the level since the last rebuild, less those that could be removed.
    pub keys: usize,
    /// How many it takes before the cascade is rebuilt.
    pub capacity: usize,
    /// Home cells of the level that are dead.
    pub dead_cells: usize,
    /// How many may be dead before the cascade is rebuilt.
    pub dead_capacity: usize,
    /// The level's memory, in bits.
    pub bits: usize,
}
