//! A Bloom filter that remembers its false positives one by one.

use thiserror::Error;

use crate::builder::{Build, Builder, Options, built_by};
use crate::digest_set::DigestSet;
use crate::error::ensure;
use crate::format::{Decoder, Encoder, FormatError, Kind, Persist, number};
use crate::{
    Adaptation, BloomFilter, BuildError, Digest, Filter, FilterStats, FullError, Insert, InvariantError, Key,
    KeyHasher, Xxh3,
};

/// A Bloom filter with an exact list of the false positives that it was told of. Needs no remote.
///
/// Feedback alone is enough: anyone who finds that the dictionary does not hold a key that the filter let through
/// calls [`adapt`](Self::adapt), and the filter never lets it through again. The price is memory: a repair takes
/// about 20 bytes, forever, so a builder sets a bound, and the filter refuses to go beyond it. Every filter that
/// adapts without a remote pays like that; those that have one, such as the [`Cascade`](crate::Cascade), take a
/// constant number of bits per *stored* key however many repairs they make.
///
/// With the default bound the list takes at most about log log u bits per stored key, where u is the number of
/// possible digests, as in Lemma 28 of Bender et al., *Bloom Filters, Adaptivity, and the Dictionary Problem*.
///
/// It is not [`Adaptive`](crate::Adaptive): it cannot check whether a key is stored, and removes none.
///
/// **A filter that believes what it is told.** It never rejects a key that was inserted, with one exception: a stored
/// key that somebody reports as a false positive is lost, until it is inserted again. A stale read of the dictionary is
/// enough. Where that can happen, take a filter with a remote, which knows what is stored.
///
/// ```
/// use besom::whitelist::WhitelistFilter;
/// use besom::{Filter, Insert};
///
/// let mut filter = WhitelistFilter::builder().capacity(1000).false_positive_rate(0.1).seed(7_u64).build()?;
/// (0..1000_u64).try_for_each(|key| filter.insert(&key).map(drop))?;
/// // The dictionary says that it is absent.
/// let stranger = (1000..).find(|key| filter.contains(key)).unwrap_or(1000);
/// assert!(filter.adapt(&stranger)?.is_fixed());
/// assert!(!filter.contains(&stranger));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct WhitelistFilter<H: KeyHasher = Xxh3> {
    bloom: BloomFilter<H>,
    /// Digests that the Bloom filter accepts and that no stored key has.
    whitelist: DigestSet,
    bound: usize,
    adaptations: u64,
}

crate::filter::debug_by_figures!([H: KeyHasher] WhitelistFilter<H>);

/// A [`WhitelistFilter`] could not remember another false positive. It is unchanged, and still accepts the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WhitelistError {
    /// The bound of the builder is reached.
    #[error(
        "the whitelist is full: it holds {len} false positives of {bound}; \
         build the filter with a larger bound or a lower rate, or take one that adapts with a remote"
    )]
    Full {
        /// How many false positives it holds.
        len: usize,
        /// How many it may hold.
        bound: usize,
    },
    /// The memory for a longer list is not available.
    #[error("{bytes} bytes of memory for a longer whitelist could not be allocated")]
    OutOfMemory {
        /// How many bytes were asked for.
        bytes: usize,
    },
}

impl<H: KeyHasher> WhitelistFilter<H> {
    /// Remembers that `key` is absent, so that the filter no longer accepts it.
    ///
    /// **Call this only for keys that are not stored.** The filter cannot tell, believes it, and from then on rejects a
    /// stored key too: the one way to make it answer "absent" for a key that was inserted. (A key that is inserted
    /// later is accepted again.)
    ///
    /// ```
    /// use besom::whitelist::WhitelistFilter;
    /// use besom::{Filter, Insert};
    ///
    /// let mut filter = WhitelistFilter::with_capacity(100)?;
    /// filter.insert("stored")?;
    /// filter.adapt("stored")?; // a mistake
    /// assert!(!filter.contains("stored"));
    /// filter.insert("stored")?;
    /// assert!(filter.contains("stored"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WhitelistError`] if the list is as long as the builder allowed, or its memory is not available.
    pub fn adapt<K: Key + ?Sized>(&mut self, key: &K) -> Result<Adaptation, WhitelistError> {
        self.adapt_digest(self.bloom.hasher().digest_key(key))
    }

