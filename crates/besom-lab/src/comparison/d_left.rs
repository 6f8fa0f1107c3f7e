//! The d-left counting Bloom filter (Bonomi, Mitzenmacher, Panigrahy, Singh and Varghese, 2006).

use besom::{
    Digest, Filter, FilterStats, FullError, Insert, InvariantError, KeyHasher, RemovalDisabled, Remove, Xxh3,
};

use super::{Packed, answer_alike, below, collision_rate, ensure, stats};
use crate::random::mix;

/// The configuration of its authors: four subtables, buckets of eight cells, six of them in use on average.
const SUBTABLES: usize = 4;
const CELLS: usize = 8;
const LOAD: usize = 6;

/// A cell counts to three; one that is full stays so forever. 0 is an empty cell.
const COUNTER_BITS: u32 = 2;
const FULL: u32 = (1 << COUNTER_BITS) - 1;

/// A hash table of fingerprints and counters: a key goes to the least loaded of four buckets.
///
/// The four buckets and remainders of a key all follow from one fingerprint by permutations, so that two keys which
/// share a cell share all four of their places, and removing one cannot take the other's.
///
/// ```
/// use besom::{Filter, Insert, Remove};
/// use besom_lab::comparison::DLeftFilter;
///
/// let mut filter = DLeftFilter::new(1000, 12, 7);
/// filter.insert("key")?;
/// assert!(filter.remove("key")?);
/// assert!(!filter.contains("key"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
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
    capacity: usize,
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
        Self { hash, cells, buckets, remainder_bits, factors, items: 0, capacity: keys }
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

impl Filter for DLeftFilter {
    answer_alike!();

    /// For each subtable the first cell of the key's bucket, and its remainder there.
    type Place = [(usize, u32); SUBTABLES];

    fn place(&self, digest: Digest) -> Self::Place {
        let fingerprints = (self.buckets as u64) << self.remainder_bits;
        let fingerprint = below(digest.hi, fingerprints as usize) as u128;
        std::array::from_fn(|table| {
            let permuted =
                (fingerprint * u128::from(self.factors[table]) % u128::from(fingerprints)) as usize;
            let bucket = table * self.buckets + (permuted >> self.remainder_bits);
            (bucket * CELLS, permuted as u32 & ((1 << self.remainder_bits) - 1))
        })
    }

    fn contains_at(&self, place: Self::Place, _: impl FnOnce() -> Digest) -> bool {
        self.find(&place).is_some()
    }

    /// Two keys share a cell only if all of their fingerprints agree.
    fn false_positive_rate(&self) -> f64 {
        let fingerprints = (self.buckets as u64) << self.remainder_bits;
        collision_rate(self.capacity, fingerprints as f64)
    }

    fn stats(&self) -> FilterStats {
        stats(self.items, self.cells.len(), self.cells.bits())
    }

    fn verify(&self) -> Result<(), InvariantError> {
        // A cell that is full counts at least that many, and perhaps keys that are gone.
        let counts = self.cells.iter().map(|cell| cell & FULL).filter(|&count| count < FULL);
        let counted: usize = counts.map(|count| count as usize).sum();
        ensure(counted <= self.items, || format!("{counted} keys are counted, {} stored", self.items))
    }
}

impl Insert for DLeftFilter {
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, FullError> {
        let places = self.place(digest);
        let known = self.find(&places);
        if let Some(cell) = known {
            let (remainder, count) = self.cell(cell);
            self.set(cell, remainder, (count + 1).min(FULL));
        } else {
            // The emptiest bucket, the leftmost of several.
            let emptiest = places.iter().rev().max_by_key(|(start, _)| self.free(*start).count());
            let place = emptiest.and_then(|&(start, remainder)| Some((self.free(start).next()?, remainder)));
            let full = FullError { len: self.items, capacity: self.capacity };
            let (cell, remainder) = place.ok_or(full)?;
            self.set(cell, remainder, 1);
        }
        self.items += 1;
        Ok(known.is_none())
    }

    fn clear(&mut self) {
        self.cells.clear();
        self.items = 0;
    }
}

impl Remove for DLeftFilter {
    fn remove_digest(&mut self, digest: Digest) -> Result<bool, RemovalDisabled> {
        let Some(cell) = self.find(&self.place(digest)) else { return Ok(false) };
        let (remainder, count) = self.cell(cell);
        if count < FULL {
            self.set(cell, remainder, count - 1);
        }
        self.items -= 1;
        Ok(true)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
