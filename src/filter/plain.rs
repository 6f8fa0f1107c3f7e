//! Filters that need no remote: insertion and removal.

use thiserror::Error;

use crate::{Digest, Filter, FullError, Key, KeyHasher};

use super::{Inserter, SMALL};

/// A filter that keys are inserted into without a remote.
///
/// ```
/// use besom::bloom::BloomFilter;
/// use besom::quotient::QuotientFilter;
/// use besom::{Filter, Insert};
///
/// fn fill(filter: &mut impl Insert) -> Result<(), besom::FullError> {
///     (0..100_u64).try_for_each(|key| filter.insert(&key).map(drop))
/// }
///
/// let (mut quotient, mut bloom) = (QuotientFilter::with_capacity(100)?, BloomFilter::with_capacity(100)?);
/// fill(&mut quotient)?;
/// fill(&mut bloom)?;
/// assert!(quotient.contains(&7_u64) && bloom.contains(&7_u64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Insert: Filter {
    /// [`insert`](Self::insert) with a digest that was computed before.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, FullError>;

    /// Removes all keys; capacity and hash function stay.
    fn clear(&mut self);

    /// Inserts a key. `false` if the filter accepted it before already: it was stored, or a false positive.
    ///
    /// A Bloom filter does not count such a key. Filters that can remove keys have multiset semantics and give it
    /// another slot; [`insert_unique`](Self::insert_unique) does not.
    ///
    /// # Errors
    ///
    /// [`FullError`] without room for it. The filter is unchanged then.
    #[inline]
    fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, FullError> {
        let digest = self.hasher().digest_key(key);
        self.insert_digest(digest)
    }

    /// Returns a handle that inserts keys one by one at the speed of [`insert_many`](Self::insert_many): they wait a
    /// little, while their memory is on its way. For tables beyond the processor's cache.
    ///
    /// ```
    /// use besom::{BinFilter, Filter, Insert};
    ///
    /// let mut filter = BinFilter::with_capacity(1000)?;
    /// let mut inserter = filter.inserter();
    /// for key in 0..1000_u64 {
    ///     inserter.insert(&key)?;
    /// }
    /// inserter.finish()?;
    /// assert_eq!(filter.len(), 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn inserter(&mut self) -> Inserter<'_, Self>
    where
        Self: Sized,
    {
        Inserter::new(self)
    }

    /// Inserts a key unless the filter accepts it already; `false` then, and it takes no room.
    ///
    /// For streams in which keys repeat and are never removed, such as URLs that were seen: a filter with multiset
    /// semantics gives every repetition a slot otherwise. **Do not remove keys from a filter that was filled this
    /// way**: two keys that the filter cannot tell apart share one slot.
    ///
    /// ```
    /// use besom::{BinFilter, Filter, Insert};
    ///
    /// let mut seen = BinFilter::with_capacity(1_000)?;
    /// for _ in 0..1_000 {
    ///     seen.insert_unique("https://example.org")?;
    /// }
    /// assert_eq!(seen.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`FullError`] if the key is new and there is no room for it. The filter is unchanged then.
    #[inline]
    fn insert_unique<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, FullError> {
        let digest = self.hasher().digest_key(key);
        self.insert_unique_digest(digest)
    }

    /// [`insert_unique`](Self::insert_unique) by a digest that was computed before.
    ///
    /// # Errors
    ///
    /// As [`insert_unique`](Self::insert_unique).
    #[inline]
    fn insert_unique_digest(&mut self, digest: Digest) -> Result<bool, FullError> {
        if self.contains_digest(digest) { Ok(false) } else { self.insert_digest(digest) }
    }

    /// Inserts many keys, and says how many of them the filter did not accept before.
    ///
    /// The same as inserting them one after the other, and faster on tables beyond the processor's cache: memory is
    /// fetched ahead, or keys are sorted by place where that pays.
    ///
    /// # Errors
    ///
    /// [`InsertManyError`] without room for all of them. It says how many there was room for: this many from the
    /// beginning are in, and the others are not.
    ///
    /// ```
    /// use besom::quotient::QuotientFilter;
    /// use besom::{Filter, Insert};
    ///
    /// let keys: Vec<u64> = (0..10_000).collect();
    /// let mut filter = QuotientFilter::with_capacity(10_000)?;
    /// filter.insert_many(&keys)?;
    /// assert!(keys.iter().all(|key| filter.contains(key)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn insert_many<K: Key>(&mut self, keys: &[K]) -> Result<usize, InsertManyError> {
        if self.capacity() > SMALL {
            return insert_in_parts(self, keys, PART);
        }
        insert_one_by_one(self, keys)
    }

    /// [`insert_many`](Self::insert_many) with a digest that was computed before.
    ///
    /// # Errors
    ///
    /// As [`insert_many`](Self::insert_many).
    #[inline]
    fn insert_digests(&mut self, digests: &[Digest]) -> Result<usize, InsertManyError> {
        insert_in_order(self, digests)
    }
}

