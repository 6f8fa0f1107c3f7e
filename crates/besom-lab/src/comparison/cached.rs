//! The simplest way to adapt: remember the latest false positives, and answer "absent" for these.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};

use besom::{
    Adaptation, AnyRemoteError, Authority, DynFilter, DynFilterError, FilterStats, InvariantError, Remote,
    Seed, Settled,
};

use super::ensure;

/// A filter that does not adapt, behind a cache of recent false positives.
///
/// The cache holds whole keys, in `entry_bits` bits each, and evicts by the clock rule: the hand passes over entries
/// that were of use since it came by last. What a real cache needs besides (a hash table's empty slots, links)
/// is not counted, which favours the cache.
///
/// ```
/// use besom::dyn_removable;
/// use besom_lab::comparison::{Cached, VacuumFilter};
/// use besom_lab::subject::Subject;
///
/// let cached = Cached::new(dyn_removable(VacuumFilter::new(10, 4, 0.95, 1)), 2, 64);
/// let mut filter: Subject = Subject::new(Box::new(cached));
/// (0..10_u64).try_for_each(|key| filter.insert(&key.to_le_bytes()).map(drop))?;
/// let absent = (10..1000_u64).find(|key| filter.contains(&key.to_le_bytes())).unwrap();
/// filter.adapt(&absent.to_le_bytes())?;
/// assert!(!filter.contains(&absent.to_le_bytes()));
/// # Ok::<(), besom::DynFilterError>(())
/// ```
pub struct Cached {
    filter: Box<dyn DynFilter>,
    entry_bits: usize,
    bound: usize,
    /// Where in `entries` a key is.
    index: HashMap<Box<[u8]>, usize>,
    entries: Vec<Entry>,
    hand: usize,
    adaptations: u64,
}

#[derive(Debug)]
struct Entry {
    key: Box<[u8]>,
    /// Whether it was of use since the hand came by.
    used: AtomicBool,
}

impl Cached {
    /// A filter with a cache of at most `bound` keys of `entry_bits` bits each.
    #[must_use]
    pub fn new(filter: Box<dyn DynFilter>, bound: usize, entry_bits: usize) -> Self {
        let (index, entries) = (HashMap::new(), Vec::new());
        Self { filter, entry_bits, bound, index, entries, hand: 0, adaptations: 0 }
    }

    /// Where the next entry goes: a new place, or that of the first one that was of no use.
    fn evict(&mut self) -> usize {
        if self.entries.len() < self.bound {
            return self.entries.len();
        }
        loop {
            let place = self.hand;
            self.hand = (self.hand + 1) % self.entries.len();
            if !std::mem::take(self.entries[place].used.get_mut()) {
                return place;
            }
        }
    }

    /// Remembers a false positive.
    fn remember(&mut self, key: &[u8]) {
        let place = self.evict();
        let entry = Entry { key: key.into(), used: AtomicBool::new(false) };
        self.index.insert(key.into(), place);
        if place == self.entries.len() {
            self.entries.push(entry);
        } else {
            let evicted = std::mem::replace(&mut self.entries[place], entry);
            self.index.remove(&evicted.key);
        }
    }

    /// A stored key is no false positive any more.
    fn forget(&mut self, key: &[u8]) {
        if let Some(place) = self.index.remove(key) {
            self.entries.swap_remove(place);
            if let Some(moved) = self.entries.get(place) {
                self.index.insert(moved.key.clone(), place);
            }
            self.hand = if self.hand < self.entries.len() { self.hand } else { 0 };
        }
    }
}

type DynRemote<'r> = &'r mut dyn Remote<Error = AnyRemoteError>;

impl DynFilter for Cached {
    fn contains(&self, key: &[u8]) -> bool {
        if !self.filter.contains(key) {
            return false;
        }
        let entry = self.index.get(key).map(|&place| &self.entries[place]);
        entry.map(|entry| entry.used.store(true, Ordering::Relaxed)).is_none()
    }

    fn contains_many(&self, keys: &[&[u8]], answers: &mut Vec<bool>) {
        answers.clear();
        answers.extend(keys.iter().map(|key| self.contains(key)));
    }

    fn insert(&mut self, key: &[u8], remote: DynRemote<'_>) -> Result<bool, DynFilterError> {
        let new = !self.contains(key);
        self.filter.insert(key, remote)?;
        self.forget(key);
        Ok(new)
    }

