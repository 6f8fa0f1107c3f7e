//! The cascade as a filter.

use super::builder::CascadeBuilder;
use super::level::{LevelFilter, LevelStats};
use super::state::{Levels, Overflow, Plan, part};
use crate::error::ensure;
use crate::{
    Adaptation, Adaptive, AdaptiveError, BuildError, Change, Digest, Filter, FilterStats, FullError,
    InvariantError, Key, KeyHasher, Remote, Resync, Xxh3,
};

/// A filter made adaptive by levels: it repairs every false positive that it is told of, in constant space.
///
/// `F` is the filter of each level: [`BloomFilter`](crate::BloomFilter) (then this is the
/// [`AdaptiveBloomFilter`](crate::AdaptiveBloomFilter)), [`QuotientFilter`](crate::QuotientFilter),
/// [`BlockedBloomFilter`](crate::BlockedBloomFilter), or any other that implements [`LevelFilter`].
///
/// A query that level 0 rejects, as it does all but ε of those for absent keys, costs what it costs in `F`. A
/// repair reads one list of the remote and writes nothing there; it takes about 16 bits until the next rebuild.
/// A rebuild reads all lists once, and needs the memory of a second filter while it lasts. It comes after some
/// repairs in proportion to the capacity: at ε = 1/256, one for every 90 stored keys, found by about three
/// different queries per stored key; and, if `F` cannot remove, after as many removals.
///
/// The remote has one list per key on average, and every key is in one of them.
///
/// ```
/// use besom::{Adaptive, Cascade, Filter, MemoryRemote, QuotientFilter};
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
#[derive(Debug, Clone)]
pub struct Cascade<F, H = Xxh3> {
    hasher: H,
    plan: Plan,
    levels: Levels<F>,
    len: usize,
    capacity: usize,
    adaptations: u64,
    rebuilds: u64,
}

impl<F: LevelFilter> Cascade<F> {
    /// Starts building a filter.
    pub fn builder() -> CascadeBuilder<F> {
        CascadeBuilder::new()
    }

    /// An empty filter for so many keys, with a false-positive rate of 1/256 and a random seed.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the capacity is 0 or the memory not to be had.
    pub fn with_capacity(capacity: usize) -> Result<Self, BuildError> {
        Self::builder().capacity(capacity).build()
    }
}

/// The list of a key in the remote.
struct List {
    address: u64,
    /// The digests of the other keys.
    neighbours: Vec<Digest>,
    /// Where the key is, if it is there.
    rank: Option<usize>,
}

impl<F: LevelFilter, H: KeyHasher> Cascade<F, H> {
    /// Rebuilds that one repair makes before it gives up. Each accepts the key again with probability ε only.
    const MAX_REBUILDS: usize = 16;

    pub(super) fn new(plan: Plan, capacity: usize, hasher: H) -> Result<Self, BuildError> {
        let levels = Levels::new(&plan, &hasher, 0)?;
        Ok(Self { hasher, plan, levels, len: 0, capacity, adaptations: 0, rebuilds: 0 })
    }

    /// How every level is filled: the filters from level 0 on, then the level that stores whole digests.
    ///
    /// Takes time in proportion to the filter's memory.
    #[must_use]
    pub fn levels(&self) -> Vec<LevelStats> {
        self.levels.stats()
    }

    /// Reads the list that a key is in, or would be.
    fn read<R: Remote>(
        &self,
        key: &[u8],
        digest: Digest,
        remote: &mut R,
    ) -> Result<List, AdaptiveError<R::Error>> {
        let address = part(digest, self.plan.lists);
        let mut list = List { address, neighbours: Vec::new(), rank: None };
        let mut rank = 0;
        let mut visit = |stored: &[u8]| {
            if stored == key {
                list.rank = Some(rank);
            } else {
                list.neighbours.push(self.hasher.digest(stored));
            }
            rank += 1;
        };
        remote.read(address, &mut visit).map_err(AdaptiveError::Remote)?;
        Ok(list)
    }

