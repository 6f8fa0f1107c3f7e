//! The Bloom filter that keeps all bits of a key in one cache line.

use super::half;
use super::line::{self, LANES, Probes};
use super::plain::count_ones;
use super::size::{BlockedSize, blocked_rate};
use crate::bits::{AlignedWords, Isa};
use crate::error::ensure;
use crate::{
    BuildError, Digest, Filter, FilterStats, FullError, Insert, InvariantError, Key, KeyHasher, Xxh3,
};

/// A Bloom filter that keeps all bits of a key in one cache line. Does not adapt, and removes nothing.
///
/// Every operation touches exactly one line, or half of one, and a query tests it with a few vector instructions where
/// the processor has AVX2 or AVX-512. The price is space: some lines get more keys than others and err more often,
/// so at 1/256 the filter takes 12.9 bits per key instead of the classic filter's 11.6. The builder computes
/// what the rate needs; the rate is met, not approximated.
///
/// A key that the filter accepts already takes no room, so inserting a key twice counts it once.
///
/// ```
/// use besom::bloom::BlockedBloomFilter;
/// use besom::{Filter, Insert};
///
/// let mut filter = BlockedBloomFilter::with_capacity(1000)?;
/// filter.insert(&42_u64)?;
/// assert!(filter.contains(&42_u64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct BlockedBloomFilter<H: KeyHasher = Xxh3> {
    pub(super) hasher: H,
    /// Whole lines, at least one.
    pub(super) words: AlignedWords,
    pub(super) probes: Probes,
    pub(super) isa: Isa,
    pub(super) len: usize,
    pub(super) capacity: usize,
}

crate::filter::debug_by_figures!([H: KeyHasher] BlockedBloomFilter<H>);

impl<H: KeyHasher> BlockedBloomFilter<H> {
    /// An empty filter of this size.
    pub(super) fn sized(capacity: usize, size: BlockedSize, hasher: H) -> Result<Self, BuildError> {
        let (words, probes) = (size.words(), size.probes);
        let out_of_memory = BuildError::OutOfMemory { bytes: words.saturating_mul(8) };
        let words = AlignedWords::zeroed(words).ok_or(out_of_memory)?;
        Ok(Self { hasher, words, probes, isa: Isa::active(), len: 0, capacity })
    }

    /// Sets the bits of a key whether there is room for it or not. Returns whether one of them was not set before.
    #[inline(always)]
    fn set(&mut self, digest: Digest) -> bool {
        let fresh = if self.probes == Probes::Half {
            let place = half::Place::new(&self.words, digest.hi);
            half::insert(self.isa, &mut self.words, place)
        } else {
            line::insert(self.isa, &mut self.words, self.probes, digest)
        };
        // A key that is accepted already changes nothing, and takes no room.
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

    /// A key has a bit in every lane of its half line.
    fn verify_halves(&self) -> Result<(), InvariantError> {
        for (number, words) in self.words.chunks_exact(half::WORDS).enumerate() {
            let lanes = words.iter().flat_map(|&word| [word as u32, (word >> 32) as u32]);
            let empty = lanes.filter(|&lane| lane == 0).count();
            let consistent = empty == 0 || empty == 2 * half::WORDS;
            ensure!(consistent, "half line {number} has bits in some lanes only: {words:x?}");
        }
        Ok(())
    }

    /// How wide the lanes are that a key has its bits in.
    pub(super) fn lane_bits(&self) -> u64 {
        if self.probes == Probes::Half { 32 } else { 64 }
    }

    /// How many bits each key sets: 4, 8 or 16, as the rate requires.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.probes.count()
    }
}

/// Equal in parameters, hash function and bits. How many keys were counted depends on their order, and does not matter.
impl<H: KeyHasher> PartialEq for BlockedBloomFilter<H> {
    fn eq(&self, other: &Self) -> bool {
        let parameters = |filter: &Self| (filter.probes, filter.capacity);
        parameters(self) == parameters(other) && self.hasher == other.hasher && self.words == other.words
    }
}

impl<H: KeyHasher> Filter for BlockedBloomFilter<H> {
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
        let first = match self.probes {
            Probes::Half => half::Place::new(&self.words, digest.hi).first,
            _ => line::first_word(&self.words, digest),
        };
        crate::bits::prefetch(self.words.as_ptr().wrapping_add(first));
    }

    #[inline(always)]
    fn contains_at(&self, digest: Digest, _: impl FnOnce() -> Digest) -> bool {
        if self.probes == Probes::Half {
            return half::contains(self.isa, &self.words, half::Place::new(&self.words, digest.hi));
        }
        line::contains(self.isa, &self.words, self.probes, digest)
    }

    // Compiled into every caller: half lines need the upper half of the digest alone, and only then the other is left
    // out.
    #[inline(always)]
    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_at(self.hasher.digest_key(key), || self.hasher.digest_key(key))
    }

    fn len(&self) -> usize {
        self.len
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    /// Works out the mean over lines with few and with many keys: some hundred operations.
    fn false_positive_rate(&self) -> f64 {
        blocked_rate(self.probes, self.capacity as f64 / (self.words.len() / LANES) as f64)
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
        let words = self.words.len();
        ensure!(words > 0 && words.is_multiple_of(LANES), "{words} words are no whole lines");
        let (ones, most) = (count_ones(&self.words), self.len.saturating_mul(self.probes.count() as usize));
        ensure!(ones <= most, "{ones} bits set by {} keys of {} probes", self.len, self.probes.count());
        if self.probes == Probes::Half {
            return self.verify_halves();
        }
        for (line, lanes) in self.words.chunks_exact(LANES).enumerate() {
            let empty =
                |parity: usize| lanes.iter().skip(parity).step_by(2).filter(|&&lane| lane == 0).count();
            let consistent = |parity| empty(parity) == 0 || empty(parity) == LANES / 2;
            ensure!(consistent(0) && consistent(1), "line {line} has bits in some lanes only: {lanes:x?}");
            let alike = self.probes == Probes::Four || empty(0) == empty(1);
            ensure!(alike, "line {line} has bits in half of its lanes only: {lanes:x?}");
        }
        Ok(())
    }
}

impl<H: KeyHasher> Insert for BlockedBloomFilter<H> {
    /// Full at its capacity: with more keys, its false-positive rate would be higher than promised. A key that the
    /// filter accepts already, because it was inserted before or by chance, counts for nothing.
    #[inline(always)]
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
impl<H: KeyHasher, K: Key> Extend<K> for BlockedBloomFilter<H> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        crate::filter::extend(self, keys, |filter, digest| {
            filter.set(digest);
        });
    }
}

/// A filter with exactly the capacity of the keys, a rate of 1/256 and a random seed. Like all collections of
/// the standard library it aborts the program if the memory is not to be had; builders return an error.
impl<K: Key> FromIterator<K> for BlockedBloomFilter {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let keys: Vec<K> = keys.into_iter().collect();
        let mut filter = Self::with_capacity(keys.len().max(1)).unwrap_or_else(|_| super::out_of_memory());
        filter.extend(keys);
        filter
    }
}