/// Inserts keys one after the other, and fetches memory for those ahead.
#[inline]
pub(crate) fn insert_in_order<F: Insert + ?Sized>(
    filter: &mut F,
    digests: &[Digest],
) -> Result<usize, InsertManyError> {
    /// How many keys ahead.
    const AHEAD: usize = 16;
    let mut fresh = 0;
    for (inserted, &digest) in digests.iter().enumerate() {
        if let Some(&next) = digests.get(inserted + AHEAD) {
            filter.prefetch(filter.place(next));
        }
        let new = filter.insert_digest(digest).map_err(|full| InsertManyError { inserted, full })?;
        fresh += usize::from(new);
    }
    Ok(fresh)
}

/// Inserts keys into a filter that lies in the processor's cache.
#[inline]
pub(crate) fn insert_one_by_one<F: Insert + ?Sized, K: Key>(
    filter: &mut F,
    keys: &[K],
) -> Result<usize, InsertManyError> {
    let mut fresh = 0;
    for (inserted, key) in keys.iter().enumerate() {
        fresh += usize::from(filter.insert(key).map_err(|full| InsertManyError { inserted, full })?);
    }
    Ok(fresh)
}

/// Inserts this many keys at a time, which are hashed first.
#[inline]
pub(crate) fn insert_in_parts<F: Insert + ?Sized, K: Key>(
    filter: &mut F,
    keys: &[K],
    part: usize,
) -> Result<usize, InsertManyError> {
    let (mut fresh, mut done) = (0, 0);
    let mut digests = Vec::with_capacity(keys.len().min(part));
    for keys in keys.chunks(part) {
        digests.clear();
        digests.extend(keys.iter().map(|key| filter.hasher().digest_key(key)));
        fresh += filter
            .insert_digests(&digests)
            .map_err(|error| InsertManyError { inserted: done + error.inserted, ..error })?;
        done += keys.len();
    }
    Ok(fresh)
}

/// Keys that [`insert_many`](Insert::insert_many) hashes at a time: their digests stay in the first cache.
pub(crate) const PART: usize = 1 << 10;

/// There was no room for all of [many keys](Insert::insert_many).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("only the first {inserted} keys were inserted: {full}")]
pub struct InsertManyError {
    /// How many keys are in, from the beginning. The others are not.
    pub inserted: usize,
    /// Why no more are.
    #[source]
    pub full: FullError,
}

/// A filter without a remote that can remove keys.
pub trait Remove: Insert {
    /// [`remove`](Self::remove) with a digest that was computed before.
    ///
    /// # Errors
    ///
    /// As [`remove`](Self::remove).
    fn remove_digest(&mut self, digest: Digest) -> Result<bool, RemovalDisabled>;

    /// Removes a key, once if it was inserted several times. `false`, and nothing changes, if the filter rejects it.
    ///
    /// **Remove only what was inserted.** Such a filter keeps a few bits of each key and no more: removing a key that
    /// was never inserted takes away, at the false-positive rate, the bits of another one, which is lost then.
    ///
    /// # Errors
    ///
    /// [`RemovalDisabled`] if the filter was built without what removal needs.
    #[inline]
    fn remove<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, RemovalDisabled> {
        let digest = self.hasher().digest_key(key);
        self.remove_digest(digest)
    }
}

/// A filter was built without what removal needs. It is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("this filter was built without removal; build it with removal(true)")]
pub struct RemovalDisabled;
