//! Sets of keys: all of them in memory, each once.

use besom::{KeyHasher, Seed, Xxh3};
use hashbrown::HashTable;

/// Distinct keys, numbered in the order in which they came. Takes the bytes of the keys and some 14 bytes for each.
pub(crate) struct KeySet {
    bytes: Vec<u8>,
    /// Where each key ends; it begins where the one before ends.
    ends: Vec<usize>,
    /// Numbers of keys, by the hash of the key.
    index: HashTable<u32>,
    hash: Xxh3,
}

impl KeySet {
    pub(crate) fn new() -> Self {
        let hash = Xxh3::with_seed(Seed::from(0x6b65_7973_u64));
        Self { bytes: Vec::new(), ends: Vec::new(), index: HashTable::new(), hash }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The most keys that have numbers.
    pub(crate) const MOST: usize = u32::MAX as usize;

    /// Adds a key. Its number, and whether it is new. `None` if there is no number left.
    pub(crate) fn insert(&mut self, key: &[u8]) -> Option<(u32, bool)> {
        let hash = self.hash.digest(key).lo;
        if let Some(number) = self.find(hash, key) {
            return Some((number, false));
        }
        let number = u32::try_from(self.len()).ok().filter(|&number| number != u32::MAX)?;
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        let Self { bytes, ends, index, hash: hasher } = self;
        index.insert_unique(hash, number, |&other| hasher.digest(slice(bytes, ends, other)).lo);
        Some((number, true))
    }

    /// The number of a key.
    pub(crate) fn number(&self, key: &[u8]) -> Option<u32> {
        self.find(self.hash.digest(key).lo, key)
    }

    fn find(&self, hash: u64, key: &[u8]) -> Option<u32> {
        self.index.find(hash, |&number| self.get(number) == key).copied()
    }

    /// The key that has this number, which must have been given out.
    pub(crate) fn get(&self, number: u32) -> &[u8] {
        slice(&self.bytes, &self.ends, number)
    }

    /// All keys in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        (0..self.len()).map(|number| slice(&self.bytes, &self.ends, number as u32))
    }
}

fn slice<'a>(bytes: &'a [u8], ends: &[usize], number: u32) -> &'a [u8] {
    let number = number as usize;
    let start = if number == 0 { 0 } else { ends[number - 1] };
    &bytes[start..ends[number]]
}

#[cfg(test)]
mod tests {
    //! Catches: keys that run into one another, duplicates that are counted.
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn a_set_is_a_set() {
        let (mut set, mut model) = (KeySet::new(), HashMap::new());
        let mut random = besom::testing::Random::new(7);
        for _ in 0..5000 {
            // Short keys of two letters: many of them twice, some of them empty, prefixes of one another.
            let length = random.below(9) as usize;
            let key: Vec<u8> = (0..length).map(|_| b"ab"[random.below(2) as usize]).collect();
            let next = model.len() as u32;
            let (number, new) = set.insert(&key).unwrap();
            assert_eq!(new, !model.contains_key(&key));
            assert_eq!(number, *model.entry(key).or_insert(next));
        }
        assert_eq!(set.len(), model.len());
        for (key, &number) in &model {
            assert_eq!((set.number(key), set.get(number)), (Some(number), &key[..]));
        }
        assert_eq!(set.number(b"abc"), None);
        assert_eq!(set.iter().count(), set.len());
    }
}
