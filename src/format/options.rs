//! What those who write or read a filter may choose.

use crate::Seed;

/// How a filter is written.
///
/// ```
/// use besom::format::{Persist, ReadOptions, WriteOptions};
/// use besom::quotient::QuotientFilter;
/// use besom::{Filter, Insert};
///
/// let mut filter = QuotientFilter::builder().capacity(100).seed(42_u64).build()?;
/// filter.insert("key")?;
/// // The file may be published, the seed may not.
/// let bytes = filter.to_bytes(&WriteOptions::new().generation(3).include_seed(false))?;
/// assert!(QuotientFilter::<besom::Xxh3>::from_bytes(&bytes, &ReadOptions::new()).is_err());
/// let (read, header) = QuotientFilter::<besom::Xxh3>::from_bytes(&bytes, &ReadOptions::new().seed(42_u64))?;
/// assert!(read.contains("key"));
/// assert_eq!((header.generation, header.seed), (3, None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteOptions {
    pub(super) generation: u64,
    pub(super) include_seed: bool,
}

impl WriteOptions {
    /// Returns options for generation 0, with the seed.
    #[must_use]
    pub fn new() -> Self {
        Self { generation: 0, include_seed: true }
    }

    /// Sets a number of your choice, such as the version of the data that the filter was built from; 0 unless given.
    #[must_use]
    pub fn generation(mut self, generation: u64) -> Self {
        self.generation = generation;
        self
    }

    /// Sets whether the file contains the seed, as it does by default. Without it, only readers who know the seed can
    /// use the file, and anyone who has only the file cannot aim at the filter.
    ///
    /// The file then holds 64 bits that tell the right seed from a wrong one: seeds that can be guessed, such as small
    /// numbers, can be confirmed with them. Whitelists and cascades keep digests besides, in files too, and anyone who
    /// knows a key that one belongs to can work out the seed of [`Xxh3`](crate::Xxh3) from it: give them
    /// [`SipHash`](crate::SipHash).
    #[must_use]
    pub fn include_seed(mut self, include: bool) -> Self {
        self.include_seed = include;
        self
    }
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// How a filter is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOptions {
    pub(super) seed: Option<Seed>,
}

impl ReadOptions {
    /// Returns options that take the seed from the file.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the seed, which must be the one that the filter was built with.
    #[must_use]
    pub fn seed(mut self, seed: impl Into<Seed>) -> Self {
        self.seed = Some(seed.into());
        self
    }
}
