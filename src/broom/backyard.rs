//! The back yard: whole hashes of the few keys that the primary table cannot take (section 5.4 of the paper).
//!
//! A quotient has two buckets of eight places, one cache line each, and a key of it goes to the emptier one. With at
//! most two thirds of the places in use, which is more than ever happens at the loads that the builder allows, no
//! bucket fills up; should both be full, the key is refused and the filter says that it is full. So every operation
//! reads two lines, whatever happens.
//!
//! A place holds what says which key it is, and which quotient. The buckets follow from the quotient, so eight bits of
//! it are left to be stored, and one for which of the two buckets this is:
//!
//! ```text
//! | tag: 55 bits of the digest | quotient / buckets: 8 bits | second bucket: 1 bit |
//! ```
//!
//! So the back yard knows how many keys of a quotient it has, and what the remote says can be checked. Two keys of one
//! quotient whose tags agree are not told apart: a query for a random key is a false positive here with a probability
//! below 2^-50.

use crate::{BuildError, Digest};

const PLACES: usize = 8;

/// Slots of the primary table for each place of the back yard.
const SLOTS_PER_PLACE: u64 = 24;

/// Bits of a place that belong to the quotient and the bucket. Buckets times 192 are no fewer than the slots, so the
/// upper part of a quotient fits into eight of them.
const HEAD_BITS: u32 = 9;

/// The number of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct YardPlace(usize);

/// See the [module](self).
#[derive(Debug, Clone)]
pub(super) struct BackYard {
    /// 0 is a free place.
    buckets: Vec<[u64; PLACES]>,
    len: usize,
}

/// One of the two buckets of a quotient, and what its keys have in their places there, below the tag.
#[derive(Debug, Clone, Copy)]
struct Home {
    bucket: usize,
    head: u64,
}

/// What is stored of a digest. A tag of 0 could look like a free place.
fn tag(digest: Digest) -> u64 {
    let mixed = digest.lo ^ digest.hi.rotate_left(32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> HEAD_BITS).max(1)
}

impl BackYard {
    /// How many buckets go with a primary table of so many slots.
    fn buckets_for(slots: u64) -> usize {
        slots.div_ceil(SLOTS_PER_PLACE * PLACES as u64).max(4) as usize
    }

    /// The memory of the back yard of a primary table of so many slots, in bits.
    pub(super) fn size_in_bits(slots: u64) -> usize {
        Self::buckets_for(slots).saturating_mul(PLACES * 64)
    }

    pub(super) fn new(slots: u64) -> Result<Self, BuildError> {
        let count = Self::buckets_for(slots);
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

    /// How far the second bucket of a quotient is from the first: at least 1, and never all the way round.
    fn step(&self, upper: u64) -> u64 {
        let spread = upper.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        1 + ((u128::from(spread) * (self.buckets.len() as u128 - 1)) >> 64) as u64
    }

    fn homes(&self, quotient: u64) -> [Home; 2] {
        let buckets = self.buckets.len() as u64;
        let (upper, first) = (quotient / buckets, quotient % buckets);
        let second = (first + self.step(upper)) % buckets;
        let head = upper << 1;
        [Home { bucket: first as usize, head }, Home { bucket: second as usize, head: head | 1 }]
    }

    /// The quotient of the key in a place of this bucket.
    fn quotient(&self, bucket: usize, place: u64) -> u64 {
        let (buckets, upper) = (self.buckets.len() as u64, place >> 1 & 0xff);
        let back = if place & 1 == 1 { self.step(upper) } else { 0 };
        upper * buckets + (bucket as u64 + buckets - back) % buckets
    }

    /// Where the key of this quotient and digest is.
    pub(super) fn find(&self, quotient: u64, digest: Digest) -> Option<YardPlace> {
        let tag = tag(digest) << HEAD_BITS;
        self.homes(quotient).into_iter().find_map(|home| {
            let place = self.buckets[home.bucket].iter().position(|&place| place == tag | home.head)?;
            Some(YardPlace(home.bucket * PLACES + place))
        })
    }

    /// How many places hold this quotient and digest: more than one only if keys cannot be told apart.
    pub(super) fn count_matches(&self, quotient: u64, digest: Digest) -> usize {
        let tag = tag(digest) << HEAD_BITS;
        let matches =
            |home: Home| self.buckets[home.bucket].iter().filter(|&&place| place == tag | home.head).count();
        self.homes(quotient).into_iter().map(matches).sum()
    }

    /// How many keys of a quotient are here.
    pub(super) fn count(&self, quotient: u64) -> usize {
        let low = (1 << HEAD_BITS) - 1;
        let keys = |home: Home| {
            let bucket = self.buckets[home.bucket].iter();
            bucket.filter(|&&place| place != 0 && place & low == home.head).count()
        };
        self.homes(quotient).into_iter().map(keys).sum()
    }

    /// A free place for a key of this quotient.
    pub(super) fn free_place(&self, quotient: u64) -> Option<YardPlace> {
        let free = |home: Home| self.buckets[home.bucket].iter().filter(|&&place| place == 0).count();
        let [first, second] = self.homes(quotient);
        let bucket = if free(first) >= free(second) { first.bucket } else { second.bucket };
        let place = self.buckets[bucket].iter().position(|&place| place == 0)?;
        Some(YardPlace(bucket * PLACES + place))
    }

    /// Puts a key into a place that was found [free](Self::free_place) for its quotient, or that it was
    /// [taken](Self::take) from.
    pub(super) fn put(&mut self, place: YardPlace, quotient: u64, digest: Digest) {
        let bucket = place.0 / PLACES;
        let [first, second] = self.homes(quotient);
        let head = if bucket == first.bucket { first.head } else { second.head };
        debug_assert!(self.buckets[bucket][place.0 % PLACES] == 0, "the place was free");
        self.buckets[bucket][place.0 % PLACES] = tag(digest) << HEAD_BITS | head;
        self.len += 1;
    }

    /// Takes the key out of a place that has one.
    pub(super) fn take(&mut self, place: YardPlace) {
        debug_assert!(self.buckets[place.0 / PLACES][place.0 % PLACES] != 0, "the place had a key");
        self.buckets[place.0 / PLACES][place.0 % PLACES] = 0;
        self.len -= 1;
    }

    /// Quotient and tag of every key, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.buckets.iter().enumerate().flat_map(move |(bucket, places)| {
            let taken = places.iter().filter(|&&place| place != 0);
            taken.map(move |&place| (self.quotient(bucket, place), place >> HEAD_BITS))
        })
    }
}

