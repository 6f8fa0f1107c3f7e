//! Filters that need no remote: insertion and removal.

use thiserror::Error;

use crate::{Digest, Filter, FullError, Key, KeyHasher};

/// A filter that keys are inserted into without a remote.
///
/// ```
/// use besom::{BloomFilter, Filter, Insert, QuotientFilter};
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
    /// [`insert`](Self::insert) for those who have hashed already.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, FullError>;

    /// Removes all keys; capacity and hash function stay.
    fn clear(&mut self);

    /// Inserts a key. `false` if the filter accepted it before already: it was stored, or a false positive.
    ///
    /// So whoever removes duplicates asks and inserts in one look.
    ///
    /// # Errors
    ///
    /// [`FullError`] without room for it. The filter is unchanged then.
    #[inline]
    fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, FullError> {
        let digest = self.hasher().digest_key(key);
        self.insert_digest(digest)
    }
}

/// A filter without a remote that can remove keys.
pub trait Remove: Insert {
    /// [`remove`](Self::remove) for those who have hashed already.
    ///
    /// # Errors
    ///
    /// As [`remove`](Self::remove).
    fn remove_digest(&mut self, digest: Digest) -> Result<bool, RemovalDisabled>;

    /// Removes a key, once if it was inserted several times. `false`, and nothing changes, if the filter rejects it.
    ///
    /// **Remove only what was inserted.** Such a filter keeps a few bits of each key and no more: removing a key that was
    /// never inserted takes away, at the false-positive rate, the bits of another one, which is lost then.
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
