//! The cuckoo family: filters of short fingerprints in a cuckoo hash table.
//!
//! k tables of N bins of b slots. A key may lie in one bin of each table, in any slot; a query compares its
//! fingerprint with the k·b slots that it might lie in. All members share one table, one search
//! for room and one way to change filter and remote together.
//!
//! | filter | shape | on a false positive | pays with |
//! |---|---|---|---|
//! | [`CuckooFilter`] | any; k = 2, b = 4 | nothing; needs no remote | repeats its false positives |
//! | [`RemoteCuckooFilter`] | any; k = 2, b = 4 | nothing, although it has a remote | the same |
//! | [`CuckooingFilter`] | k = 4, b = 1 | moves the colliding key to its next table | a write to the remote |
//! | [`CyclicFilter`] | k = 4, b = 1 | takes the slot's next fingerprint function | s bits of every slot |
//! | [`SwappingFilter`] | k = 2, b = 4 | swaps the key with another of its bin | twice the slots per query |
//!
//! Papers: Kopelowitz, McCauley, Porat, "Support Optimality and Adaptive Cuckoo Filters", WADS 2021 (all of
//! them, and the proof that cuckooing is support optimal); Mitzenmacher, Pontarelli, Reviriego, "Adaptive
//! Cuckoo Filters", ALENEX 2018 (cyclic and swapping).

mod address;
mod builder;
mod check;
mod draft;
mod filter;
mod layout;
mod operations;
mod persist;
mod place;
mod plain;
mod rehash;
mod repair;
mod search;
mod settle;
mod table;
#[cfg(test)]
mod tests;
mod variant;

pub use builder::{AdaptiveCuckooFilterBuilder, CuckooFilterBuilder};
pub use filter::AdaptiveCuckooFilter;
pub use plain::CuckooFilter;
pub use variant::{AdaptiveVariant, Cuckooing, Cyclic, Inert, OnFalsePositive, Swapping, Variant};

use crate::Xxh3;

/// A cuckoo filter whose keys lie in a remote, like those of the adaptive filters, but which repairs nothing.
///
/// The papers call it the cuckoo filter with independent hash functions, and measure the adaptive ones against it. Use
/// it where a remote exists for other reasons: because the remote knows the keys, inserting one twice or removing one
/// that is not there changes nothing, and a table that clogs is rehashed instead of refusing keys.
/// [`adapt`](crate::Adaptive::adapt) answers [`Unfixable`](crate::Adaptation::Unfixable) for a false positive. The
/// cuckoo filter that most people know needs no remote: [`CuckooFilter`].
///
/// ```
/// use besom::cuckoo::RemoteCuckooFilter;
/// use besom::{Adaptive, Filter, MemoryRemote};
///
/// let mut remote = MemoryRemote::new();
/// let mut filter = RemoteCuckooFilter::with_capacity(1000)?;
/// assert!(filter.insert("besom", &mut remote)?);
/// assert!(!filter.insert("besom", &mut remote)?, "it was there already");
/// assert!(filter.contains("besom"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type RemoteCuckooFilter<H = Xxh3> = AdaptiveCuckooFilter<Inert, H>;

/// The cuckoo filter that repairs by cuckooing: every stored key that collides with a false positive moves on
/// to its next table, and the key that lay there moves on in turn, as on insertion.
///
/// Repairs take no space. Over n queries it has about ε false positives per *distinct* query, however often
/// each is repeated (support optimality: Theorem 1 of the paper), so it is the choice for skewed queries. It is
/// not safe against an adversary that watches its answers; the broom filter is.
///
/// A removed key takes its repairs with it: an attacker who removes and inserts a colliding key again can repeat a
/// false positive. Where that matters, use the [`BroomFilter`](crate::BroomFilter).
///
/// ```
/// use besom::cuckoo::CuckooingFilter;
/// use besom::{Adaptive, Filter, MemoryRemote};
///
/// let mut remote = MemoryRemote::new();
/// let mut filter = CuckooingFilter::builder().capacity(1000).slot_bits(4).build()?;
/// for key in 0..1000_u32 {
///     filter.insert(&key, &mut remote)?;
/// }
/// let false_positive = (1000_u32..).find(|key| filter.contains(key)).expect("one in four is");
/// assert!(filter.adapt(&false_positive, &mut remote)?.is_fixed());
/// assert!(!filter.contains(&false_positive));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type CuckooingFilter<H = Xxh3> = AdaptiveCuckooFilter<Cuckooing, H>;

/// The cuckoo filter with `S` selector bits in every slot, 1 to 3, that say which of 2^`S` fingerprint
/// functions was used: on a false positive the selector of every colliding slot advances.
///
/// No key moves, so a repair only reads the remote. The selectors are paid for with shorter fingerprints:
/// [`slot_bits`](AdaptiveCuckooFilterBuilder::slot_bits) includes them. A query that collides with one key under all
/// functions, as one in 2^(f·2^S) does, is [`Unfixable`](crate::Adaptation::Unfixable); a selector that has
/// gone around collides with queries again that it once told apart.
///
/// A removed key takes its repairs with it: an attacker who removes and inserts a colliding key again can repeat a
/// false positive. Where that matters, use the [`BroomFilter`](crate::BroomFilter).
///
/// ```
/// use besom::cuckoo::CyclicFilter;
/// use besom::{Adaptive, Filter, MemoryRemote};
///
/// let mut remote = MemoryRemote::new();
/// let mut filter = CyclicFilter::<2>::builder().capacity(1000).slot_bits(10).build()?;
/// for key in 0..1000_u32 {
///     filter.insert(&key, &mut remote)?;
/// }
/// let false_positive = (1000_u32..).find(|key| filter.contains(key)).expect("one in seventy is");
/// assert!(filter.adapt(&false_positive, &mut remote)?.is_fixed());
/// assert!(!filter.contains(&false_positive));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type CyclicFilter<const S: u32, H = Xxh3> = AdaptiveCuckooFilter<Cyclic<S>, H>;

/// The cuckoo filter in which every slot of a bin has its own fingerprint function: on a false positive the
/// colliding key swaps places with a random other slot of its bin.
///
/// Repairs take no space and touch one bin, but bins of four slots in two tables mean twice the slots per
/// query, hence twice the false positives of k = 4, b = 1.
///
/// ```
/// use besom::cuckoo::SwappingFilter;
/// use besom::{Adaptive, Filter, MemoryRemote};
///
/// let mut remote = MemoryRemote::new();
/// let mut filter = SwappingFilter::builder().capacity(1000).slot_bits(8).build()?;
/// for key in 0..1000_u32 {
///     filter.insert(&key, &mut remote)?;
/// }
/// let false_positive = (1000_u32..).find(|key| filter.contains(key)).expect("one in thirty is");
/// assert!(filter.adapt(&false_positive, &mut remote)?.is_fixed());
/// assert!(!filter.contains(&false_positive));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type SwappingFilter<H = Xxh3> = AdaptiveCuckooFilter<Swapping, H>;
