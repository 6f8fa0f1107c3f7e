//! A cache as people have it: the smallest maintained crate for it, with what it really takes.

use std::hash::{BuildHasher, Hasher};
use std::sync::{Mutex, PoisonError};

use besom::{InvariantError, KeyHasher, Seed, Xxh3};
use schnellru::{ByMemoryUsage, LruMap};

use super::Memory;
use crate::random::mix;

/// The least recently used cache of `schnellru`, of keyed 64-bit hashes, within this many bytes.
///
/// Of the maintained caches that were measured (`quick_cache` 51 to 123 bytes an entry, `lru` 52 to 70, `hashlink` 39
/// to 49, `schnellru` 20 to 39 within a budget of bytes) it holds the most entries. Hashes stand for keys, which makes
/// entries small at the price of a false negative in 2^64 / (entries · stored keys) look-ups: both favour the cache.
///
/// ```
/// use besom_lab::comparison::{Lru, Memory};
///
/// let mut cache = Lru::new(Lru::bytes(13), 7);
/// (0..100_000_u64).for_each(|key| assert!(cache.remember(&key.to_le_bytes())));
/// assert!(cache.knows(&99_999_u64.to_le_bytes()) && !cache.knows(&0_u64.to_le_bytes()));
/// assert!(cache.len() >= 3584 && cache.len() <= 7168);
/// assert_eq!(cache.bits(), 8 * Lru::bytes(13));
/// ```
pub struct Lru {
    hash: Xxh3,
    budget: usize,
    /// A look-up moves its entry to the front, so it changes the map.
    map: Mutex<Map>,
}

type Map = LruMap<u64, (), ByMemoryUsage, Hashed>;

/// Keys that are hashes already.
#[derive(Debug, Clone, Copy, Default)]
struct Hashed(u64);