    /// [`adapt`](Self::adapt) with a digest that was computed before.
    ///
    /// # Errors
    ///
    /// As [`adapt`](Self::adapt).
    pub fn adapt_digest(&mut self, digest: Digest) -> Result<Adaptation, WhitelistError> {
        if !self.contains_digest(digest) {
            return Ok(Adaptation::NotFalsePositive);
        }
        let (len, bound) = (self.whitelist.len(), self.bound);
        if len >= bound {
            return Err(WhitelistError::Full { len, bound });
        }
        self.whitelist.reserve(1).map_err(|bytes| WhitelistError::OutOfMemory { bytes })?;
        self.whitelist.insert(digest);
        self.adaptations += 1;
        Ok(Adaptation::Fixed { slots: 1 })
    }

    /// Not inlined: few queries come here, and the others need the registers.
    #[inline(never)]
    fn is_listed(&self, digest: Digest) -> bool {
        self.whitelist.contains(digest)
    }

    /// How many false positives the filter remembers.
    #[must_use]
    pub fn whitelist_len(&self) -> usize {
        self.whitelist.len()
    }

    /// How many it may remember.
    #[must_use]
    pub fn whitelist_bound(&self) -> usize {
        self.bound
    }
}

impl<H: KeyHasher> Filter for WhitelistFilter<H> {
    type Hasher = H;
    type Place = Digest;

    #[inline]
    fn hasher(&self) -> &H {
        self.bloom.hasher()
    }

    #[inline]
    fn place(&self, digest: Digest) -> Digest {
        digest
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        self.bloom.prefetch(digest);
    }

    #[inline]
    fn contains_at(&self, digest: Digest, _: impl FnOnce() -> Digest) -> bool {
        self.bloom.contains_digest(digest) && !self.is_listed(digest)
    }

    fn len(&self) -> usize {
        self.bloom.len()
    }

    fn capacity(&self) -> usize {
        self.bloom.capacity()
    }

    fn false_positive_rate(&self) -> f64 {
        self.bloom.false_positive_rate()
    }

    /// Counts the bits that are set, and so takes time in proportion to the filter's memory.
    fn stats(&self) -> FilterStats {
        let (bloom, list) = (self.bloom.stats(), self.whitelist.memory_bits());
        FilterStats {
            bits: bloom.bits + list,
            adaptations: self.adaptations,
            adapted_slots: self.whitelist.len(),
            adaptivity_bits: list,
            ..bloom
        }
    }

    fn verify(&self) -> Result<(), InvariantError> {
        self.bloom.verify()?;
        let (len, bound) = (self.whitelist.len(), self.bound);
        ensure!(len <= bound, "{len} false positives are listed, where {bound} may be");
        let listed = self.whitelist.iter().all(|digest| self.bloom.contains_digest(digest));
        ensure!(listed, "a listed false positive is none");
        Ok(())
    }
}

/// Parameters: those of the Bloom filter. Sections: the bound, how many false positives are listed, repairs made; the
/// words of the Bloom filter; the digests of the false positives in ascending order.
impl<H: KeyHasher> Persist for WhitelistFilter<H> {
    const KIND: Kind = Kind::Whitelist;

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        encoder.words(&[self.bound as u64, self.whitelist.len() as u64, self.adaptations])?;
        self.bloom.encode(encoder)?;
        Ok(encoder.words(&self.whitelist.to_words())?)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        let [bound, listed, adaptations] = decoder.counts(["bound", "false positives listed", "repairs"])?;
        let bloom = BloomFilter::decode(decoder)?;
        let whitelist = DigestSet::from_words(&decoder.words(2 * listed)?)?;
        Ok(Self { bloom, whitelist, bound: number("bound", bound)?, adaptations })
    }
}

