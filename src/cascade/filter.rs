//! The cascade as a filter.

use std::ops::RangeInclusive;

use super::ledger::Ledger;
use super::level::{LevelFilter, LevelStats};
use super::levels::Levels;
use super::sizes::Sizes;
use crate::error::ensure;
use crate::filter::clear_remote;
use crate::{
    Adaptation, Adaptive, Authority, BuildError, Digest, Filter, FilterStats, HashAddressed, InvariantError,
    KeyHasher, Remote, RemoteResult, Settled, Xxh3,
};

/// A filter made adaptive by levels: it repairs every false positive that it is told of, in constant space.
///
/// `F` is the filter of each level: [`BloomFilter`](crate::BloomFilter) (then this is the
/// [`AdaptiveBloomFilter`](crate::AdaptiveBloomFilter)), [`QuotientFilter`](crate::QuotientFilter),
/// [`BlockedBloomFilter`](crate::BlockedBloomFilter), or any other that implements [`LevelFilter`].
///
/// A query that level 0 rejects, as it does all but ε of those for absent keys, costs what it costs in `F`. A
/// repair reads one range of the remote, of 16 keys on average, and writes nothing there; it takes about 16 bits until
/// the next rebuild. A rebuild scans the remote once, and needs the memory of a second filter while it lasts. It comes
/// after some repairs in proportion to the capacity: at ε = 1/256, one for every 135 stored keys, found by about two
/// different queries per stored key; and, if `F` cannot remove, after as many removals.
///
/// What the remote returns is checked, by a byte for every 16 keys: a key that the filter does not know is noticed, and
/// so is a single key that is lacking; a range in which several keys are wrong passes once in 256 times.
///
/// ```
/// use besom::cascade::Cascade;
/// use besom::quotient::QuotientFilter;
/// use besom::{Adaptive, Filter, MemoryRemote};
///
/// let mut filter = Cascade::<QuotientFilter>::builder().capacity(1000).seed(7_u64).build()?;
/// let mut remote = MemoryRemote::new();
/// for key in 0..1000_u64 {
///     filter.insert(&key, &mut remote)?;
/// }
/// let stranger = (1000..).find(|key: &u64| filter.contains(key)).unwrap_or(1000);
/// assert!(filter.adapt(&stranger, &mut remote)?.is_fixed());
/// assert!(!filter.contains(&stranger));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Cascade<F, H = Xxh3> {
    pub(super) hasher: H,
    pub(super) sizes: Sizes,
    pub(super) levels: Levels<F>,
    /// What the remote holds.
    pub(super) ledger: Ledger,
    capacity: usize,
    pub(super) adaptations: u64,
    pub(super) rebuilds: u64,
}

crate::filter::debug_by_figures!([F: LevelFilter, H: KeyHasher] Cascade<F, H>);

impl<F: LevelFilter, H: KeyHasher> Cascade<F, H> {
    pub(super) fn new(sizes: Sizes, capacity: usize, hasher: H) -> Result<Self, BuildError> {
        let (levels, ledger) = (Levels::new(&sizes, &hasher, 0)?, Ledger::new(sizes.lists)?);
        Ok(Self { hasher, sizes, levels, ledger, capacity, adaptations: 0, rebuilds: 0 })
    }

    /// A filter that was there before.
    pub(super) fn from_parts(
        hasher: H,
        sizes: Sizes,
        (levels, ledger): (Levels<F>, Ledger),
        capacity: usize,
        (adaptations, rebuilds): (u64, u64),
    ) -> Self {
        Self { hasher, sizes, levels, ledger, capacity, adaptations, rebuilds }
    }

    /// How every level is filled: the filters from level 0 on, then the level that stores whole digests.
    ///
    /// Takes time in proportion to the filter's memory.
    #[must_use]
    pub fn levels(&self) -> Vec<LevelStats> {
        self.levels.stats()
    }
}

/// Equal in parameters, hash functions, keys and repairs.
impl<F: LevelFilter + PartialEq, H: KeyHasher> PartialEq for Cascade<F, H> {
    fn eq(&self, other: &Self) -> bool {
        let parameters = |filter: &Self| (filter.capacity, filter.rebuilds);
        parameters(self) == parameters(other)
            && self.hasher == other.hasher
            && self.sizes == other.sizes
            && self.ledger == other.ledger
            && self.levels == other.levels
    }
}

