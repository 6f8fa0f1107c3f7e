//! The builders of the two plain Bloom filters.

use std::marker::PhantomData;

use super::{BlockedBloomFilter, BloomFilter, size};
use crate::{BuildError, KeyHasher, Seed, Xxh3};

/// What either builder is asked for.
#[derive(Debug, Clone, Copy)]
struct Request {
    capacity: usize,
    rate: f64,
    seed: Option<Seed>,
}

impl Request {
    const NEW: Self = Self { capacity: 0, rate: 1.0 / 256.0, seed: None };

    /// Capacity and rate, if they make sense.
    fn checked(&self) -> Result<(usize, f64), BuildError> {
        if self.capacity == 0 {
            return Err(BuildError::ZeroCapacity);
        }
        Ok((self.capacity, size::check_rate(self.rate)?))
    }

    fn hasher<H: KeyHasher>(&self) -> H {
        H::with_seed(self.seed.unwrap_or_else(Seed::random))
    }
}

/// A builder with the setters that both filters have.
macro_rules! builder {
    ($(#[$doc:meta])* $builder:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        #[must_use = "a builder does nothing until build is called"]
        pub struct $builder<H = Xxh3> {
            request: Request,
            hasher: PhantomData<H>,
        }

        impl $builder {
            pub(super) fn new() -> Self {
                Self { request: Request::NEW, hasher: PhantomData }
            }
        }

        impl<H: KeyHasher> $builder<H> {
            /// How many keys the filter shall hold at its false-positive rate. Must be given.
            pub fn capacity(mut self, keys: usize) -> Self {
                self.request.capacity = keys;
                self
            }

            /// The share of absent keys that the full filter accepts, from 2⁻⁵⁰ to 1/2. 1/256 by default.
            pub fn false_positive_rate(mut self, rate: f64) -> Self {
                self.request.rate = rate;
                self
            }

            /// Makes the hash function, and so the filter, repeatable. From the operating system by default.
            pub fn seed(mut self, seed: impl Into<Seed>) -> Self {
                self.request.seed = Some(seed.into());
                self
            }

            /// Hashes keys with another function than [`Xxh3`].
            pub fn hasher<G: KeyHasher>(self) -> $builder<G> {
                $builder { request: self.request, hasher: PhantomData }
            }
        }
    };
}

builder! {
    /// Builds a [`BloomFilter`].
    ///
    /// ```
    /// use besom::bloom::BloomFilter;
    /// use besom::{Filter, SipHash};
    ///
    /// let builder = BloomFilter::builder().capacity(1000).false_positive_rate(0.01).hasher::<SipHash>();
    /// let bits = builder.size_in_bits()?;
    /// assert_eq!(builder.build()?.stats().bits, bits);
    /// # Ok::<(), besom::BuildError>(())
    /// ```
    BloomFilterBuilder
}

impl<H: KeyHasher> BloomFilterBuilder<H> {
    fn size(&self) -> Result<size::BloomSize, BuildError> {
        let (capacity, rate) = self.request.checked()?;
        Ok(size::BloomSize::fastest(capacity as f64, rate, 1.0))
    }

    /// The memory that the filter will take, in bits: [`FilterStats::bits`](crate::FilterStats::bits).
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the capacity is 0 or the rate out of range.
    pub fn size_in_bits(&self) -> Result<usize, BuildError> {
        Ok(self.size()?.memory())
    }

    /// The empty filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the capacity is 0, the rate out of range, or the memory not to be had.
    pub fn build(self) -> Result<BloomFilter<H>, BuildError> {
        BloomFilter::sized(self.request.capacity, self.size()?, self.request.hasher())
    }
}

builder! {
    /// Builds a [`BlockedBloomFilter`].
    ///
    /// ```
    /// use besom::bloom::BlockedBloomFilter;
    /// use besom::Filter;
    ///
    /// let builder = BlockedBloomFilter::builder().capacity(1000).seed(7_u64);
    /// let bits = builder.size_in_bits()?;
    /// assert_eq!(builder.build()?.stats().bits, bits);
    /// # Ok::<(), besom::BuildError>(())
    /// ```
    BlockedBloomFilterBuilder
}

impl<H: KeyHasher> BlockedBloomFilterBuilder<H> {
    fn size(&self) -> Result<size::BlockedSize, BuildError> {
        let (capacity, rate) = self.request.checked()?;
        Ok(size::BlockedSize::fastest(capacity, rate))
    }

    /// The memory that the filter will take, in bits: [`FilterStats::bits`](crate::FilterStats::bits).
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the capacity is 0 or the rate out of range.
    pub fn size_in_bits(&self) -> Result<usize, BuildError> {
        Ok(self.size()?.memory())
    }

    /// The empty filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the capacity is 0, the rate out of range, or the memory not to be had.
    pub fn build(self) -> Result<BlockedBloomFilter<H>, BuildError> {
        BlockedBloomFilter::sized(self.request.capacity, self.size()?, self.request.hasher())
    }
}