/// The same keys, wherever they are.
impl PartialEq for BackYard {
    fn eq(&self, other: &Self) -> bool {
        let sorted = |yard: &Self| {
            let mut keys: Vec<_> = yard.iter().collect();
            keys.sort_unstable();
            keys
        };
        self.len == other.len && self.buckets.len() == other.buckets.len() && sorted(self) == sorted(other)
    }
}

#[cfg(test)]
mod tests {
    //! Catches: a key that is not found in its bucket, a quotient that comes back as another one, a key that is put
    //! back into the place of the next one.
    use super::*;
    use crate::testing::Random;

    fn digest(random: &mut Random) -> Digest {
        Digest { hi: random.next(), lo: random.next() }
    }

    fn insert(yard: &mut BackYard, quotient: u64, digest: Digest) -> bool {
        let place = yard.free_place(quotient);
        place.inspect(|&place| yard.put(place, quotient, digest)).is_some()
    }

    #[test]
    fn two_thirds_of_the_places_can_be_used() {
        for slots in [700, 5_000, 1 << 20] {
            let mut random = Random::new(54);
            let mut yard = BackYard::new(slots).unwrap();
            // Small yards have more luck and more misfortune: half of their places must do.
            let places = yard.buckets.len() * PLACES * 2 / if slots < 1 << 20 { 4 } else { 3 };
            let keys: Vec<(u64, Digest)> =
                (0..places).map(|_| (random.below(slots), digest(&mut random))).collect();
            assert!(keys.iter().all(|&(quotient, digest)| insert(&mut yard, quotient, digest)));
            let mut quotients: Vec<u64> = yard.iter().map(|(quotient, _)| quotient).collect();
            let mut expected: Vec<u64> = keys.iter().map(|key| key.0).collect();
            quotients.sort_unstable();
            expected.sort_unstable();
            assert_eq!(quotients, expected);
            for quotient in (0..slots).step_by(1 + slots as usize / 2000) {
                let count = expected.partition_point(|&q| q <= quotient)
                    - expected.partition_point(|&q| q < quotient);
                assert_eq!(yard.count(quotient), count);
                assert!(yard.find(quotient, digest(&mut random)).is_none());
            }
            for &(quotient, digest) in &keys {
                assert_eq!(yard.count_matches(quotient, digest), 1);
                let place = yard.find(quotient, digest).unwrap();
                yard.take(place);
                assert!(yard.find(quotient, digest).is_none());
            }
            assert_eq!((yard.len(), yard.iter().count()), (0, 0));
        }
    }

    #[test]
    fn full_buckets_refuse() {
        let mut yard = BackYard::new(1).unwrap();
        let digest = |lo: u64| Digest { hi: 0, lo: lo << HEAD_BITS };
        let stored = (1..=64).take_while(|&lo| insert(&mut yard, 0, digest(lo))).count();
        assert_eq!((stored, yard.count(0)), (16, 16));
        assert!(!insert(&mut yard, 0, digest(99)) && yard.len() == stored);
        yard.take(yard.find(0, digest(1)).unwrap());
        assert!(insert(&mut yard, 0, digest(0)) && yard.find(0, digest(0)).is_some());
    }
}
