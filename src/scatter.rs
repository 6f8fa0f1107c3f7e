//! Many keys by the part of a table that they belong to.
//!
//! A table beyond the cache is written best from its beginning to its end. So keys are **scattered** to buckets first:
//! a bucket's part of the table fits into a core's cache. Then a bucket is **sorted** by place, by counting.

use std::marker::PhantomData;
use std::ops::Range;

use crate::bits::AlignedWords;
use crate::{BuildError, parallel};

/// What is sorted: the hash bits that a key is placed by, and perhaps more. In a few words, which can lie on huge
/// pages.
pub(crate) trait Hashed: Copy + Send + Sync {
    const WORDS: usize;

    fn hash(self) -> u64;

    fn load(words: &[u64]) -> Self;

    fn store(self, words: &mut [u64]);
}

impl Hashed for u64 {
    const WORDS: usize = 1;

    #[inline(always)]
    fn hash(self) -> u64 {
        self
    }

    #[inline(always)]
    fn load(words: &[u64]) -> Self {
        words[0]
    }

    #[inline(always)]
    fn store(self, words: &mut [u64]) {
        words[0] = self;
    }
}

/// With 8 bytes: those of the key, or its number.
impl Hashed for (u64, [u8; 8]) {
    const WORDS: usize = 2;

    #[inline(always)]
    fn hash(self) -> u64 {
        self.0
    }

    #[inline(always)]
    fn load(words: &[u64]) -> Self {
        (words[0], words[1].to_le_bytes())
    }

    #[inline(always)]
    fn store(self, words: &mut [u64]) {
        words[..2].copy_from_slice(&[self.0, u64::from_le_bytes(self.1)]);
    }
}

/// How a table is cut into buckets, and a bucket into places. Both ascend with the hash.
pub(crate) trait Partition: Copy + Sync {
    /// How many buckets there are: as many streams are written at once.
    fn buckets(self) -> usize;

    /// The bucket of a hash.
    fn bucket(self, hash: u64) -> usize;

    /// How many places a bucket has.
    fn places(self, bucket: usize) -> usize;

    /// The place of a hash in its bucket.
    fn place(self, hash: u64, bucket: usize) -> usize;
}

/// Keys that are scattered at a time. What is kept of them meanwhile and where they go stay in the second cache.
const PIECE: usize = 1 << 16;

/// Items by bucket, in their order.
pub(crate) struct Buckets<T> {
    words: AlignedWords,
    /// Where each bucket ends, in items.
    ends: Vec<usize>,
    items: PhantomData<T>,
}

impl<T: Hashed> Buckets<T> {
    /// Scatters the items of some numbers.
    pub(crate) fn scatter(
        partition: impl Partition,
        numbers: Range<usize>,
        item: impl Fn(usize) -> T,
    ) -> Result<Self, BuildError> {
        let words = numbers.len().saturating_mul(T::WORDS);
        let bytes = words.saturating_mul(8);
        let mut words = AlignedWords::zeroed(words).ok_or(BuildError::OutOfMemory { bytes })?;
        let all = &mut words[..];
        if partition.buckets() == 1 {
            let ends = vec![numbers.len()];
            all.chunks_exact_mut(T::WORDS).zip(numbers).for_each(|(words, number)| item(number).store(words));
            return Ok(Self { words, ends, items: PhantomData });
        }
        let items: Vec<T> = numbers.map(item).collect();
        let mut ends = vec![0; partition.buckets()];
        for &item in &items {
            ends[partition.bucket(item.hash())] += 1;
        }
        let mut sum = 0;
        for end in &mut ends {
            // Where the bucket begins, for now.
            (*end, sum) = (sum, sum + *end);
        }
        for item in items {
            let place = &mut ends[partition.bucket(item.hash())];
            item.store(&mut all[*place * T::WORDS..(*place + 1) * T::WORDS]);
            *place += 1;
        }
        Ok(Self { words, ends, items: PhantomData })
    }

