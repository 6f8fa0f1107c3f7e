//! Stacked filters (Deeds, Hentschel and Idreos, VLDB 2021): layers that hold keys and known negatives by turns.

mod design;
mod sample;

use besom::bloom::BloomFilter;
use besom::{BuildError, Digest, Filter, FilterStats, FullError, Insert, InvariantError, KeyHasher, Xxh3};

pub use design::Design;
pub use sample::Sample;

use super::{answer_alike, ensure, stats};
use crate::random::mix;

/// Bloom filters in layers: the first holds the keys; the second the frequent negatives that passed the first; the
/// third the keys that passed the second; and so on. A query goes down until a layer rejects it: one of keys says
/// "absent", one of negatives "present".
///
/// It knows the frequent negatives from a [`Sample`] of queries, and cannot learn: the layers below the first are built
/// when as many keys are stored as there is room for. Until then it is a Bloom filter.
///
/// ```
/// use besom::{Filter, Insert};
/// use besom_lab::comparison::{Sample, StackedFilter};
///
/// let negatives: Vec<String> = (0..100).map(|number| format!("no-{number}")).collect();
/// let queries = || negatives.iter().chain(&negatives).map(|key| key.as_bytes());
/// let mut filter = StackedFilter::new(1000, 12_000.0, &Sample::of(queries().chain(queries())), 7)?;
/// for key in 0..1000_u64 {
///     filter.insert(&key)?;
/// }
/// assert!((0..1000_u64).all(|key| filter.contains(&key)));
/// assert!(!negatives.iter().any(|key| filter.contains(key.as_str())));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct StackedFilter {
    hash: Xxh3,
    design: Design,
    /// Of keys at even places, of negatives at odd ones. Never empty.
    layers: Vec<BloomFilter>,
    /// Keys and negatives for the layers below the first, until these are built.
    pending: Option<[Vec<Digest>; 2]>,
    items: usize,
    capacity: usize,
}

impl StackedFilter {
    /// A filter for that many keys within this many bits, which knows the negatives of a sample as far as that is of
    /// use.
    ///
    /// # Errors
    ///
    /// What the layers' builder refuses.
    pub fn new(keys: usize, bits: f64, sample: &Sample, seed: u64) -> Result<Self, BuildError> {
        let design = Design::fit(keys, bits, sample.shares());
        let hash = Xxh3::with_seed(seed.into());
        let negatives = sample.ranked(design.known).map(|key| hash.digest(key)).collect();
        let first = layer(keys, design.rates[0])?;
        let pending = Some([Vec::with_capacity(keys), negatives]);
        Ok(Self { hash, design, layers: vec![first], pending, items: 0, capacity: keys })
    }

    /// What the filter was built to.
    #[must_use]
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// Builds the layers below the first. Those that would be empty are left out: nothing of their side comes so far.
    fn stack(&mut self) {
        let Some(mut sides) = self.pending.take() else { return };
        for place in 1..self.design.rates.len() {
            let above = &self.layers[place - 1];
            let side = &mut sides[place % 2];
            side.retain(|&digest| above.contains_digest(turned(digest, place - 1)));
            let Ok(mut next) = layer(side.len(), self.design.rates[place]) else { return };
            side.iter().for_each(|&digest| {
                // There is room for each of them.
                let _ = next.insert_digest(turned(digest, place));
            });
            self.layers.push(next);
        }
    }
}

fn layer(keys: usize, rate: f64) -> Result<BloomFilter, BuildError> {
    BloomFilter::builder().capacity(keys).false_positive_rate(rate).seed(0_u64).build()
}