impl<F: LevelFilter, H: KeyHasher> Filter for Cascade<F, H> {
    type Hasher = H;
    type Place = Digest;

    #[inline]
    fn hasher(&self) -> &H {
        &self.hasher
    }

    #[inline(always)]
    fn place(&self, digest: Digest) -> Digest {
        digest
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        self.levels.prefetch(digest);
    }

    #[inline(always)]
    fn contains_at(&self, digest: Digest, _: impl FnOnce() -> Digest) -> bool {
        self.levels.contains(digest)
    }

    fn len(&self) -> usize {
        self.ledger.len()
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    /// The rate of level 0: it is what a query must get through, and while nothing was repaired nothing else rejects.
    fn false_positive_rate(&self) -> f64 {
        self.levels.first().false_positive_rate()
    }

    /// Takes time in proportion to the filter's memory. Slots and load are those of level 0.
    fn stats(&self) -> FilterStats {
        let first = self.levels.first().stats();
        let levels: usize = self.levels().iter().map(|level| level.bits).sum();
        let bits = levels + self.ledger.memory_bits();
        FilterStats {
            items: self.len(),
            bits,
            adaptations: self.adaptations,
            adapted_slots: self.levels.dead_cells(),
            adaptivity_bits: bits - first.bits,
            rebuilds: self.rebuilds,
            ..first
        }
    }

    fn verify(&self) -> Result<(), InvariantError> {
        let (len, first) = (self.len(), self.levels.first().len());
        ensure!(len <= self.capacity, "{len} keys stored, capacity {}", self.capacity);
        ensure!(first >= len, "{len} keys stored, {first} of them in level 0");
        ensure!(!F::REMOVES || first == len, "{len} keys stored, {first} in level 0");
        self.ledger.verify()?;
        self.levels.verify()
    }
}

impl<F: LevelFilter, H: KeyHasher> Adaptive for Cascade<F, H> {
    const HASH_ADDRESSED: bool = true;

    fn insert_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        self.insert_key(key, remote)
    }

    fn remove_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        self.remove_key(key, false, remote)
    }

    fn insert_new_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<(), R> {
        self.insert_new_key(key, remote)
    }

    /// Reads the key's list: its neighbours have to be told from it.
    fn remove_stored_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        self.remove_key(key, true, remote)
    }

    fn adapt_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<Adaptation, R> {
        self.adapt_key(key, remote)
    }

    fn clear<R: Remote>(&mut self, remote: &mut R) -> RemoteResult<(), R> {
        let levels = self.empty_levels(1)?;
        clear_remote(remote)?;
        self.take(levels, 1);
        self.ledger.clear();
        Ok(())
    }

    fn verify_remote<R: Remote>(&self, remote: &mut R) -> RemoteResult<(), R> {
        self.verify_lists(remote)
    }

    /// Where a key is missing, or one that the filter does not know is accepted all the same, an authoritative read has
    /// the filter made again from a scan of the whole remote.
    fn settle<R: Remote>(
        &mut self,
        addresses: RangeInclusive<u64>,
        authority: Authority,
        remote: &mut R,
    ) -> RemoteResult<Settled, R> {
        self.settle_lists(&addresses, authority, remote)
    }

    fn rebuild_sorted<R: Remote>(&mut self, remote: &mut R) -> RemoteResult<bool, R> {
        self.make_again(remote)?;
        Ok(true)
    }

    fn home(&self, digest: Digest) -> Option<RangeInclusive<u64>> {
        Some(self.ledger.homes().addresses(self.ledger.list(digest)))
    }

    fn emptied(&self) -> Result<Self, BuildError> {
        let rebuilds = self.rebuilds + 1;
        let (hasher, sizes) = (self.hasher.clone(), self.sizes.clone());
        let (levels, ledger) = (Levels::new(&sizes, &hasher, rebuilds)?, Ledger::new(sizes.lists)?);
        let (capacity, adaptations) = (self.capacity, self.adaptations);
        Ok(Self { hasher, sizes, levels, ledger, capacity, adaptations, rebuilds })
    }
}

impl<F: LevelFilter, H: KeyHasher> HashAddressed for Cascade<F, H> {}
