//! The back yard: whole hashes of the few keys that the primary table cannot take (section 5.4 of the paper).
//!
//! A key has two buckets of eight places, one cache line each, and goes to the emptier one. With at most two
//! thirds of the places in use, which is more than ever happens at the loads that the builder allows, no bucket
//! fills up; should both be full, the key is refused and the filter says that it is full. So every operation reads two lines, whatever
//! happens.
//!
//! A place holds 64 bits of the digest; the bucket follows from the other 64. Two keys that agree in so much are
//! not told apart, which makes a query for a random key a false positive with a probability below 2^-60.

use crate::{BuildError, Digest};

const PLACES: usize = 8;

/// Slots of the primary table for each place of the back yard.
const SLOTS_PER_PLACE: u64 = 24;

/// See the [module](self).
#[derive(Debug, Clone)]
pub(super) struct BackYard {
    /// 0 is a free place.
    buckets: Vec<[u64; PLACES]>,
    len: usize,
}

/// What is stored of a key. A digest half of 0 would look like a free place.
fn tag(digest: Digest) -> u64 {
    digest.lo.max(1)
}

impl BackYard {
    pub(super) fn new(slots: u64) -> Result<Self, BuildError> {
        let count = (slots.div_ceil(SLOTS_PER_PLACE * PLACES as u64)).max(4) as usize;
        let mut buckets: Vec<[u64; PLACES]> = Vec::new();
        let bytes = count.saturating_mul(PLACES * 8);
        buckets.try_reserve_exact(count).map_err(|_| BuildError::OutOfMemory { bytes })?;
        buckets.resize(count, [0; PLACES]);
        Ok(Self { buckets, len: 0 })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The memory in use, in bits.
    pub(super) fn memory_bits(&self) -> usize {
        self.buckets.len() * PLACES * 64
    }

    #[inline]
    fn homes(&self, digest: Digest) -> [usize; 2] {
        let home = |hash: u64| ((u128::from(hash) * self.buckets.len() as u128) >> 64) as usize;
        [home(digest.hi), home(digest.hi.rotate_left(32).wrapping_mul(0x9e37_79b9_7f4a_7c15))]
    }

    #[inline]
    pub(super) fn contains(&self, digest: Digest) -> bool {
        let [first, second] = self.homes(digest);
        let tag = tag(digest);
        self.buckets[first].contains(&tag) | self.buckets[second].contains(&tag)
    }

    /// Stores a key; `false` if there is no place for it.
    pub(super) fn insert(&mut self, digest: Digest) -> bool {
        let free = |&home: &usize| self.buckets[home].iter().filter(|&&place| place == 0).count();
        let [first, second] = self.homes(digest);
        let emptier = if free(&first) >= free(&second) { first } else { second };
        let Some(place) = self.buckets[emptier].iter_mut().find(|place| **place == 0) else { return false };
        *place = tag(digest);
        self.len += 1;
        true
    }

    /// Takes a key out; `false` if it was not there.
    pub(super) fn remove(&mut self, digest: Digest) -> bool {
        let tag = tag(digest);
        for home in self.homes(digest) {
            if let Some(place) = self.buckets[home].iter_mut().find(|place| **place == tag) {
                *place = 0;
                self.len -= 1;
                return true;
            }
        }
        false
    }

    /// How many places are taken, counted one by one.
    pub(super) fn count(&self) -> usize {
        self.buckets.iter().flatten().filter(|&&place| place != 0).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn two_thirds_of_the_places_can_be_used() {
        let mut random = Random::new(54);
        let mut yard = BackYard::new(1 << 20).unwrap();
        let places = yard.buckets.len() * PLACES;
        let digests: Vec<Digest> =
            (0..places * 2 / 3).map(|_| Digest { hi: random.next(), lo: random.next() }).collect();
        assert!(digests.iter().all(|&digest| yard.insert(digest)));
        assert!(digests.iter().all(|&digest| yard.contains(digest)));
        assert_eq!((yard.len(), yard.count()), (digests.len(), digests.len()));
        assert!(!yard.contains(Digest { hi: random.next(), lo: random.next() }));
        assert!(digests.iter().all(|&digest| yard.remove(digest) && !yard.remove(digest)));
        assert_eq!((yard.len(), yard.count()), (0, 0));
    }

    #[test]
    fn full_buckets_refuse() {
        let mut yard = BackYard::new(1).unwrap();
        let digest = |lo| Digest { hi: 7, lo };
        let stored = (1..=64).take_while(|&lo| yard.insert(digest(lo))).count();
        assert!(stored == 8 || stored == 16, "one or two buckets: {stored}");
        assert!(!yard.insert(digest(99)) && yard.len() == stored);
        assert!(yard.remove(digest(1)) && yard.insert(digest(0)) && yard.contains(digest(0)));
    }
}
