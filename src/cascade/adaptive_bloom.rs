//! The adaptive Bloom filter: a cascade of Bloom filters.

use crate::{BloomFilter, Cascade, Xxh3};

/// A Bloom filter that repairs every false positive that it is told of.
///
/// It takes at most (1 + 8ε)·1.45·n·log₂(1/ε) bits, and half a bit a key for its sums of keys, however many queries are
/// made: 12.5 per key at the default rate of 1/256 (and, in filters of less than some ten thousand keys, a few kilobits
/// more). It answers queries for absent keys at the speed of the plain filter. See [`Cascade`] for how it works and what
/// it costs; this is its plainest form, with rates ε, ε² and then whole digests.
///
/// A key can be removed, with the remote's help: what a Bloom filter cannot unset is repaired like a false
/// positive.
///
/// ```
/// use besom::cascade::AdaptiveBloomFilter;
/// use besom::{Adaptive, Filter, MemoryRemote};
///
/// let mut filter = AdaptiveBloomFilter::builder().capacity(1000).seed(7_u64).build()?;
/// let mut remote = MemoryRemote::new();
/// for key in 0..1000_u64 {
///     filter.insert(&key, &mut remote)?;
/// }
/// let stranger = (1000..).find(|key: &u64| filter.contains(key)).unwrap_or(1000);
/// assert!(filter.adapt(&stranger, &mut remote)?.is_fixed());
/// assert!(!filter.contains(&stranger));
/// assert!(filter.remove(&7_u64, &mut remote)?);
/// assert!(!filter.contains(&7_u64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type AdaptiveBloomFilter<H = Xxh3> = Cascade<BloomFilter, H>;
