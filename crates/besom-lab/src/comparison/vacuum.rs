//! The vacuum filter (Wang, Zhou, Shi and Qian, VLDB 2019): a cuckoo filter whose two bins of a key mostly lie
//! near each other, and whose number of bins need not be a power of two.

use besom::{
    Digest, Filter, FilterStats, FullError, Insert, InvariantError, KeyHasher, RemovalDisabled, Remove, Xxh3,
};

use super::{Packed, answer_alike, below, ensure, stats};
use crate::random::Random;

const SLOTS: usize = 4;
const KICKS: usize = 500;
/// Larger tables clog a little short of the paper's 0.95.
const MAX_LOAD: f64 = 0.94;
/// Keys are in four groups by two bits of their fingerprint; each group has a range of its own.
const GROUPS: usize = 4;
/// Tables of fewer chunks use the whole table as the range: rounding up to whole chunks would waste space.
const FEWEST_CHUNKS: usize = 32;

/// A plain vacuum filter: the comparison filter of the telescoping paper's Figure 5.
///
/// ```
/// use besom::{Filter, Insert};
/// use besom_lab::comparison::VacuumFilter;
///
/// let mut filter = VacuumFilter::new(1000, 11, 0.95, 7);
/// filter.insert("key")?;
/// assert!(filter.contains("key"));
/// # Ok::<(), besom::FullError>(())
/// ```
#[derive(Debug, Clone)]
pub struct VacuumFilter {
    hash: Xxh3,
    random: Random,
    /// Fingerprints; 0 is an empty slot.
    slots: Packed,
    bins: usize,
    fingerprint_bits: u32,
    /// How far apart the two bins of a key may lie, by group; powers of two that divide `bins`. `None` for small
    /// tables.
    ranges: Option<[usize; GROUPS]>,
    items: usize,
    capacity: usize,
}

impl VacuumFilter {
    /// A filter for that many keys at that load (0.94 at most), with fingerprints of that many bits (clamped
    /// to 4..=32).
    #[must_use]
    pub fn new(keys: usize, fingerprint_bits: u32, load: f64, seed: u64) -> Self {
        let fingerprint_bits = fingerprint_bits.clamp(4, 32);
        let wanted = ((keys.max(1) as f64 / load.clamp(0.1, MAX_LOAD)) / SLOTS as f64).ceil() as usize;
        let largest = |ranges: [usize; GROUPS]| ranges.into_iter().max().unwrap_or(1);
        let ranges = Some(ranges(keys)).filter(|&ranges| largest(ranges) * FEWEST_CHUNKS <= wanted);
        // All ranges divide the largest one.
        let chunk = ranges.map_or(1, largest);
        let bins = wanted.div_ceil(chunk) * chunk;
        let slots = Packed::new(bins * SLOTS, fingerprint_bits);
        let hash = Xxh3::with_seed(seed.into());
        let random = Random::new(seed);
        Self { hash, random, slots, bins, fingerprint_bits, ranges, items: 0, capacity: keys }
    }

    /// The other bin of a fingerprint: applying it twice leads back.
    fn other(&self, bin: usize, fingerprint: u32) -> usize {
        let spread = u64::from(fingerprint).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        match &self.ranges {
            Some(ranges) => bin ^ (spread as usize & (ranges[fingerprint as usize % GROUPS] - 1)),
            None => {
                let distance = spread as usize % self.bins;
                (distance + self.bins - bin) % self.bins
            }
        }
    }

    fn find(&self, bin: usize, fingerprint: u32) -> Option<usize> {
        (bin * SLOTS..(bin + 1) * SLOTS).find(|&slot| self.slots.get(slot) == fingerprint)
    }

    fn put(&mut self, bin: usize, fingerprint: u32) -> bool {
        let free = self.find(bin, 0);
        if let Some(slot) = free {
            self.slots.set(slot, fingerprint);
        }
        free.is_some()
    }

    /// Kicks fingerprints from bin to bin until one finds a free slot; takes everything back if none does.
    fn kick(&mut self, mut fingerprint: u32, mut bin: usize) -> Result<(), FullError> {
        let mut path = Vec::with_capacity(KICKS);
        for _ in 0..KICKS {
            let slot = bin * SLOTS + self.random.below(SLOTS as u64) as usize;
            let kicked = self.slots.get(slot);
            self.slots.set(slot, fingerprint);
            path.push((slot, kicked));
            fingerprint = kicked;
            bin = self.other(bin, kicked);
            if self.put(bin, fingerprint) {
                return Ok(());
            }
        }
        path.into_iter().rev().for_each(|(slot, kicked)| self.slots.set(slot, kicked));
        Err(FullError { len: self.items, capacity: self.capacity })
    }

    /// A slot of the fingerprint in one of its bins.
    fn slot_of(&self, (fingerprint, bin): (u32, usize)) -> Option<usize> {
        self.find(bin, fingerprint).or_else(|| self.find(self.other(bin, fingerprint), fingerprint))
    }
}

impl Filter for VacuumFilter {
    answer_alike!();

    /// The fingerprint, never 0, and one of the two bins.
    type Place = (u32, usize);

    fn place(&self, digest: Digest) -> Self::Place {
        let fingerprint = (digest.lo >> (64 - self.fingerprint_bits)) as u32;
        (fingerprint.max(1), below(digest.hi, self.bins))
    }

    fn contains_at(&self, place: Self::Place, _: impl FnOnce() -> Digest) -> bool {
        self.slot_of(place).is_some()
    }

