//! The back yard: whole hashes of the few keys that the primary table cannot take (section 5.4 of the paper).
//!
//! A quotient has two buckets of eight places, one cache line each, and a key of it goes to the emptier one. There are
//! so many that under churn three places in five are in use, and then hardly ever both buckets of a key are full.
//! Should they be, and more than half of all places are in use, the back yard becomes half as large again; else the key
//! goes to a heap beside the buckets. That is for hash functions under which many keys have one hash: no number of
//! buckets would help them.
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

use crate::bits::AlignedWords;
use crate::{BuildError, Digest};

use super::secondary::equilibrium_share;

const PLACES: usize = 8;

/// The share of the places that is in use under churn.
const FILL: f64 = 0.6;

/// Bits of a place that belong to the quotient and the bucket.
const HEAD_BITS: u32 = 9;

/// Buckets times this are no fewer than the slots, so the upper part of a quotient fits into eight bits.
const SLOTS_PER_BUCKET: u64 = 256;

/// The number of a place: in a bucket, or behind all of them in the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct YardPlace(usize);

/// See the [module](self).
#[derive(Debug, Clone)]
pub(super) struct BackYard {
    /// Buckets of [`PLACES`] words, each on a cache line of its own. 0 is a free place.
    words: AlignedWords,
    /// Quotients and tags of keys whose buckets are full; a tag of 0 is a free place.
    heap: Vec<(u64, u64)>,
    len: usize,
}

/// How large a back yard is to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct YardSize {
    /// The slots of the primary table.
    pub(super) slots: u64,
    /// The share of them in use when the filter is full.
    pub(super) load: f64,
    /// The bits of a signature.
    pub(super) signature_bits: u32,
}

impl YardSize {
    fn buckets(self) -> usize {
        let Self { slots, load, signature_bits } = self;
        // Keys without a place in their section, and those that meet their signature in their run.
        let share =
            equilibrium_share(signature_bits, load) + load * load * 0.5_f64.powi(signature_bits as i32);
        let buckets = (slots as f64 * share / (FILL * PLACES as f64)).ceil() as u64;
        buckets.max(BackYard::fewest_buckets(slots)) as usize
    }

    /// The memory of the back yard, in bits.
    pub(super) fn in_bits(self) -> usize {
        self.buckets().saturating_mul(PLACES * 64)
    }
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
    pub(super) fn new(size: YardSize) -> Result<Self, BuildError> {
        Self::with_buckets(size.buckets())
    }

    fn with_buckets(count: usize) -> Result<Self, BuildError> {
        let words = count.saturating_mul(PLACES);
        let bytes = words.saturating_mul(8);
        let words = AlignedWords::zeroed(words).ok_or(BuildError::OutOfMemory { bytes })?;
        Ok(Self { words, heap: Vec::new(), len: 0 })
    }

    /// The back yard that these words are: whole buckets, four of them at least, and a heap, with so many keys.
    pub(super) fn from_parts(words: AlignedWords, heap: Vec<(u64, u64)>, len: usize) -> Self {
        Self { words, heap, len }
    }

    /// All places.
    pub(super) fn as_words(&self) -> &[u64] {
        &self.words
    }

    /// Quotients and tags of the keys beside the buckets; a tag of 0 is a free place.
    pub(super) fn heap(&self) -> &[(u64, u64)] {
        &self.heap
    }

    /// The fewest buckets for so many quotients.
    pub(super) fn fewest_buckets(slots: u64) -> u64 {
        slots.div_ceil(SLOTS_PER_BUCKET).max(4)
    }

    fn buckets(&self) -> &[[u64; PLACES]] {
        self.words.as_chunks().0
    }