    /// Levels without keys, with hash functions that were never used.
    fn empty_levels<E>(&self) -> Result<Levels<F>, AdaptiveError<E>> {
        Levels::new(&self.plan, &self.hasher, self.rebuilds + 1).map_err(|error| match error {
            BuildError::OutOfMemory { bytes } => AdaptiveError::OutOfMemory { bytes },
            // The same plan was carried out when the filter was built.
            _ => AdaptiveError::OutOfMemory { bytes: 0 },
        })
    }

    /// Puts other levels in the place of those at present.
    fn take(&mut self, levels: Levels<F>) {
        self.levels = levels;
        self.rebuilds += 1;
    }

    /// Levels with fresh hash functions and all keys of the remote, except perhaps one.
    fn rebuilt<R: Remote>(
        &self,
        remote: &mut R,
        except: Option<&[u8]>,
    ) -> Result<Levels<F>, AdaptiveError<R::Error>> {
        let mut levels = self.empty_levels()?;
        let expected = self.len - usize::from(except.is_some());
        let mut found = 0;
        for address in 0..self.plan.lists {
            let mut foreign = false;
            let mut visit = |key: &[u8]| {
                let digest = self.hasher.digest(key);
                foreign |= part(digest, self.plan.lists) != address;
                if except != Some(key) {
                    found += 1;
                    // All cells are alive, so the key goes to level 0 only, which has room for all.
                    foreign |= found > expected || levels.insert(digest).is_err();
                }
            };
            remote.read(address, &mut visit).map_err(AdaptiveError::Remote)?;
            if foreign || address + 1 == self.plan.lists && found != expected {
                return Err(AdaptiveError::Inconsistent { address, expected, found });
            }
        }
        Ok(levels)
    }

    fn insert_bytes<R: Remote>(
        &mut self,
        key: &[u8],
        remote: &mut R,
    ) -> Result<bool, AdaptiveError<R::Error>> {
        let digest = self.hasher.digest(key);
        if self.contains_digest(digest) && self.read(key, digest, remote)?.rank.is_some() {
            return Ok(false);
        }
        if self.len >= self.capacity {
            return Err(FullError { len: self.len, capacity: self.capacity }.into());
        }
        let push = [Change::Push { address: part(digest, self.plan.lists), key }];
        if self.levels.reserve(digest) == Err(Overflow) {
            let mut levels = self.rebuilt(remote, None)?;
            remote.apply(&push).map_err(AdaptiveError::Remote)?;
            let inserted = levels.insert(digest);
            debug_assert!(inserted.is_ok(), "level 0 has room for every key");
            self.take(levels);
        } else {
            remote.apply(&push).map_err(AdaptiveError::Remote)?;
            let inserted = self.levels.insert(digest);
            debug_assert!(inserted.is_ok(), "room was reserved");
        }
        self.len += 1;
        Ok(true)
    }

    fn remove_bytes<R: Remote>(
        &mut self,
        key: &[u8],
        remote: &mut R,
    ) -> Result<bool, AdaptiveError<R::Error>> {
        let digest = self.hasher.digest(key);
        if !self.contains_digest(digest) {
            return Ok(false);
        }
        let List { address, neighbours, rank } = self.read(key, digest, remote)?;
        let Some(rank) = rank else { return Ok(false) };
        let change = [Change::Remove { address, rank, key }];
        if !F::REMOVES && self.levels.reserve_rejection(digest, &neighbours) == Err(Overflow) {
            let levels = self.rebuilt(remote, Some(key))?;
            remote.apply(&change).map_err(AdaptiveError::Remote)?;
            self.take(levels);
        } else {
            remote.apply(&change).map_err(AdaptiveError::Remote)?;
            self.levels.remove(digest);
            if !F::REMOVES {
                // What is left of the key is a false positive. Should a deeper level have no room to repair it, it
                // stays one until somebody asks.
                let _ = self.levels.reject(digest, &neighbours);
            }
        }
        self.len -= 1;
        Ok(true)
    }

