//! The classic Bloom filter.

use super::size::BloomSize;
use crate::bits::AlignedWords;
use crate::error::ensure;
use crate::{
    BuildError, Digest, Filter, FilterStats, FullError, Insert, InvariantError, Key, KeyHasher, Xxh3,
};

/// The classic Bloom filter: k bits per key, anywhere in one array. Does not adapt, and removes nothing.
///
/// Takes 1.45·log₂(1/ε) bits per key, 11.6 at the default rate of 1/256, for any capacity. A query reads up to
/// k = log₂(1/ε) cache lines, 2.7 on average if the key is absent. The
/// [`BlockedBloomFilter`](super::BlockedBloomFilter) reads one line and takes a few more bits.
///
/// A key that the filter accepts already takes no room, so inserting a key twice counts it once.
///
/// ```
/// use besom::bloom::BloomFilter;
/// use besom::{Filter, Insert};
///
/// let mut filter = BloomFilter::builder().capacity(1000).false_positive_rate(0.01).build()?;
/// filter.insert("besom")?;
/// assert!(filter.contains("besom"));
/// assert_eq!(filter.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct BloomFilter<H: KeyHasher = Xxh3> {
    pub(super) hasher: H,
    /// Never empty; bit i of the filter is bit i mod 64 of word i div 64.
    pub(super) words: AlignedWords,
    pub(super) probes: u32,
    pub(super) len: usize,
    pub(super) capacity: usize,
}

crate::filter::debug_by_figures!([H: KeyHasher] BloomFilter<H>);

impl<H: KeyHasher> BloomFilter<H> {
    /// An empty filter of this size.
    pub(crate) fn sized(capacity: usize, size: BloomSize, hasher: H) -> Result<Self, BuildError> {
        let words = size.words();
        let out_of_memory = BuildError::OutOfMemory { bytes: words.saturating_mul(8) };
        let words = AlignedWords::zeroed(words).ok_or(out_of_memory)?;
        Ok(Self { hasher, words, probes: size.probes, len: 0, capacity })
    }

    /// Sets the bits of a key whether there is room for it or not. Returns whether one of them was not set before.
    #[inline]
    pub(crate) fn set(&mut self, digest: Digest) -> bool {
        let mut probes = self.probes_of(digest);
        let mut unset = 0;
        // Once for all probes: words that are shared are copied here.
        let words: &mut [u64] = &mut self.words;
        for _ in 0..self.probes {
            let (word, bit) = probes.next();
            debug_assert!(word < words.len());
            // SAFETY: `Probes::next` returns words below `words.len()`, which it was made with.
            let word = unsafe { words.get_unchecked_mut(word) };
            unset |= !*word & 1 << bit;
            *word |= 1 << bit;
        }
        // A key that is accepted already changes nothing, and takes no room.
        let fresh = unset != 0;
        self.len += usize::from(fresh);
        fresh
    }

    /// Inserts a key that counts even if it is accepted already: for levels of a cascade, which count keys themselves.
    pub(crate) fn insert_counted(&mut self, digest: Digest) -> Result<(), FullError> {
        if self.len >= self.capacity {
            return Err(FullError { len: self.len, capacity: self.capacity });
        }
        let fresh = self.set(digest);
        self.len += usize::from(!fresh);
        Ok(())
    }

    /// A full filter takes what it accepts already: no bit changes.
    #[cold]
    fn insert_full(&self, digest: Digest) -> Result<bool, FullError> {
        let full = FullError { len: self.len, capacity: self.capacity };
        if self.contains_digest(digest) { Ok(false) } else { Err(full) }
    }

    /// The bits of the key with this digest.
    #[inline(always)]
    fn probes_of(&self, digest: Digest) -> Probes {
        Probes { position: digest.hi, step: digest.lo, bits: self.words.len() as u64 * 64 }
    }

    /// The next bit of a probe sequence in the lowest bit; the others mean nothing.
    #[inline(always)]
    fn bit(&self, probes: &mut Probes) -> u64 {
        let (word, bit) = probes.next();
        debug_assert!(word < self.words.len());
        // SAFETY: `Probes::next` returns words below `words.len()`, which it was made with.
        unsafe { *self.words.get_unchecked(word) >> bit }
    }

    /// How many bits each key sets: k.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.probes
    }
}

