//! What all filters have in common: queries.

use crate::{Digest, FilterStats, InvariantError, Key, KeyHasher, Seed, batch};

/// A set of keys that answers "certainly absent" or "maybe present".
///
/// No filter of this crate answers "absent" for a key that was inserted and not removed. Only two calls can break this
/// promise: [`Remove::remove`](crate::Remove::remove) of a key that was never inserted, and
/// [`WhitelistFilter::adapt`](crate::WhitelistFilter::adapt) of a stored key.
///
/// A query has three parts: [`place`](Self::place) says where to look, [`prefetch`](Self::prefetch) fetches the memory,
/// and [`contains_at`](Self::contains_at) looks. [`contains_many`](Self::contains_many) does each part for many keys, so
/// that their memory accesses overlap.
///
/// ```
/// use besom::{Filter, Insert};
///
/// /// Works for every filter of the crate.
/// fn report(filter: &impl Filter) -> String {
///     format!("{} keys of {}, {:.1} bits each", filter.len(), filter.capacity(), filter.stats().bits_per_key())
/// }
///
/// let mut filter = besom::quotient::QuotientFilter::with_capacity(1000)?;
/// filter.insert("key")?;
/// assert!(filter.contains("key"));
/// assert!(report(&filter).starts_with("1 keys of 1000"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Filter {
    /// The hash function of the filter's keys.
    type Hasher: KeyHasher;

    /// Where a query looks, computed from the digest before any memory is read. Keep it small.
    type Place: Copy;

    /// Returns the hash function, with its seed.
    fn hasher(&self) -> &Self::Hasher;

    /// Returns where a query for the key with this digest looks.
    fn place(&self, digest: Digest) -> Self::Place;

    /// Asks the processor to fetch what a query at this place reads first. Does nothing by default, which is always
    /// correct.
    #[inline]
    fn prefetch(&self, place: Self::Place) {
        let _ = place;
    }

    /// Returns whether the key that belongs at this place may be stored. Calls `digest` if the place alone does not
    /// decide it; `digest` must return the digest that the place was computed from.
    fn contains_at(&self, place: Self::Place, digest: impl FnOnce() -> Digest) -> bool;

    /// Returns how many keys are stored.
    fn len(&self) -> usize;

    /// Returns how many keys the filter holds before it is full or has to grow.
    fn capacity(&self) -> usize;

    /// Returns the promised false-positive rate: a filter with [`capacity`](Self::capacity) different keys and without
    /// repairs accepts at most this share of absent keys. With fewer keys, or with repairs, it accepts fewer.
    ///
    /// The rate follows from the current size of the filter and not from the stored keys, so it costs O(1), and a filter
    /// promises the same after it was written and read. It is an expectation over the secret seed. It is never above
    /// the rate that the builder was asked for, and may be several times lower, since slots have whole bits.
    ///
    /// ```
    /// use besom::{BinFilter, Filter};
    ///
    /// let filter = BinFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// assert!((0.0001..=0.001).contains(&filter.false_positive_rate()));
    /// # Ok::<(), besom::BuildError>(())
    /// ```
    fn false_positive_rate(&self) -> f64;

    /// Returns figures for monitoring: keys, load, memory, repairs.
    fn stats(&self) -> FilterStats;

    /// Checks all invariants that can be checked without a remote. Walks the whole filter.
    ///
    /// # Errors
    ///
    /// [`InvariantError`] with the first violation found: memory was corrupted, or there is a bug in this crate.
    fn verify(&self) -> Result<(), InvariantError>;

    /// Returns whether no key is stored.
    #[inline]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the seed of the hash function.
    #[inline]
    fn seed(&self) -> Seed {
        self.hasher().seed()
    }

    /// Returns the digest of a key's bytes under this filter's hash function.
    #[inline]
    fn digest(&self, bytes: &[u8]) -> Digest {
        self.hasher().digest(bytes)
    }

    /// [`contains`](Self::contains) with a digest that was computed before: `digest` is what
    /// [`digest`](Self::digest) returns for the key.
    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.contains_at(self.place(digest), || digest)
    }

    /// Returns whether the key may be stored. `false` is certain.
    #[inline(always)]
    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_digest(self.hasher().digest_key(key))
    }

    /// Asks about many keys at once: `answers` is cleared and gets one answer per key, in order.
    ///
    /// Memory accesses of neighbouring keys overlap, so on tables beyond the processor's cache this is several
    /// times faster than asking one by one.
    #[inline]
    fn contains_many<K: Key>(&self, keys: &[K], answers: &mut Vec<bool>) {
        let prepare = |key: &K| {
            let place = self.place(self.hasher().digest_key(key));
            self.prefetch(place);
            place
        };
        // Places only are handed on: the rest of the digest is rarely needed, and the key is hashed again then.
        batch::contains_many(keys, answers, prepare, |key, place| {
            self.contains_at(place, || self.hasher().digest_key(key))
        });
    }
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<F: Filter + ?Sized> Filter for $pointer {
            type Hasher = F::Hasher;
            type Place = F::Place;

            #[inline]
            fn hasher(&self) -> &Self::Hasher {
                (**self).hasher()
            }

            #[inline]
            fn place(&self, digest: Digest) -> Self::Place {
                (**self).place(digest)
            }

            #[inline]
            fn prefetch(&self, place: Self::Place) {
                (**self).prefetch(place);
            }

            #[inline]
            fn contains_at(&self, place: Self::Place, digest: impl FnOnce() -> Digest) -> bool {
                (**self).contains_at(place, digest)
            }

            fn len(&self) -> usize {
                (**self).len()
            }

            fn capacity(&self) -> usize {
                (**self).capacity()
            }

            fn false_positive_rate(&self) -> f64 {
                (**self).false_positive_rate()
            }

            fn stats(&self) -> FilterStats {
                (**self).stats()
            }

            fn verify(&self) -> Result<(), InvariantError> {
                (**self).verify()
            }
        }
    )*};
}

forward!(&F, Box<F>, std::sync::Arc<F>);
