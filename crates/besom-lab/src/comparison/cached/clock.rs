//! A cache as papers draw it: whole keys, the clock rule, nothing else to pay for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use besom::InvariantError;

use super::super::ensure;
use super::Memory;

/// At most this many whole keys, in this many bits each, evicted by the clock rule: the hand passes over entries that
/// were of use since it came by last.
///
/// What a real cache needs besides (a hash table's empty slots, links) is not counted, which favours the cache.
#[derive(Debug)]
pub struct Clock {
    entry_bits: usize,
    bound: usize,
    /// Where in `entries` a key is.
    index: HashMap<Box<[u8]>, usize>,
    entries: Vec<Entry>,
    hand: usize,
}

#[derive(Debug)]
struct Entry {
    key: Box<[u8]>,
    /// Whether it was of use since the hand came by.
    used: AtomicBool,
}

impl Clock {
    /// A cache of at most `bound` keys of `entry_bits` bits each.
    #[must_use]
    pub fn new(bound: usize, entry_bits: usize) -> Self {
        Self { entry_bits, bound, index: HashMap::new(), entries: Vec::new(), hand: 0 }
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
}

impl Memory for Clock {
    fn knows(&self, key: &[u8]) -> bool {
        let entry = self.index.get(key).map(|&place| &self.entries[place]);
        entry.map(|entry| entry.used.store(true, Ordering::Relaxed)).is_some()
    }

    fn remember(&mut self, key: &[u8]) -> bool {
        if self.bound == 0 {
            return false;
        }
        let place = self.evict();
        let entry = Entry { key: key.into(), used: AtomicBool::new(false) };
        self.index.insert(key.into(), place);
        if place == self.entries.len() {
            self.entries.push(entry);
        } else {
            let evicted = std::mem::replace(&mut self.entries[place], entry);
            self.index.remove(&evicted.key);
        }
        true
    }

    fn forget(&mut self, key: &[u8]) {
        if let Some(place) = self.index.remove(key) {
            self.entries.swap_remove(place);
            if let Some(moved) = self.entries.get(place) {
                self.index.insert(moved.key.clone(), place);
            }
            self.hand = if self.hand < self.entries.len() { self.hand } else { 0 };
        }
    }

    fn clear(&mut self) {
        self.index.clear();
        self.entries.clear();
        self.hand = 0;
    }

    fn len(&self) -> usize {
        self.entries.len()
    }

    fn bits(&self) -> usize {
        self.bound * self.entry_bits
    }

    fn verify(&self) -> Result<(), InvariantError> {
        let place = |key: &[u8]| self.index.get(key).copied();
        let indexed = |(number, entry): (usize, &Entry)| place(&entry.key) == Some(number);
        let sound = self.entries.len() <= self.bound && self.index.len() == self.entries.len();
        ensure(sound && self.entries.iter().enumerate().all(indexed), || {
            "the cache and its index disagree".into()
        })
    }
}
