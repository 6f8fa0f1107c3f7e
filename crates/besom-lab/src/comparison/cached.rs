//! The simplest way to adapt: remember the latest false positives, and answer "absent" for these.

use std::cell::Cell;
use std::collections::HashMap;

use besom::{Adaptation, FilterStats};

use crate::subject::{PlainFilter, RemoteAccesses, Subject, SubjectError};

/// A filter that does not adapt, behind a cache of recent false positives.
///
/// The cache holds whole keys, in `entry_bits` bits each, and evicts by the clock rule: the hand passes over entries
/// that were of use since it came by last. What a real cache needs besides (a hash table's empty slots, links)
/// is not counted, which favours the cache.
///
/// ```
/// use besom_lab::comparison::{Cached, VacuumFilter};
/// use besom_lab::subject::Subject;
///
/// let mut filter = Cached::new(VacuumFilter::new(10, 4, 0.95, 1), 2, 64);
/// (0..10_u64).try_for_each(|key| filter.insert(&key.to_le_bytes()).map(drop))?;
/// let absent = (10..1000_u64).find(|key| filter.contains(&key.to_le_bytes())).unwrap();
/// filter.adapt(&absent.to_le_bytes())?;
/// assert!(!filter.contains(&absent.to_le_bytes()));
/// # Ok::<(), besom_lab::subject::SubjectError>(())
/// ```
#[derive(Debug)]
pub struct Cached<F> {
    filter: F,
    entry_bits: usize,
    capacity: usize,
    index: HashMap<Box<[u8]>, usize>,
    entries: Vec<Entry>,
    hand: usize,
    adaptations: u64,
}

#[derive(Debug)]
struct Entry {
    key: Box<[u8]>,
    /// Whether it was of use since the hand came by.
    used: Cell<bool>,
}

impl<F: PlainFilter> Cached<F> {
    /// A filter with a cache of that many keys of that many bits.
    pub fn new(filter: F, capacity: usize, entry_bits: usize) -> Self {
        let (index, entries) = (HashMap::new(), Vec::new());
        Self { filter, entry_bits, capacity, index, entries, hand: 0, adaptations: 0 }
    }

    /// Where the next entry goes: a new place, or that of the first one that was of no use.
    fn evict(&mut self) -> usize {
        if self.entries.len() < self.capacity {
            return self.entries.len();
        }
        loop {
            let place = self.hand;
            self.hand = (self.hand + 1) % self.entries.len();
            if !self.entries[place].used.replace(false) {
                return place;
            }
        }
    }
}

impl<F: PlainFilter> Subject for Cached<F> {
    fn insert(&mut self, key: &[u8]) -> Result<bool, SubjectError> {
        self.filter.insert(key)?;
        // A stored key is no false positive any more.
        if let Some(place) = self.index.remove(key) {
            self.entries.swap_remove(place);
            if let Some(moved) = self.entries.get(place) {
                self.index.insert(moved.key.clone(), place);
            }
            self.hand = if self.hand < self.entries.len() { self.hand } else { 0 };
        }
        Ok(true)
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, SubjectError> {
        self.filter.remove(key)
    }

    fn contains(&self, key: &[u8]) -> bool {
        if !self.filter.contains(key) {
            return false;
        }
        let cached = self.index.get(key).map(|&place| self.entries[place].used.set(true));
        cached.is_none()
    }

    fn adapt(&mut self, key: &[u8]) -> Result<Adaptation, SubjectError> {
        if self.capacity == 0 {
            return Ok(Adaptation::Unfixable);
        }
        if !self.index.contains_key(key) {
            let place = self.evict();
            let entry = Entry { key: key.into(), used: Cell::new(false) };
            self.index.insert(key.into(), place);
            if place == self.entries.len() {
                self.entries.push(entry);
            } else {
                let evicted = std::mem::replace(&mut self.entries[place], entry);
                self.index.remove(&evicted.key);
            }
        }
        self.adaptations += 1;
        Ok(Adaptation::Fixed { slots: 1 })
    }

    fn stats(&self) -> FilterStats {
        let mut stats = self.filter.stats();
        stats.adaptivity_bits = self.capacity * self.entry_bits;
        stats.bits += stats.adaptivity_bits;
        stats.adaptations = self.adaptations;
        stats.adapted_slots = self.entries.len();
        stats
    }

    fn remote(&self) -> RemoteAccesses {
        RemoteAccesses::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::VacuumFilter;
    use super::*;
    use crate::random::Random;

    #[test]
    fn remembers_so_many_false_positives_and_no_stored_key() {
        let mut random = Random::new(1);
        let mut filter = Cached::new(VacuumFilter::new(200, 4, 0.95, 1), 8, 64);
        let mut stored = Vec::new();
        for _ in 0..20_000 {
            let key = random.below(400);
            let bytes = key.to_le_bytes();
            if stored.len() < 150 && random.below(40) == 0 && !stored.contains(&key) {
                filter.insert(&bytes).unwrap();
                stored.push(key);
            } else if filter.contains(&bytes) && !stored.contains(&key) {
                filter.adapt(&bytes).unwrap();
                assert!(!filter.contains(&bytes));
            }
            assert!(filter.entries.len() <= 8 && filter.index.len() == filter.entries.len());
            assert!(filter.index.iter().all(|(key, &place)| filter.entries[place].key == *key));
            assert!(stored.iter().all(|key| filter.contains(&key.to_le_bytes())));
        }
        assert_eq!(filter.entries.len(), 8);
    }

    #[test]
    fn a_cache_of_nothing_adapts_nothing() {
        let mut filter = Cached::new(VacuumFilter::new(10, 4, 0.95, 1), 0, 64);
        assert_eq!(filter.adapt(b"key"), Ok(Adaptation::Unfixable));
    }
}