    fn remove(&mut self, key: &[u8], remote: DynRemote<'_>) -> Result<bool, DynFilterError> {
        self.filter.remove(key, remote)
    }

    fn adapt(&mut self, key: &[u8], _: DynRemote<'_>) -> Result<Adaptation, DynFilterError> {
        if !self.contains(key) {
            return Ok(Adaptation::NotFalsePositive);
        }
        if self.bound == 0 {
            return Ok(Adaptation::Unfixable);
        }
        self.remember(key);
        self.adaptations += 1;
        Ok(Adaptation::Fixed { slots: 1 })
    }

    fn clear(&mut self, remote: DynRemote<'_>) -> Result<(), DynFilterError> {
        self.filter.clear(remote)?;
        self.index.clear();
        self.entries.clear();
        self.hand = 0;
        Ok(())
    }

    fn verify_remote(&self, remote: DynRemote<'_>) -> Result<(), DynFilterError> {
        self.filter.verify_remote(remote)
    }

    fn settle(
        &mut self,
        addresses: RangeInclusive<u64>,
        authority: Authority,
        remote: DynRemote<'_>,
    ) -> Result<Settled, DynFilterError> {
        self.filter.settle(addresses, authority, remote)
    }

    fn is_adaptive(&self) -> bool {
        self.filter.is_adaptive()
    }

    fn verify(&self) -> Result<(), InvariantError> {
        let place = |key: &[u8]| self.index.get(key).copied();
        let indexed = |(number, entry): (usize, &Entry)| place(&entry.key) == Some(number);
        let sound = self.entries.len() <= self.bound && self.index.len() == self.entries.len();
        ensure(sound && self.entries.iter().enumerate().all(indexed), || {
            "the cache and its index disagree".into()
        })?;
        self.filter.verify()
    }

    fn stats(&self) -> FilterStats {
        let mut stats = self.filter.stats();
        stats.adaptivity_bits = self.bound * self.entry_bits;
        stats.bits += stats.adaptivity_bits;
        stats.adaptations = self.adaptations;
        stats.adapted_slots = self.entries.len();
        stats
    }

    fn len(&self) -> usize {
        self.filter.len()
    }

    fn capacity(&self) -> usize {
        self.filter.capacity()
    }

    fn seed(&self) -> Seed {
        self.filter.seed()
    }
}

#[cfg(test)]
mod tests {
    //! Catches: a cache that grows beyond its bound, loses its index, or hides a stored key.
    use besom::testing::NullRemote;
    use besom::{AnyRemote, dyn_removable};

    use super::super::VacuumFilter;
    use super::*;
    use crate::random::Random;

    fn cached(keys: usize, bound: usize) -> Cached {
        Cached::new(dyn_removable(VacuumFilter::new(keys, 4, 0.95, 1)), bound, 64)
    }

    #[test]
    fn remembers_so_many_false_positives_and_no_stored_key() {
        let (mut random, mut remote) = (Random::new(1), AnyRemote(NullRemote));
        let mut filter = cached(200, 8);
        let mut stored = Vec::new();
        for _ in 0..20_000 {
            let key = random.below(400);
            let bytes = key.to_le_bytes();
            if stored.len() < 150 && random.below(40) == 0 && !stored.contains(&key) {
                filter.insert(&bytes, &mut remote).unwrap();
                stored.push(key);
            } else if filter.contains(&bytes) && !stored.contains(&key) {
                filter.adapt(&bytes, &mut remote).unwrap();
                assert!(!filter.contains(&bytes));
            }
            filter.verify().unwrap();
            assert!(stored.iter().all(|key| filter.contains(&key.to_le_bytes())));
        }
        assert_eq!(filter.entries.len(), 8);
        filter.clear(&mut remote).unwrap();
        assert!(filter.is_empty() && filter.verify().is_ok() && filter.stats().adapted_slots == 0);
    }

    #[test]
    fn a_cache_of_nothing_adapts_nothing() {
        let (mut filter, mut remote) = (cached(10, 0), AnyRemote(NullRemote));
        filter.insert(b"key", &mut remote).unwrap();
        assert_eq!(filter.adapt(b"key", &mut remote).unwrap(), Adaptation::Unfixable);
        assert_eq!(filter.adapt(b"other", &mut remote).unwrap(), Adaptation::NotFalsePositive);
    }
}
