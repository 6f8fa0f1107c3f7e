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

/// Items by bucket, piece by piece, in their order.
pub(crate) struct Scattered<T> {
    words: AlignedWords,
    /// The items of a piece: of all but the last one.
    piece: usize,
    /// Where each bucket ends in each piece, in items.
    ends: Vec<usize>,
    buckets: usize,
    items: PhantomData<T>,
}

impl<T: Hashed> Scattered<T> {
    /// The items of all numbers below `count`, on all cores if they are many.
    pub(crate) fn new(
        partition: impl Partition,
        count: usize,
        item: impl Fn(usize) -> T + Sync,
    ) -> Result<Self, BuildError> {
        let threads = parallel::threads_for(count);
        Self::in_pieces(partition, count, count.div_ceil(threads).clamp(1, PIECE), item)
    }

    fn in_pieces(
        partition: impl Partition,
        count: usize,
        piece: usize,
        item: impl Fn(usize) -> T + Sync,
    ) -> Result<Self, BuildError> {
        let bytes = count.saturating_mul(T::WORDS * size_of::<u64>());
        let words = AlignedWords::zeroed(count.saturating_mul(T::WORDS));
        let mut words = words.ok_or(BuildError::OutOfMemory { bytes })?;
        let buckets = partition.buckets();
        let mut ends = vec![0; count.div_ceil(piece) * buckets];
        // Each thread keeps the memory that it keeps items in meanwhile.
        let per_span = count.div_ceil(piece).div_ceil(parallel::threads_for(count)).max(1);
        let spans = words.chunks_mut(per_span * piece * T::WORDS).zip(ends.chunks_mut(per_span * buckets));
        let spans = spans.enumerate().collect();
        parallel::map(spans, |(span, (words, ends)): (usize, (&mut [u64], &mut [usize]))| {
            let (mut number, mut items) = (span * per_span * piece, Vec::new());
            for (words, ends) in words.chunks_mut(piece * T::WORDS).zip(ends.chunks_mut(buckets)) {
                let numbers = number..number + words.len() / T::WORDS;
                number = numbers.end;
                scatter(partition, numbers, &item, words, ends, &mut items);
            }
        });
        Ok(Self { words, piece, ends, buckets, items: PhantomData })
    }

    /// The words of a bucket's items, piece by piece.
    #[inline]
    pub(crate) fn words(&self, bucket: usize) -> impl Iterator<Item = &[u64]> {
        let pieces = self.words.chunks(self.piece * T::WORDS).zip(self.ends.chunks(self.buckets));
        pieces.map(move |(words, ends)| {
            let start = if bucket == 0 { 0 } else { ends[bucket - 1] };
            &words[start * T::WORDS..ends[bucket] * T::WORDS]
        })
    }

    /// The items of a bucket by place; those of one place in their order.
    pub(crate) fn sorted(&self, partition: impl Partition, bucket: usize) -> Vec<T> {
        let mut starts = vec![0_u32; partition.places(bucket)];
        for words in self.words(bucket) {
            for item in words.chunks_exact(T::WORDS) {
                starts[partition.place(T::load(item).hash(), bucket)] += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            (*start, sum) = (sum, sum + *start);
        }
        let Some(any) = self.words(bucket).find_map(|words| words.chunks_exact(T::WORDS).next()) else {
            return Vec::new();
        };
        let mut sorted = vec![T::load(any); sum as usize];
        for words in self.words(bucket) {
            for item in words.chunks_exact(T::WORDS) {
                let item = T::load(item);
                let start = &mut starts[partition.place(item.hash(), bucket)];
                sorted[*start as usize] = item;
                *start += 1;
            }
        }
        sorted
    }
}

/// The items of all numbers below `count` in the order of their buckets, as words.
pub(crate) fn by_bucket<T: Hashed>(
    partition: impl Partition,
    count: usize,
    item: impl Fn(usize) -> T + Sync,
) -> Result<AlignedWords, BuildError> {
    Ok(Scattered::in_pieces(partition, count, count.max(1), item)?.words)
}

/// Scatters the items of some numbers to these words, in the order of their buckets, and says where each bucket ends.
/// `ends` are 0 before.
#[inline]
fn scatter<T: Hashed>(
    partition: impl Partition,
    numbers: Range<usize>,
    item: impl Fn(usize) -> T,
    words: &mut [u64],
    ends: &mut [usize],
    items: &mut Vec<T>,
) {
    if let [end] = ends {
        *end = numbers.len();
        words.chunks_exact_mut(T::WORDS).zip(numbers).for_each(|(words, number)| item(number).store(words));
        return;
    }
    items.clear();
    items.reserve(numbers.len());
    for number in numbers {
        let item = item(number);
        ends[partition.bucket(item.hash())] += 1;
        items.push(item);
    }
    let mut sum = 0;
    for end in &mut *ends {
        // Where the bucket begins, for now.
        (*end, sum) = (sum, sum + *end);
    }
    for &item in &*items {
        let place = &mut ends[partition.bucket(item.hash())];
        item.store(&mut words[*place * T::WORDS..(*place + 1) * T::WORDS]);
        *place += 1;
    }
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
            for piece in [1, 7, 64, 10_000] {
                let pieces = Scattered::in_pieces(cut, count, piece, item).unwrap();
                let all: Vec<_> = (0..cut.buckets()).flat_map(|bucket| pieces.sorted(cut, bucket)).collect();
                let mut expected: Vec<(u64, usize)> = hashes.iter().copied().zip(0..).collect();
                expected.sort_by_key(|&(hash, number)| (cut.unit(hash), number));
                let expected: Vec<_> = expected.iter().map(|&(_, number)| item(number)).collect();
                assert_eq!(all, expected, "{count} items in {units} units, {per_bucket} a bucket");
                let words = by_bucket(cut, count, item).unwrap();
                let all: Vec<_> = words.chunks(2).map(<(u64, [u8; 8])>::load).collect();
                let mut expected: Vec<_> = (0..count).map(item).collect();
                expected.sort_by_key(|item| cut.bucket(item.0));
                assert_eq!(all, expected, "{count} items in {units} units, {per_bucket} a bucket");
            }
        }
    }
}