    fn bucket_mut(&mut self, bucket: usize) -> &mut [u64; PLACES] {
        &mut self.words.as_chunks_mut().0[bucket]
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The memory in use, in bits.
    pub(super) fn memory_bits(&self) -> usize {
        self.words.len() * 64 + self.heap.capacity() * size_of::<(u64, u64)>() * 8
    }

    /// How many places the buckets have.
    fn places(&self) -> usize {
        self.buckets().len() * PLACES
    }

    /// How far the second bucket of a quotient is from the first: at least 1, and never all the way round.
    fn step(&self, upper: u64) -> u64 {
        let spread = upper.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        1 + ((u128::from(spread) * (self.buckets().len() as u128 - 1)) >> 64) as u64
    }

    fn homes(&self, quotient: u64) -> [Home; 2] {
        let buckets = self.buckets().len() as u64;
        let (upper, first) = (quotient / buckets, quotient % buckets);
        let second = (first + self.step(upper)) % buckets;
        let head = upper << 1;
        [Home { bucket: first as usize, head }, Home { bucket: second as usize, head: head | 1 }]
    }

    /// The quotient of the key in a place of this bucket.
    fn quotient(&self, bucket: usize, place: u64) -> u64 {
        let (buckets, upper) = (self.buckets().len() as u64, place >> 1 & 0xff);
        let back = if place & 1 == 1 { self.step(upper) } else { 0 };
        upper * buckets + (bucket as u64 + buckets - back) % buckets
    }

    /// Where the key of this quotient and digest is.
    pub(super) fn find(&self, quotient: u64, digest: Digest) -> Option<YardPlace> {
        self.matches(quotient, digest).next()
    }

    /// How many places hold this quotient and digest: more than one only if keys cannot be told apart.
    pub(super) fn count_matches(&self, quotient: u64, digest: Digest) -> usize {
        self.matches(quotient, digest).count()
    }

    /// The places that hold this quotient and digest.
    fn matches(&self, quotient: u64, digest: Digest) -> impl Iterator<Item = YardPlace> {
        let tag = tag(digest);
        let in_bucket = move |home: Home| {
            let places = self.buckets()[home.bucket].iter().enumerate();
            let found = places.filter(move |&(_, &place)| place == tag << HEAD_BITS | home.head);
            found.map(move |(place, _)| home.bucket * PLACES + place)
        };
        let heap = self.heap.iter().enumerate().filter(move |&(_, &key)| key == (quotient, tag));
        let in_heap = heap.map(|(place, _)| self.places() + place);
        self.homes(quotient).into_iter().flat_map(in_bucket).chain(in_heap).map(YardPlace)
    }

    /// How many keys of a quotient are here.
    pub(super) fn count(&self, quotient: u64) -> usize {
        let low = (1 << HEAD_BITS) - 1;
        let keys = |home: Home| {
            let bucket = self.buckets()[home.bucket].iter();
            bucket.filter(|&&place| place != 0 && place & low == home.head).count()
        };
        let in_heap = self.heap.iter().filter(|&&(home, tag)| tag != 0 && home == quotient).count();
        self.homes(quotient).into_iter().map(keys).sum::<usize>() + in_heap
    }

    /// The places of a quotient's keys, with a digest of which as much is stored as of the key's.
    pub(super) fn places_of(&self, quotient: u64) -> Vec<(YardPlace, Digest)> {
        let low = (1 << HEAD_BITS) - 1;
        let in_bucket = move |home: Home| {
            let places = self.buckets()[home.bucket].iter().enumerate();
            let taken = places.filter(move |&(_, &place)| place != 0 && place & low == home.head);
            taken.map(move |(place, &word)| (home.bucket * PLACES + place, word >> HEAD_BITS))
        };
        let heap = self.heap.iter().enumerate().filter(|&(_, &(home, tag))| tag != 0 && home == quotient);
        let in_heap = heap.map(|(place, &(_, tag))| (self.places() + place, tag));
        let all = self.homes(quotient).into_iter().flat_map(in_bucket).chain(in_heap);
        all.map(|(place, tag)| (YardPlace(place), Digest { hi: 0, lo: tag << HEAD_BITS })).collect()
    }

    /// A free place for a key of this quotient in one of its buckets.
    fn free_place(&self, quotient: u64) -> Option<YardPlace> {
        let free = |home: Home| self.buckets()[home.bucket].iter().filter(|&&place| place == 0).count();
        let [first, second] = self.homes(quotient);
        let bucket = if free(first) >= free(second) { first.bucket } else { second.bucket };
        let place = self.buckets()[bucket].iter().position(|&place| place == 0)?;
        Some(YardPlace(bucket * PLACES + place))
    }

    /// A free place for a key of this quotient, and the memory for it. Where the back yard had to grow for it, all
    /// places have other numbers than before: the back yard as it was is returned too.
    pub(super) fn make_room(&mut self, quotient: u64) -> Result<(YardPlace, Option<Self>), BuildError> {
        let mut outgrown = None;
        loop {
            if let Some(place) = self.free_place(quotient) {
                return Ok((place, outgrown));
            }
            if self.len * 2 <= self.places() {
                break;
            }
            let grown = self.grown()?;
            outgrown = Some(outgrown.unwrap_or(std::mem::replace(self, grown)));
        }
        let free = self.heap.iter().position(|key| key.1 == 0);
        let bytes = self.heap.len() * size_of::<(u64, u64)>();
        self.heap.try_reserve(1).map_err(|_| BuildError::OutOfMemory { bytes })?;
        Ok((YardPlace(self.places() + free.unwrap_or(self.heap.len())), outgrown))
    }

    /// The same keys in half as many places again.
    fn grown(&self) -> Result<Self, BuildError> {
        let mut grown = Self::with_buckets(self.buckets().len() + self.buckets().len().div_ceil(2))?;
        for (quotient, tag) in self.iter() {
            let place = match grown.free_place(quotient) {
                Some(place) => place,
                None => YardPlace(grown.places() + grown.heap.len()),
            };
            grown.put_tag(place, quotient, tag);
        }
        Ok(grown)
    }

    /// Puts a key into a place that [room was made](Self::make_room) in for its quotient, or that it was
    /// [taken](Self::take) from.
    pub(super) fn put(&mut self, place: YardPlace, quotient: u64, digest: Digest) {
        self.put_tag(place, quotient, tag(digest));
    }

    fn put_tag(&mut self, place: YardPlace, quotient: u64, tag: u64) {
        self.len += 1;
        if let Some(in_heap) = place.0.checked_sub(self.places()) {
            self.heap.resize(self.heap.len().max(in_heap + 1), (0, 0));
            debug_assert!(self.heap[in_heap].1 == 0, "the place was free");
            self.heap[in_heap] = (quotient, tag);
            return;
        }
        let bucket = place.0 / PLACES;
        let [first, second] = self.homes(quotient);
        let head = if bucket == first.bucket { first.head } else { second.head };
        debug_assert!(self.buckets()[bucket][place.0 % PLACES] == 0, "the place was free");
        self.bucket_mut(bucket)[place.0 % PLACES] = tag << HEAD_BITS | head;
    }

    /// Takes the key out of a place that has one.
    pub(super) fn take(&mut self, place: YardPlace) {
        self.len -= 1;
        if let Some(in_heap) = place.0.checked_sub(self.places()) {
            debug_assert!(self.heap[in_heap].1 != 0, "the place had a key");
            self.heap[in_heap] = (0, 0);
            let used = self.heap.iter().rposition(|key| key.1 != 0);
            self.heap.truncate(used.map_or(0, |last| last + 1));
            return;
        }
        debug_assert!(self.buckets()[place.0 / PLACES][place.0 % PLACES] != 0, "the place had a key");
        self.bucket_mut(place.0 / PLACES)[place.0 % PLACES] = 0;
    }

    /// Quotient and tag of every key, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let in_buckets = self.buckets().iter().enumerate().flat_map(move |(bucket, places)| {
            let taken = places.iter().filter(|&&place| place != 0);
            taken.map(move |&place| (self.quotient(bucket, place), place >> HEAD_BITS))
        });
        in_buckets.chain(self.heap.iter().copied().filter(|key| key.1 != 0))
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
        self.len == other.len && sorted(self) == sorted(other)
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

    fn yard(slots: u64) -> BackYard {
        BackYard::new(YardSize { slots, load: 0.9, signature_bits: 8 }).unwrap()
    }

    fn insert(yard: &mut BackYard, quotient: u64, digest: Digest) {
        let (place, _) = yard.make_room(quotient).unwrap();
        yard.put(place, quotient, digest);
    }

    /// Exactly these keys are in the back yard.
    fn check(yard: &BackYard, slots: u64, keys: &[(u64, Digest)], random: &mut Random) {
        let mut quotients: Vec<u64> = yard.iter().map(|(quotient, _)| quotient).collect();
        let mut expected: Vec<u64> = keys.iter().map(|key| key.0).collect();
        quotients.sort_unstable();
        expected.sort_unstable();
        assert_eq!(quotients, expected);
        for quotient in (0..slots).step_by(1 + slots as usize / 2000) {
            let count =
                expected.partition_point(|&q| q <= quotient) - expected.partition_point(|&q| q < quotient);
            assert_eq!(yard.count(quotient), count);
            assert!(yard.find(quotient, digest(random)).is_none());
        }
        assert!(keys.iter().all(|&(quotient, digest)| yard.count_matches(quotient, digest) == 1));
    }

    #[test]
    fn a_back_yard_takes_what_it_is_made_for_without_growing_and_more_by_growing() {
        for slots in [700, 5_000, 1 << 20] {
            let mut random = Random::new(54);
            let mut yard = yard(slots);
            let places = yard.places();
            let mut keys = Vec::new();
            while keys.len() < 4 * places {
                // Small yards have more luck and more misfortune: half of their places must do.
                if keys.len() * 2 == places {
                    assert!(yard.heap.is_empty() && yard.places() == places);
                    check(&yard, slots, &keys, &mut random);
                }
                keys.push((random.below(slots), digest(&mut random)));
                insert(&mut yard, keys[keys.len() - 1].0, keys[keys.len() - 1].1);
            }
            assert!(yard.places() > 4 * places && yard.places() < 16 * places && yard.heap.is_empty());
            check(&yard, slots, &keys, &mut random);
            for &(quotient, digest) in &keys {
                let place = yard.find(quotient, digest).unwrap();
                yard.take(place);
                assert!(yard.find(quotient, digest).is_none());
            }
            assert_eq!((yard.len(), yard.iter().count()), (0, 0));
        }
    }

    #[test]
    fn keys_of_one_quotient_that_no_growth_can_part_go_to_the_heap() {
        let mut yard = yard(1);
        let digest = |lo: u64| Digest { hi: 0, lo: lo << HEAD_BITS };
        (1..=64).for_each(|lo| insert(&mut yard, 0, digest(lo)));
        assert_eq!((yard.len(), yard.count(0), yard.heap.len()), (64, 64, 48));
        let before = yard.clone();
        let places: Vec<YardPlace> = (1..=64).map(|lo| yard.find(0, digest(lo)).unwrap()).collect();
        for (lo, &place) in (1..=64).zip(&places).step_by(3) {
            yard.take(place);
            assert!(yard.find(0, digest(lo)).is_none());
        }
        for (lo, &place) in (1..=64).zip(&places).step_by(3) {
            yard.put(place, 0, digest(lo));
        }
        assert!(yard == before);
        yard.take(yard.find(0, digest(1)).unwrap());
        insert(&mut yard, 0, digest(0));
        assert!(yard.find(0, digest(0)).is_some() && yard.len() == 64);
    }

    #[test]
    fn the_back_yard_as_it_was_comes_back_with_its_places() {
        let (mut yard, mut random) = (yard(700), Random::new(57));
        let mut keys: Vec<(u64, Digest)> = Vec::new();
        let mut grown = 0;
        while grown < 3 {
            let (quotient, digest) = (random.below(700), digest(&mut random));
            let before = yard.clone();
            let (place, outgrown) = yard.make_room(quotient).unwrap();
            yard.put(place, quotient, digest);
            if let Some(outgrown) = outgrown {
                let places =
                    |yard: &BackYard| keys.iter().map(|key| yard.find(key.0, key.1)).collect::<Vec<_>>();
                assert_eq!(places(&outgrown), places(&before));
                grown += 1;
            }
            keys.push((quotient, digest));
        }
        check(&yard, 700, &keys, &mut random);
    }
}
