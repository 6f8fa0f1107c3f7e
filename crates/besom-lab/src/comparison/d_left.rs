//! The d-left counting Bloom filter (Bonomi, Mitzenmacher, Panigrahy, Singh and Varghese, 2006).

use besom::{FilterStats, KeyHasher, Xxh3};

use super::{Packed, below, stats};
use crate::random::mix;
use crate::subject::{PlainFilter, SubjectError};

/// The configuration of its authors: four subtables, buckets of eight cells, six of them in use on average.
const SUBTABLES: usize = 4;
const CELLS: usize = 8;
const LOAD: usize = 6;

/// A cell counts to three; one that is full stays so for ever. 0 is an empty cell.
const COUNTER_BITS: u32 = 2;
const FULL: u32 = (1 << COUNTER_BITS) - 1;

/// A hash table of fingerprints and counters: a key goes to the least loaded of four buckets.
///
/// The four buckets and remainders of a key all follow from one fingerprint by permutations, so that two keys which
/// share a cell share all four of their places, and removing one cannot take the other's.
///
/// ```
/// use besom_lab::comparison::DLeftFilter;
/// use besom_lab::subject::PlainFilter;
///
/// let mut filter = DLeftFilter::new(1000, 12, 7);
/// filter.insert(b"key")?;
/// assert!(filter.remove(b"key")?);
/// assert!(!filter.contains(b"key"));
/// # Ok::<(), besom_lab::subject::SubjectError>(())
/// ```
#[derive(Debug, Clone)]
pub struct DLeftFilter {
    hash: Xxh3,
    /// Remainder above counter.
    cells: Packed,
    /// Buckets of a subtable.
    buckets: usize,
    remainder_bits: u32,
    /// The permutations: multiplications modulo the number of fingerprints, by numbers that divide it not.
    factors: [u64; SUBTABLES],
    items: usize,
}

impl DLeftFilter {
    /// A filter for that many keys with remainders of that many bits (clamped to 1..=24).
    #[must_use]
    pub fn new(keys: usize, remainder_bits: u32, seed: u64) -> Self {
        let remainder_bits = remainder_bits.clamp(1, 24);
        let buckets = keys.div_ceil(SUBTABLES * LOAD).max(1);
        let fingerprints = (buckets as u64) << remainder_bits;
        let coprime = |start: u64| (start % fingerprints..).find(|&a| gcd(a, fingerprints) == 1).unwrap_or(1);
        let factors = std::array::from_fn(|table| coprime(mix(seed ^ table as u64) >> 1));
        let cells = Packed::new(SUBTABLES * buckets * CELLS, remainder_bits + COUNTER_BITS);
        let hash = Xxh3::with_seed(seed.into());
        Self { hash, cells, buckets, remainder_bits, factors, items: 0 }
    }

    /// For each subtable the first cell of the key's bucket, and its remainder there.
    fn places(&self, key: &[u8]) -> [(usize, u32); SUBTABLES] {
        let fingerprints = (self.buckets as u64) << self.remainder_bits;
        let fingerprint = below(self.hash.digest(key).hi, fingerprints as usize) as u128;
        std::array::from_fn(|table| {
            let permuted =
                (fingerprint * u128::from(self.factors[table]) % u128::from(fingerprints)) as usize;
            let bucket = table * self.buckets + (permuted >> self.remainder_bits);
            (bucket * CELLS, permuted as u32 & ((1 << self.remainder_bits) - 1))
        })
    }

    fn cell(&self, cell: usize) -> (u32, u32) {
        let value = self.cells.get(cell);
        (value >> COUNTER_BITS, value & FULL)
    }

    fn set(&mut self, cell: usize, remainder: u32, count: u32) {
        self.cells.set(cell, remainder << COUNTER_BITS | count);
    }

    /// The cell that counts a key.
    fn find(&self, places: &[(usize, u32)]) -> Option<usize> {
        let matching = |&(start, wanted): &(usize, u32)| {
            (start..start + CELLS).find(|&cell| {
                let (remainder, count) = self.cell(cell);
                count > 0 && remainder == wanted
            })
        };
        places.iter().find_map(matching)
    }

    fn free(&self, start: usize) -> impl Iterator<Item = usize> + '_ {
        (start..start + CELLS).filter(|&cell| self.cell(cell).1 == 0)
    }
}

impl PlainFilter for DLeftFilter {
    fn insert(&mut self, key: &[u8]) -> Result<(), SubjectError> {
        let places = self.places(key);
        if let Some(cell) = self.find(&places) {
            let (remainder, count) = self.cell(cell);
            self.set(cell, remainder, (count + 1).min(FULL));
        } else {
            // The emptiest bucket, the leftmost of several.
            let emptiest = places.iter().rev().max_by_key(|(start, _)| self.free(*start).count());
            let place = emptiest.and_then(|&(start, remainder)| Some((self.free(start).next()?, remainder)));
            let Some((cell, remainder)) = place else {
                return Err(SubjectError::Failed(format!(
                    "all four buckets of a key are full with {} keys stored",
                    self.items
                )));
            };
            self.set(cell, remainder, 1);
        }
        self.items += 1;
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, SubjectError> {
        let Some(cell) = self.find(&self.places(key)) else { return Ok(false) };
        let (remainder, count) = self.cell(cell);
        if count < FULL {
            self.set(cell, remainder, count - 1);
        }
        self.items -= 1;
        Ok(true)
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.find(&self.places(key)).is_some()
    }

    fn stats(&self) -> FilterStats {
        stats(self.items, self.cells.len(), self.cells.bits())
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
