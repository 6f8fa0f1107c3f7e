//! The variable-increment counting Bloom filter (Rottenstreich, Kanizo and Keslassy, 2012).

use besom::{
    Digest, Filter, FilterStats, FullError, Insert, InvariantError, KeyHasher, RemovalDisabled, Remove, Xxh3,
};

use super::{Packed, answer_alike, ensure, probes, stats};

/// Increments are L, L + 1, …, 2L − 1: any two of them sum to more than any one.
const L: u32 = 4;

/// The bits of a counter. One that is full stays so forever.
const WIDTH: u32 = 6;
const FULL: u32 = (1 << WIDTH) - 1;

/// A counting Bloom filter whose keys increment their counters by numbers of their own, so that a counter also
/// tells which keys it cannot have been incremented by.
///
/// ```
/// use besom::{Filter, Insert, Remove};
/// use besom_lab::comparison::VariableIncrementFilter;
///
/// let mut filter = VariableIncrementFilter::new(1000, 25.0, 7);
/// filter.insert("key")?;
/// assert!(filter.remove("key")?);
/// assert!(!filter.contains("key"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct VariableIncrementFilter {
    hash: Xxh3,
    counters: Packed,
    probes: u32,
    items: usize,
    capacity: usize,
}

impl VariableIncrementFilter {
    /// A filter for that many keys with that many bits for each.
    #[must_use]
    pub fn new(keys: usize, bits_per_key: f64, seed: u64) -> Self {
        let counters = (keys as f64 * bits_per_key / f64::from(WIDTH)).round().max(1.0);
        let load = keys as f64 / counters;
        let expected = |&probes: &u32| passing(load * f64::from(probes)).powi(probes as i32);
        let probes = (1..=32).min_by(|a, b| expected(a).total_cmp(&expected(b))).unwrap_or(1);
        let hash = Xxh3::with_seed(seed.into());
        let counters = Packed::new(counters as usize, WIDTH);
        Self { hash, counters, probes, items: 0, capacity: keys }
    }

    /// The counters of a key, each with its increment.
    fn increments(&self, digest: Digest) -> impl Iterator<Item = (usize, u32)> {
        let places = probes(digest, self.probes, self.counters.len());
        let mut choices = self.hash.rehash(digest, 1).to_u128();
        places.map(move |place| {
            let choice = (choices % u128::from(L)) as u32;
            choices /= u128::from(L);
            (place, L + choice)
        })
    }

    /// Changes every counter of a key that is not full forever.
    fn change(&mut self, digest: Digest, change: impl Fn(u32, u32) -> u32) {
        let increments: Vec<(usize, u32)> = self.increments(digest).collect();
        for (place, increment) in increments {
            let count = self.counters.get(place);
            if count != FULL {
                self.counters.set(place, change(count, increment).min(FULL));
            }
        }
    }
}

impl Filter for VariableIncrementFilter {
    answer_alike!();

    type Place = Digest;

    fn place(&self, digest: Digest) -> Digest {
        digest
    }

    fn contains_at(&self, digest: Digest, _: impl FnOnce() -> Digest) -> bool {
        self.increments(digest).all(|(place, increment)| {
            // What is left without this key is nothing, or at least the smallest increment.
            let count = self.counters.get(place);
            count == FULL || count.checked_sub(increment).is_some_and(|rest| rest == 0 || rest >= L)
        })
    }

    fn false_positive_rate(&self) -> f64 {
        let increments = self.capacity as f64 * f64::from(self.probes);
        passing(increments / self.counters.len() as f64).powi(self.probes as i32)
    }

    fn stats(&self) -> FilterStats {
        stats(self.items, self.counters.len(), self.counters.bits())
    }

    fn verify(&self) -> Result<(), InvariantError> {
        let impossible = self.counters.iter().position(|count| (1..L).contains(&count));
        ensure(impossible.is_none(), || format!("no keys sum up to what counter {impossible:?} shows"))
    }
}

impl Insert for VariableIncrementFilter {
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, FullError> {
        let new = !self.contains_digest(digest);
        self.change(digest, |count, increment| count + increment);
        self.items += 1;
        Ok(new)
    }

    fn clear(&mut self) {
        self.counters.clear();
        self.items = 0;
    }
}

impl Remove for VariableIncrementFilter {
    fn remove_digest(&mut self, digest: Digest) -> Result<bool, RemovalDisabled> {
        let found = self.contains_digest(digest);
        if found {
            self.change(digest, u32::saturating_sub);
            self.items -= 1;
        }
        Ok(found)
    }
}

/// The probability that a counter with this many increments on average does not exclude a key.
fn passing(load: f64) -> f64 {
    let l = f64::from(L);
    // Excluding: no increment; one that is not the key's own; two that leave a rest between 0 and L.
    let excluded = 1.0 + load * (l - 1.0) / l + load * load / 2.0 * (l * l - 1.0) / (6.0 * l * l);
    1.0 - (-load).exp() * excluded
}