    /// All items, in the order of their buckets.
    pub(crate) fn into_words(self) -> AlignedWords {
        self.words
    }

    /// The words of a bucket's items.
    pub(crate) fn words(&self, bucket: usize) -> &[u64] {
        let start = bucket.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.words[start * T::WORDS..self.ends[bucket] * T::WORDS]
    }

    fn get(&self, bucket: usize) -> impl Iterator<Item = T> {
        self.words(bucket).chunks_exact(T::WORDS).map(T::load)
    }
}

/// The items of all numbers below `count`, scattered in pieces, on all cores.
pub(crate) fn scattered<T: Hashed>(
    partition: impl Partition,
    count: usize,
    item: impl Fn(usize) -> T + Sync,
) -> Result<Vec<Buckets<T>>, BuildError> {
    let piece = count.div_ceil(parallel::threads()).clamp(1, PIECE);
    let pieces = (0..count).step_by(piece).map(|start| start..(start + piece).min(count)).collect();
    let scattered = parallel::map(pieces, |numbers| Buckets::scatter(partition, numbers, &item));
    scattered.into_iter().collect()
}

/// The items of a bucket by place; those of one place in their order.
pub(crate) fn sorted<T: Hashed>(partition: impl Partition, bucket: usize, pieces: &[Buckets<T>]) -> Vec<T> {
    let place = |item: T| partition.place(item.hash(), bucket);
    let mut starts = vec![0_u32; partition.places(bucket)];
    let items = || pieces.iter().flat_map(|piece| piece.get(bucket));
    items().for_each(|item| starts[place(item)] += 1);
    let mut sum = 0;
    for start in &mut starts {
        (*start, sum) = (sum, sum + *start);
    }
    let mut sorted = Vec::new();
    if let Some(any) = items().next() {
        sorted.resize(sum as usize, any);
    }
    items().for_each(|item| {
        let start = &mut starts[place(item)];
        sorted[*start as usize] = item;
        *start += 1;
    });
    sorted
}

#[cfg(test)]
mod tests {
    //! Catches: items that are lost, doubled or out of order between pieces and buckets.
    use super::*;
    use crate::testing::Random;

    /// Units of a table, some in each bucket.
    #[derive(Clone, Copy)]
    struct Units {
        units: u64,
        per_bucket: u64,
    }

    impl Units {
        fn unit(self, hash: u64) -> u64 {
            ((u128::from(hash) * u128::from(self.units)) >> 64) as u64
        }
    }

    impl Partition for Units {
        fn buckets(self) -> usize {
            self.units.div_ceil(self.per_bucket) as usize
        }

        fn bucket(self, hash: u64) -> usize {
            (self.unit(hash) / self.per_bucket) as usize
        }

        fn places(self, _: usize) -> usize {
            self.per_bucket as usize
        }

        fn place(self, hash: u64, bucket: usize) -> usize {
            (self.unit(hash) - bucket as u64 * self.per_bucket) as usize
        }
    }

    #[test]
    fn items_come_out_by_place_and_those_of_a_place_in_their_order() {
        let mut random = Random::new(1);
        for count in [0_usize, 1, 2, 100, 5_000] {
            let (units, per_bucket) = (1 + random.below(300), 1 + random.below(40));
            let cut = Units { units, per_bucket };
            let hashes: Vec<u64> = (0..count).map(|_| random.next()).collect();
            let item = |number: usize| (hashes[number], (number as u64).to_le_bytes());
            let pieces = scattered(cut, count, item).unwrap();
            let all: Vec<_> = (0..cut.buckets()).flat_map(|bucket| sorted(cut, bucket, &pieces)).collect();
            let mut expected: Vec<(u64, usize)> = hashes.iter().copied().zip(0..).collect();
            expected.sort_by_key(|&(hash, number)| (cut.unit(hash), number));
            let expected: Vec<_> = expected.iter().map(|&(_, number)| item(number)).collect();
            assert_eq!(all, expected, "{count} items in {units} units, {per_bucket} a bucket");
        }
    }
}
