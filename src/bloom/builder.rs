//! The builders of the two plain Bloom filters.

use super::{BlockedBloomFilter, BloomFilter, size};
use crate::builder::{Build, Builder, built_by};
use crate::{BuildError, KeyHasher, Xxh3};

/// Builds a [`BloomFilter`], at rates from 2⁻⁵⁰ to 1/2.
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
pub type BloomFilterBuilder<H = Xxh3> = Builder<BloomFilter<H>>;

built_by!(BloomFilterBuilder, [] BloomFilter);

impl<H: KeyHasher> Build for BloomFilter<H> {
    type Options = ();
    type With<G: KeyHasher> = BloomFilter<G>;

    fn build(builder: &Builder<Self>) -> Result<Self, BuildError> {
        let (capacity, rate) = checked(builder)?;
        let size = size::BloomSize::fastest(capacity as f64, rate, 1.0);
        Self::sized(capacity, size, builder.hash_function())
    }

    fn size_in_bits(builder: &Builder<Self>) -> Result<usize, BuildError> {
        let (capacity, rate) = checked(builder)?;
        Ok(size::BloomSize::fastest(capacity as f64, rate, 1.0).memory())
    }
}

/// Builds a [`BlockedBloomFilter`], at rates from 2⁻⁵⁰ to 1/2.
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
pub type BlockedBloomFilterBuilder<H = Xxh3> = Builder<BlockedBloomFilter<H>>;

built_by!(BlockedBloomFilterBuilder, [] BlockedBloomFilter);

impl<H: KeyHasher> Build for BlockedBloomFilter<H> {
    type Options = ();
    type With<G: KeyHasher> = BlockedBloomFilter<G>;

    fn build(builder: &Builder<Self>) -> Result<Self, BuildError> {
        let (capacity, rate) = checked(builder)?;
        Self::sized(capacity, size::BlockedSize::fastest(capacity, rate), builder.hash_function())
    }

    fn size_in_bits(builder: &Builder<Self>) -> Result<usize, BuildError> {
        let (capacity, rate) = checked(builder)?;
        Ok(size::BlockedSize::fastest(capacity, rate).memory())
    }
}

/// Capacity and rate, if a Bloom filter can have them.
fn checked<F: Build>(builder: &Builder<F>) -> Result<(usize, f64), BuildError> {
    Ok((builder.checked_capacity()?, size::check_rate(builder.rate())?))
}
