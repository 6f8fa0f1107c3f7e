//! The builder of the two plain Bloom filters.

use std::marker::PhantomData;

use super::{BlockedBloomFilter, BloomFilter, size};
use crate::{BuildError, KeyHasher, Seed};

/// Builds a [`BloomFilter`] or a [`BlockedBloomFilter`].
///
/// ```
/// use besom::{BlockedBloomFilter, BloomFilter, SipHash};
///
/// let classic = BloomFilter::builder().capacity(1000).false_positive_rate(0.01).build()?;
/// let blocked = BlockedBloomFilter::builder().capacity(1000).hasher::<SipHash>().seed(7_u64).build()?;
/// # Ok::<(), besom::BuildError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct BloomBuilder<F> {
    pub(super) capacity: usize,
    pub(super) rate: f64,
    pub(super) seed: Option<Seed>,
    filter: PhantomData<F>,
}

impl<F> BloomBuilder<F> {
    /// The false-positive rate unless another one is asked for.
    const DEFAULT_RATE: f64 = 1.0 / 256.0;

    pub(super) fn new() -> Self {
        Self { capacity: 0, rate: Self::DEFAULT_RATE, seed: None, filter: PhantomData }
    }

    /// How many keys the filter shall hold at its false-positive rate. Must be given.
    pub fn capacity(mut self, keys: usize) -> Self {
        self.capacity = keys;
        self
    }

    /// The share of absent keys that the full filter accepts, from 2⁻⁵⁰ to 1/2. 1/256 by default.
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// Makes the hash function, and so the filter, repeatable. From the operating system by default.
    pub fn seed(mut self, seed: impl Into<Seed>) -> Self {
        self.seed = Some(seed.into());
        self
    }

    /// Capacity, rate and hash function, if they make sense.
    fn parameters<H: KeyHasher>(&self) -> Result<(usize, f64, H), BuildError> {
        if self.capacity == 0 {
            return Err(BuildError::ZeroCapacity);
        }
        let rate = size::check_rate(self.rate)?;
        Ok((self.capacity, rate, H::with_seed(self.seed.unwrap_or_else(Seed::random))))
    }

    fn retarget<G>(self) -> BloomBuilder<G> {
        BloomBuilder { capacity: self.capacity, rate: self.rate, seed: self.seed, filter: PhantomData }
    }
}

impl<H: KeyHasher> BloomBuilder<BloomFilter<H>> {
    /// Hashes keys with another function than [`Xxh3`](crate::Xxh3).
    pub fn hasher<G: KeyHasher>(self) -> BloomBuilder<BloomFilter<G>> {
        self.retarget()
    }

    /// The empty filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the capacity is 0, the rate out of range, or the memory not to be had.
    pub fn build(self) -> Result<BloomFilter<H>, BuildError> {
        let (capacity, rate, hasher) = self.parameters()?;
        BloomFilter::sized(capacity, size::Shape::fastest(capacity as f64, rate, 1.0), hasher)
    }
}

impl<H: KeyHasher> BloomBuilder<BlockedBloomFilter<H>> {
    /// Hashes keys with another function than [`Xxh3`](crate::Xxh3).
    pub fn hasher<G: KeyHasher>(self) -> BloomBuilder<BlockedBloomFilter<G>> {
        self.retarget()
    }

    /// The empty filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the capacity is 0, the rate out of range, or the memory not to be had.
    pub fn build(self) -> Result<BlockedBloomFilter<H>, BuildError> {
        let (capacity, rate, hasher) = self.parameters()?;
        let (lines, probes) = size::blocked(capacity, rate);
        BlockedBloomFilter::sized(capacity, lines, probes, hasher)
    }
}