impl<H: KeyHasher> Insert for WhitelistFilter<H> {
    /// If the key was a known false positive, it is one no longer.
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, FullError> {
        let new = self.bloom.insert_digest(digest)?;
        Ok(self.whitelist.remove(digest) || new)
    }

    /// Forgets all false positives too.
    fn clear(&mut self) {
        self.bloom.clear();
        self.whitelist.clear();
    }
}

/// Equal in parameters, hash function, keys and false positives that are remembered.
impl<H: KeyHasher> PartialEq for WhitelistFilter<H> {
    fn eq(&self, other: &Self) -> bool {
        self.bound == other.bound && self.bloom == other.bloom && self.whitelist == other.whitelist
    }
}

/// Inserts all keys, even beyond the capacity: none is lost, but the false-positive rate then rises above the
/// one that was asked for. [`insert`](Insert::insert) refuses instead.
impl<H: KeyHasher, K: Key> Extend<K> for WhitelistFilter<H> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for key in keys {
            let digest = self.bloom.hasher().digest_key(&key);
            self.bloom.set(digest);
            self.whitelist.remove(digest);
        }
    }
}

/// A filter with exactly the capacity of the keys, a rate of 1/256 and a random seed. Like all collections of
/// the standard library it aborts the program if the memory is not available; builders return an error.
impl<K: Key> FromIterator<K> for WhitelistFilter {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let bloom = BloomFilter::from_iter(keys);
        let bound = default_bound(bloom.capacity());
        Self { bloom, whitelist: DigestSet::default(), bound, adaptations: 0 }
    }
}

/// log log u / log u of the capacity, for u = 2¹²⁸ possible digests.
fn default_bound(capacity: usize) -> usize {
    const LOG_UNIVERSE: usize = u128::BITS as usize;
    const LOG_LOG_UNIVERSE: usize = LOG_UNIVERSE.ilog2() as usize;
    capacity.div_ceil(LOG_UNIVERSE).saturating_mul(LOG_LOG_UNIVERSE)
}

/// Builds a [`WhitelistFilter`], at rates before the first repair from 2⁻⁵⁰ to 1/2.
///
/// ```
/// use besom::whitelist::WhitelistFilter;
///
/// let filter = WhitelistFilter::builder().capacity(1000).whitelist_bound(50).build()?;
/// assert_eq!(filter.whitelist_bound(), 50);
/// # Ok::<(), besom::BuildError>(())
/// ```
pub type WhitelistFilterBuilder<H = Xxh3> = Builder<WhitelistFilter<H>>;

built_by!(WhitelistFilterBuilder, [] WhitelistFilter);

/// What a whitelist filter can be asked for.
#[derive(Debug, Clone, Default)]
pub struct WhitelistOptions {
    bound: Option<usize>,
}

impl Options for WhitelistOptions {}

impl<H: KeyHasher> Build for WhitelistFilter<H> {
    type Options = WhitelistOptions;
    type With<G: KeyHasher> = WhitelistFilter<G>;

    fn build(builder: &Builder<Self>) -> Result<Self, BuildError> {
        let bloom = builder.bloom().build()?;
        let bound = builder.options.bound.unwrap_or_else(|| default_bound(builder.capacity));
        Ok(Self { bloom, whitelist: DigestSet::default(), bound, adaptations: 0 })
    }

    fn size_in_bits(builder: &Builder<Self>) -> Result<usize, BuildError> {
        builder.bloom().size_in_bits()
    }
}

impl<H: KeyHasher> Builder<WhitelistFilter<H>> {
    /// Sets how many false positives the filter may remember.
    ///
    /// By default log log u / log u of the capacity, u = 2¹²⁸ being the number of possible digests: 7/128. At the
    /// default rate of 1/256 that many are found by fourteen different queries per stored key.
    pub fn whitelist_bound(mut self, false_positives: usize) -> Self {
        self.options.bound = Some(false_positives);
        self
    }

    fn bloom(&self) -> Builder<BloomFilter<H>> {
        Builder { capacity: self.capacity, rate: self.rate, seed: self.seed, ..Builder::new() }
    }
}