/// The digest as a layer sees it: layers must not agree on what they mistake for their own.
#[inline]
fn turned(digest: Digest, place: usize) -> Digest {
    let turn = |half: u64| mix(half ^ (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    Digest { hi: turn(digest.hi), lo: turn(digest.lo) }
}

impl Filter for StackedFilter {
    type Place = Digest;

    answer_alike!();

    fn place(&self, digest: Digest) -> Digest {
        digest
    }

    fn contains_at(&self, digest: Digest, _: impl FnOnce() -> Digest) -> bool {
        for (place, layer) in self.layers.iter().enumerate() {
            if !layer.contains_digest(turned(digest, place)) {
                return place % 2 == 1;
            }
        }
        // What passed the last layer belongs to its side.
        self.layers.len() % 2 == 1
    }

    fn verify(&self) -> Result<(), InvariantError> {
        ensure(!self.layers.is_empty() && self.items <= self.capacity, || "a stack without layers".into())?;
        self.layers.iter().try_for_each(Filter::verify)
    }

    /// Of keys that are not among the known negatives.
    fn false_positive_rate(&self) -> f64 {
        self.design.false_positives(0.0)
    }

    fn stats(&self) -> FilterStats {
        let bits = self.layers.iter().map(|layer| layer.stats().bits).sum();
        stats(self.items, self.capacity, bits)
    }
}

impl Insert for StackedFilter {
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, FullError> {
        let new = self.layers[0].insert_digest(turned(digest, 0))?;
        self.items += 1;
        if let Some([keys, _]) = &mut self.pending {
            keys.push(digest);
        }
        if self.items == self.capacity {
            self.stack();
        }
        Ok(new)
    }

    fn clear(&mut self) {
        self.layers.truncate(1);
        self.layers[0].clear();
        self.items = 0;
        // What was known of negatives is gone with the layers; an empty stack is a Bloom filter.
        self.pending = None;
    }
}

#[cfg(test)]
mod tests {
    //! Catches: stored keys lost between the layers, known negatives that get through, space beyond what was given.
    use super::*;
    use crate::workload::Zipf;

    fn queries(count: usize, skip: usize) -> Vec<[u8; 8]> {
        Zipf::new(20_000, 1.0, 5).unwrap().skip(skip).take(count).map(u64::to_le_bytes).collect()
    }

    #[test]
    fn keys_stay_and_known_negatives_go() {
        let sample = queries(100_000, 0);
        let sample = Sample::of(sample.iter().map(<[u8; 8]>::as_slice));
        for (seed, bits) in (1..4).flat_map(|seed| [3.0, 6.0, 10.0, 12.0].map(|bits| (seed, bits))) {
            let mut filter = StackedFilter::new(5000, bits * 5000.0, &sample, seed).unwrap();
            let keys: Vec<String> = (0..5000).map(|number| format!("key-{number}")).collect();
            for key in &keys {
                filter.insert(key.as_str()).unwrap();
                assert!(filter.contains(key.as_str()));
            }
            assert!(keys.iter().all(|key| filter.contains(key.as_str())));
            assert!(filter.layers.len() >= 3, "{:?}", filter.design);
            let taken = filter.stats().bits as f64 / 5000.0;
            assert!(taken <= 1.03 * bits, "{taken} of {bits}");
            let later = queries(100_000, 100_000);
            let wrong = later.iter().filter(|key| filter.contains(&key[..])).count() as f64 / 100_000.0;
            let plain = Design::fit(5000, bits * 5000.0, &[]).false_positives(0.0);
            assert!(wrong < plain / 2.0, "{bits} bits: {wrong}, a Bloom filter {plain}");
            filter.verify().unwrap();
            // Keys that a layer accepts by chance take no room in it.
            assert!((0..5000).any(|number| filter.insert(format!("more {number}").as_str()).is_err()));
        }
    }

    #[test]
    fn without_a_sample_it_is_a_bloom_filter() {
        let mut filter = StackedFilter::new(100, 1000.0, &Sample::default(), 1).unwrap();
        for key in 0..100_u64 {
            filter.insert(&key).unwrap();
        }
        assert_eq!(filter.layers.len(), 1);
        assert!((0..100_u64).all(|key| filter.contains(&key)));
        filter.clear();
        assert!(filter.is_empty() && !filter.contains(&1_u64));
        filter.insert(&1_u64).unwrap();
        assert!(filter.contains(&1_u64));
    }
}
