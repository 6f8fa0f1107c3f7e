//! What can be a level of a cascade.

use crate::bloom::size;
use crate::{
    BlockedBloomFilter, BloomFilter, BuildError, Digest, Filter, FullError, InvariantError, KeyHasher,
    QuotientFilter, Xxh3,
};

/// A filter that can be a level of a [`Cascade`](super::Cascade).
///
/// The cascade hashes keys itself and gives each level digests of its own; a level's own hash function is never
/// asked.
pub trait LevelFilter: Filter + Sized {
    /// Whether [`remove_digest`](Self::remove_digest) removes anything.
    const REMOVES: bool;

    /// An empty filter that holds `capacity` keys at this false-positive rate.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if there can be none.
    fn for_level(capacity: usize, rate: f64) -> Result<Self, BuildError>;

    /// Inserts the key with this digest.
    ///
    /// # Errors
    ///
    /// [`FullError`] beyond the capacity. The cascade never tries that.
    fn insert_digest(&mut self, digest: Digest) -> Result<(), FullError>;

    /// Removes the key with this digest, which was inserted, if [`REMOVES`](Self::REMOVES).
    fn remove_digest(&mut self, digest: Digest);

    /// Asks the processor to fetch what a query for this digest will read first.
    fn prefetch_digest(&self, digest: Digest) {
        let _ = digest;
    }

    /// Checks the filter's invariants.
    ///
    /// # Errors
    ///
    /// [`InvariantError`] with the first violation found.
    fn verify(&self) -> Result<(), InvariantError>;
}

impl LevelFilter for BloomFilter {
    const REMOVES: bool = false;

    fn for_level(capacity: usize, rate: f64) -> Result<Self, BuildError> {
        Self::sized(capacity, size::level(capacity as f64, rate), Xxh3::with_seed(0_u64.into()))
    }

    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<(), FullError> {
        self.insert_digest(digest)
    }

    fn remove_digest(&mut self, _: Digest) {}

    #[inline]
    fn prefetch_digest(&self, digest: Digest) {
        self.prefetch(digest);
    }

    fn verify(&self) -> Result<(), InvariantError> {
        self.verify()
    }
}

impl LevelFilter for BlockedBloomFilter {
    const REMOVES: bool = false;

    fn for_level(capacity: usize, rate: f64) -> Result<Self, BuildError> {
        Self::builder().capacity(capacity).false_positive_rate(rate).seed(0_u64).build()
    }

    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<(), FullError> {
        self.insert_digest(digest)
    }

    fn remove_digest(&mut self, _: Digest) {}

    #[inline]
    fn prefetch_digest(&self, digest: Digest) {
        self.prefetch(digest);
    }

    fn verify(&self) -> Result<(), InvariantError> {
        self.verify()
    }
}

impl LevelFilter for QuotientFilter {
    const REMOVES: bool = true;

    fn for_level(capacity: usize, rate: f64) -> Result<Self, BuildError> {
        Self::builder().capacity(capacity).false_positive_rate(rate).seed(0_u64).build()
    }

    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<(), FullError> {
        self.insert_digest(digest)
    }

    fn remove_digest(&mut self, digest: Digest) {
        let removed = self.remove_digest(digest);
        debug_assert!(removed, "a key that was inserted is not there");
    }

    #[inline]
    fn prefetch_digest(&self, digest: Digest) {
        self.prefetch(digest);
    }

    fn verify(&self) -> Result<(), InvariantError> {
        self.verify()
    }
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