    fn adapt_bytes<R: Remote>(
        &mut self,
        key: &[u8],
        remote: &mut R,
    ) -> Result<Adaptation, AdaptiveError<R::Error>> {
        let digest = self.hasher.digest(key);
        if !self.contains_digest(digest) {
            return Ok(Adaptation::NotFalsePositive);
        }
        let List { neighbours, rank, .. } = self.read(key, digest, remote)?;
        if rank.is_some() {
            return Ok(Adaptation::NotFalsePositive);
        }
        let mut resets = 0;
        let slots = loop {
            match self.levels.reject(digest, &neighbours) {
                Ok(slots) => break slots,
                Err(Overflow) if resets == Self::MAX_REBUILDS => return Ok(Adaptation::Unfixable),
                Err(Overflow) => {
                    let levels = self.rebuilt(remote, None)?;
                    self.take(levels);
                    resets += 1;
                }
            }
        };
        if self.contains_digest(digest) {
            return Ok(Adaptation::Unfixable);
        }
        self.adaptations += 1;
        Ok(if resets == 0 {
            Adaptation::Fixed { slots }
        } else {
            Adaptation::FixedAfterReset { slots, resets }
        })
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
        self.len
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    /// Takes time in proportion to the filter's memory. Slots and load are those of level 0.
    fn stats(&self) -> FilterStats {
        let first = self.levels.first().stats();
        let bits: usize = self.levels().iter().map(|level| level.bits).sum();
        FilterStats {
            items: self.len,
            bits: bits + size_of::<Self>() * 8,
            adaptations: self.adaptations,
            adapted_slots: self.levels.dead_cells(),
            adaptivity_bits: bits - first.bits,
            rebuilds: self.rebuilds,
            ..first
        }
    }

    fn verify(&self) -> Result<(), InvariantError> {
        let first = self.levels.first().len();
        ensure!(self.len <= self.capacity, "{} keys stored, capacity {}", self.len, self.capacity);
        ensure!(first >= self.len, "{} keys stored, {first} of them in level 0", self.len);
        ensure!(!F::REMOVES || first == self.len, "{} keys stored, {first} in level 0", self.len);
        self.levels.verify()
    }
}

impl<F: LevelFilter, H: KeyHasher> Adaptive for Cascade<F, H> {
    fn insert<K, R>(&mut self, key: &K, remote: &mut R) -> Result<bool, AdaptiveError<R::Error>>
    where
        K: Key + ?Sized,
        R: Remote,
    {
        key.with_bytes(|key| self.insert_bytes(key, remote))
    }

    fn remove<K, R>(&mut self, key: &K, remote: &mut R) -> Result<bool, AdaptiveError<R::Error>>
    where
        K: Key + ?Sized,
        R: Remote,
    {
        key.with_bytes(|key| self.remove_bytes(key, remote))
    }

    fn adapt<K, R>(&mut self, key: &K, remote: &mut R) -> Result<Adaptation, AdaptiveError<R::Error>>
    where
        K: Key + ?Sized,
        R: Remote,
    {
        key.with_bytes(|key| self.adapt_bytes(key, remote))
    }

    fn clear<R: Remote>(&mut self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        let levels = self.empty_levels()?;
        remote.apply(&[Change::Clear]).map_err(AdaptiveError::Remote)?;
        self.take(levels);
        self.len = 0;
        Ok(())
    }

    fn verify_remote<R: Remote>(&self, _remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        Ok(())
    }

    fn resync<R: Remote>(
        &mut self,
        _addresses: &[u64],
        _remote: &mut R,
    ) -> Result<Resync, AdaptiveError<R::Error>> {
        Ok(Resync::InQuestion { slots: 1 })
    }

    fn emptied(&self) -> Result<Self, BuildError> {
        let levels = Levels::new(&self.plan, &self.hasher, self.rebuilds + 1)?;
        let (hasher, plan) = (self.hasher.clone(), self.plan.clone());
        let (capacity, adaptations) = (self.capacity, self.adaptations);
        Ok(Self { hasher, plan, levels, len: 0, capacity, adaptations, rebuilds: self.rebuilds + 1 })
    }
}