    /// One fingerprint stands for two hashes, since none is 0.
    fn false_positive_rate(&self) -> f64 {
        let fingerprints = 2_f64.powi(self.fingerprint_bits as i32);
        let same = (fingerprints + 2.0) / (fingerprints * fingerprints);
        1.0 - (1.0 - same * self.capacity as f64 / self.slots.len() as f64).powi(2 * SLOTS as i32)
    }

    fn stats(&self) -> FilterStats {
        stats(self.items, self.slots.len(), self.slots.bits())
    }

    fn verify(&self) -> Result<(), InvariantError> {
        let used = self.slots.iter().filter(|&fingerprint| fingerprint != 0).count();
        ensure(used == self.items, || format!("{used} slots are in use by {} keys", self.items))
    }
}

impl Insert for VacuumFilter {
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, FullError> {
        let (fingerprint, bin) = self.place(digest);
        let new = self.slot_of((fingerprint, bin)).is_none();
        let other = self.other(bin, fingerprint);
        if !self.put(bin, fingerprint) && !self.put(other, fingerprint) {
            let start = if self.random.below(2) == 0 { bin } else { other };
            self.kick(fingerprint, start)?;
        }
        self.items += 1;
        Ok(new)
    }

    fn clear(&mut self) {
        self.slots.clear();
        self.items = 0;
    }
}

impl Remove for VacuumFilter {
    fn remove_digest(&mut self, digest: Digest) -> Result<bool, RemovalDisabled> {
        let Some(slot) = self.slot_of(self.place(digest)) else { return Ok(false) };
        self.slots.set(slot, 0);
        self.items -= 1;
        Ok(true)
    }
}

/// The smallest ranges that leave no chunk overfull, from the paper's estimate of the fullest chunk. The last
/// group's is doubled, so that keys of full chunks find a way out.
fn ranges(keys: usize) -> [usize; GROUPS] {
    let mut ranges = std::array::from_fn(|group| range(keys, 1.0 - group as f64 / GROUPS as f64));
    ranges[GROUPS - 1] *= 2;
    ranges
}

/// The smallest power of two for which the fullest chunk is expected to have room when a `share` of the keys is
/// confined to chunks of that size.
fn range(keys: usize, share: f64) -> usize {
    const LOAD: f64 = 0.95;
    const FULL: f64 = 0.97;
    let keys = keys as f64;
    let mut range = 1_usize;
    loop {
        let bins = (keys / (SLOTS as f64 * LOAD * range as f64)).ceil() * range as f64;
        let chunks = bins / range as f64;
        let confined = SLOTS as f64 * share * bins * LOAD;
        let mean = confined / chunks;
        let fullest = mean + 1.5 * (2.0 * mean * chunks.ln().max(0.0)).sqrt();
        if fullest < FULL * (SLOTS * range) as f64 || chunks <= 1.0 {
            return range;
        }
        range *= 2;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::workload::Uniform;

    #[test]
    fn fills_to_its_capacity_and_finds_everything() {
        for keys in [1, 10, 1000, 100_000, 1 << 18, 3_984_588] {
            let mut filter = VacuumFilter::new(keys, 12, 0.95, 1);
            let stored: Vec<u64> = Uniform::new(1).take(keys).collect();
            stored.iter().for_each(|key| assert!(filter.insert(key).is_ok()));
            assert!(stored.iter().all(|key| filter.contains(key)));
            let stats = filter.stats();
            assert_eq!(stats.items, keys);
            assert!(keys < 1000 || stats.load > 0.91, "{keys}: {}", stats.load);
        }
    }

    #[test]
    fn false_positives_are_as_the_fingerprints_say() {
        let mut filter = VacuumFilter::new(300_000, 12, 0.95, 2);
        Uniform::new(1).take(300_000).for_each(|key| assert!(filter.insert(&key).is_ok()));
        let found = Uniform::new(2).take(1_000_000).filter(|key| filter.contains(key)).count();
        let expected = 1e6 * 2.0 * SLOTS as f64 * 0.95 / 4096.0;
        assert!((found as f64 / expected - 1.0).abs() < 0.15, "{found}, not {expected}");
    }

    #[test]
    fn behaves_like_a_multiset_that_may_say_yes_too_often() {
        let mut random = Random::new(3);
        let mut filter = VacuumFilter::new(40, 6, 0.95, 3);
        let mut model: HashMap<u64, usize> = HashMap::new();
        let (mut full, mut len) = (0, 0);
        for _ in 0..20_000 {
            let key = random.below(60);
            let count = model.entry(key).or_default();
            if random.below(2) == 0 {
                match filter.insert(&key) {
                    Ok(_) => (*count, len) = (*count + 1, len + 1),
                    Err(_) => full += 1,
                }
            } else if *count > 0 {
                assert_eq!(filter.remove(&key), Ok(true));
                (*count, len) = (*count - 1, len - 1);
            }
            assert_eq!(filter.stats().items, len);
            for (key, _) in model.iter().filter(|(_, count)| **count > 0) {
                assert!(filter.contains(key));
            }
        }
        assert!(full > 0, "the table never was full");
    }

    #[test]
    fn the_other_bin_leads_back() {
        for keys in [1000, 3_000_000] {
            let filter = VacuumFilter::new(keys, 10, 0.95, 4);
            assert_eq!(filter.ranges.is_some(), keys > 1000);
            for bin in (0..filter.bins).step_by(997) {
                for fingerprint in 1..1024 {
                    let other = filter.other(bin, fingerprint);
                    assert!(other < filter.bins);
                    assert_eq!(filter.other(other, fingerprint), bin);
                }
            }
        }
    }
}