/// How many bits are set.
pub(super) fn count_ones(words: &[u64]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

/// The bits of one key.
///
/// Positions are fixed-point fractions of the array: x, x + y, x + 2y + c, x + 3y + 3c, … for a digest (x, y).
/// Plain double hashing (c = 0) puts the probes of a few keys, those whose y is near 0, 1/2, 1/3, …, on top of
/// each other; in small filters that shows. With an irrational c no such y exists.
#[derive(Debug, Clone, Copy)]
struct Probes {
    position: u64,
    step: u64,
    bits: u64,
}

impl Probes {
    /// 2⁶⁴ divided by the golden ratio.
    const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

    /// The word and the bit in it. The word is below `bits` / 64.
    #[inline(always)]
    fn next(&mut self) -> (usize, u32) {
        let bit = ((u128::from(self.position) * u128::from(self.bits)) >> 64) as u64;
        self.position = self.position.wrapping_add(self.step);
        self.step = self.step.wrapping_add(Self::STRIDE);
        ((bit / 64) as usize, bit as u32 % 64)
    }
}

/// How many bits a query reads before it looks at them.
const GROUP: u32 = 2;

/// Equal in parameters, hash function and bits. How many keys were counted depends on their order, and does not matter.
impl<H: KeyHasher> PartialEq for BloomFilter<H> {
    fn eq(&self, other: &Self) -> bool {
        let parameters = |filter: &Self| (filter.probes, filter.capacity);
        parameters(self) == parameters(other) && self.hasher == other.hasher && self.words == other.words
    }
}

impl<H: KeyHasher> Filter for BloomFilter<H> {
    type Hasher = H;
    type Place = Digest;

    #[inline]
    fn hasher(&self) -> &H {
        &self.hasher
    }

    #[inline]
    fn place(&self, digest: Digest) -> Digest {
        digest
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        let mut probes = self.probes_of(digest);
        for _ in 0..self.probes.min(2 * GROUP) {
            crate::bits::prefetch(self.words.as_ptr().wrapping_add(probes.next().0));
        }
    }

    /// Two probes at a time, without a branch between them: half of the bits are set, so a branch after every
    /// probe would be mispredicted about once per absent key. With four at a time none is, but beyond the cache
    /// the lines that are read in vain cost more than that.
    #[inline]
    fn contains_at(&self, digest: Digest, _: impl FnOnce() -> Digest) -> bool {
        let mut probes = self.probes_of(digest);
        for _ in 0..self.probes / GROUP {
            let bits = [(); GROUP as usize].map(|()| self.bit(&mut probes));
            if bits.into_iter().fold(1, |all, bit| all & bit) == 0 {
                return false;
            }
        }
        (0..self.probes % GROUP).fold(1, |all, _| all & self.bit(&mut probes)) == 1
    }

    fn len(&self) -> usize {
        self.len
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    /// Follows from the classic formula, which is too low by a few percent of itself for 30 keys, and by less the more
    /// keys there are.
    ///
    /// Of a filter that was filled until it refused a key, the rate is a little higher: by 0.3% of itself at 1/256, by
    /// 7% at 1/10 (calculated). It then holds more keys than its capacity, since those that it accepted by chance were not counted.
    fn false_positive_rate(&self) -> f64 {
        BloomSize::rate(self.words.len() * 64, self.probes, self.capacity)
    }

    /// Counts the bits that are set, and so takes time in proportion to the filter's memory.
    fn stats(&self) -> FilterStats {
        let bits = self.words.len() * 64;
        FilterStats {
            items: self.len,
            slots: bits,
            load: count_ones(&self.words) as f64 / bits as f64,
            bits,
            ..FilterStats::default()
        }
    }

    fn verify(&self) -> Result<(), InvariantError> {
        ensure!(!self.words.is_empty(), "a Bloom filter without bits");
        ensure!(self.probes >= 1, "a Bloom filter without probes");
        let (ones, most) = (count_ones(&self.words), self.len.saturating_mul(self.probes as usize));
        ensure!(ones <= most, "{ones} bits set by {} keys of {} probes", self.len, self.probes);
        let least = usize::from(self.len > 0);
        ensure!(ones >= least, "no bit set by {} keys", self.len);
        Ok(())
    }
}

impl<H: KeyHasher> Insert for BloomFilter<H> {
    /// Full at its capacity: with more keys, its false-positive rate would be higher than promised. A key that the
    /// filter accepts already, because it was inserted before or by chance, counts for nothing.
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, FullError> {
        if self.len >= self.capacity {
            return self.insert_full(digest);
        }
        Ok(self.set(digest))
    }

    fn clear(&mut self) {
        self.words.fill(0);
        self.len = 0;
    }
}

/// Inserts all keys, even beyond the capacity: none is lost, but the false-positive rate then rises above the
/// one that was asked for. [`insert`](Insert::insert) refuses instead.
impl<H: KeyHasher, K: Key> Extend<K> for BloomFilter<H> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for key in keys {
            self.set(self.hasher.digest_key(&key));
        }
    }
}

/// A filter with exactly the capacity of the keys, a rate of 1/256 and a random seed. Like all collections of
/// the standard library it aborts the program if the memory is not to be had; builders return an error.
impl<K: Key> FromIterator<K> for BloomFilter {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let keys: Vec<K> = keys.into_iter().collect();
        let mut filter = Self::with_capacity(keys.len().max(1)).unwrap_or_else(|_| super::out_of_memory());
        filter.extend(keys);
        filter
    }
}