impl BuildHasher for Hashed {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        Self(0)
    }
}

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, &byte| mix(hash ^ u64::from(byte)));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl Lru {
    /// The bytes of a cache whose table has 2^log2 places: 17 for each, and 16.
    #[must_use]
    pub const fn bytes(log2: u32) -> usize {
        17 * (1 << log2) + 16
    }

    /// The sizes that the table can have within this many bytes, the smallest first.
    pub fn sizes(most: usize) -> impl Iterator<Item = usize> {
        (4..32).map(Self::bytes).take_while(move |&bytes| bytes <= most)
    }

    /// A cache that takes at most `budget` bytes; of none if they are too few for the smallest.
    #[must_use]
    pub fn new(budget: usize, seed: u64) -> Self {
        let budget = Self::sizes(budget).last().unwrap_or(0);
        let map = LruMap::with_memory_budget_and_hasher(budget, Hashed(0));
        Self { hash: Xxh3::with_seed(Seed::from(mix(!seed))), budget, map: Mutex::new(map) }
    }

    fn hashed(&self, key: &[u8]) -> u64 {
        self.hash.digest(key).lo
    }

    fn map(&mut self) -> &mut Map {
        self.map.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Map> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes for the cache, of `bits` for a Bloom filter of this many keys and its cache, with which this very
    /// stream of absent queries has the fewest useless reads. `stream` has a hash of each query; 0 means no cache at
    /// all.
    ///
    /// The filter is simulated: a query is a false positive if its hash says so, with the rate that the bits left to
    /// the filter allow. Nobody knows a stream beforehand, so this favours the cache.
    #[must_use]
    pub fn best_split(keys: usize, bits: f64, stream: &[u64]) -> usize {
        let splits: Vec<usize> = std::iter::once(0).chain(Self::sizes(bits as usize / 16)).collect();
        // The largest cache leaves the coarsest filter: what passes none of that is settled.
        let coarsest = threshold(keys, bits, splits.last().copied().unwrap_or(0));
        let mut reads = vec![0; splits.len()];
        for draw in (1..=DRAWS).map(mix) {
            let passing: Vec<u64> =
                stream.iter().copied().filter(|query| mix(query ^ draw) < coarsest).collect();
            for (reads, &bytes) in reads.iter_mut().zip(&splits) {
                *reads += useless_reads(&passing, draw, threshold(keys, bits, bytes), bytes);
            }
        }
        reads.into_iter().zip(splits).min().map_or(0, |(_, bytes)| bytes)
    }
}

/// How often a simulated filter is drawn for each split.
const DRAWS: u64 = 4;

/// Hashes below this are accepted by a Bloom filter in what a cache of this many bytes leaves.
fn threshold(keys: usize, bits: f64, bytes: usize) -> u64 {
    let left = (bits - 8.0 * bytes as f64) / keys.max(1) as f64;
    // The rate of a Bloom filter of this many bits a key.
    let rate = 0.5_f64.powf(left * std::f64::consts::LN_2);
    (rate * 2_f64.powi(64)) as u64
}

/// The useless reads of a simulated filter with a cache of this many bytes.
fn useless_reads(stream: &[u64], draw: u64, threshold: u64, bytes: usize) -> u64 {
    let mut cache: Map = LruMap::with_memory_budget_and_hasher(bytes, Hashed(0));
    let mut reads = 0;
    for &query in stream {
        if mix(query ^ draw) < threshold && cache.get(&query).is_none() {
            reads += 1;
            cache.insert(query, ());
        }
    }
    reads
}

impl Memory for Lru {
    fn knows(&self, key: &[u8]) -> bool {
        self.locked().get(&self.hashed(key)).is_some()
    }

    fn remember(&mut self, key: &[u8]) -> bool {
        let hashed = self.hashed(key);
        self.budget > 0 && self.map().insert(hashed, ())
    }

    fn forget(&mut self, key: &[u8]) {
        let hashed = self.hashed(key);
        self.map().remove(&hashed);
    }

    fn clear(&mut self) {
        self.map().clear();
    }

    fn len(&self) -> usize {
        self.locked().len()
    }

    fn bits(&self) -> usize {
        8 * self.budget
    }

    fn verify(&self) -> Result<(), InvariantError> {
        let taken = self.locked().memory_usage();
        super::super::ensure(taken <= self.budget, || {
            format!("{taken} bytes, where {} were allowed", self.budget)
        })
    }
}

impl std::fmt::Debug for Lru {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lru").field("budget", &self.budget).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    //! Catches: a cache that takes more than it is given, and a split that is not the best.
    use super::*;
    use crate::workload::{Uniform, Zipf};

    #[test]
    fn the_budget_holds_under_churn() {
        for log2 in [4, 8, 13] {
            let mut cache = Lru::new(Lru::bytes(log2) + 5, 1);
            for key in Uniform::new(1).take(50_000) {
                cache.remember(&key.to_le_bytes());
                assert!(cache.knows(&key.to_le_bytes()));
            }
            cache.verify().unwrap();
            assert!(cache.len() >= (1 << log2) * 7 / 16, "{}", cache.len());
        }
        let mut none = Lru::new(100, 1);
        assert!(!none.remember(b"key") && none.bits() == 0);
    }

    #[test]
    fn a_cache_pays_where_keys_come_again_and_only_there() {
        let fresh: Vec<u64> = Uniform::new(1).take(200_000).collect();
        assert_eq!(Lru::best_split(40_000, 480_000.0, &fresh), 0);
        let popular: Vec<u64> = Zipf::new(20_000, 1.0, 1).unwrap().take(200_000).collect();
        let bytes = Lru::best_split(40_000, 480_000.0, &popular);
        assert!(bytes > 0 && bytes < 30_000, "{bytes}");
        let reads = |bytes| useless_reads(&popular, 9, threshold(40_000, 480_000.0, bytes), bytes);
        assert!(reads(bytes) * 2 < reads(0), "{} and {}", reads(bytes), reads(0));
    }
}
