//! What all filters have in common, and what adaptive ones add.

use crate::{AdaptiveError, Digest, Key, Remote};

/// A set of keys that answers "certainly absent" or "maybe present".
///
/// No filter of this crate ever answers "absent" for a key that was inserted and not removed, whatever happened
/// in between.
pub trait Filter {
    /// The digest of a key's bytes under this filter's hash function.
    fn digest(&self, bytes: &[u8]) -> Digest;

    /// [`contains`](Self::contains) for those who have hashed already: `digest` is what
    /// [`digest`](Self::digest) returns for the key.
    fn contains_digest(&self, digest: Digest) -> bool;

    /// Whether the key may be stored. `false` is certain.
    #[inline]
    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool
    where
        Self: Sized,
    {
        self.contains_digest(key.with_bytes(|bytes| self.digest(bytes)))
    }

    /// Asks about many keys at once: `answers` is cleared and gets one answer per key, in order.
    ///
    /// Memory accesses of neighbouring keys overlap, so on tables beyond the processor's cache this is several
    /// times faster than asking one by one.
    fn contains_many<K: Key>(&self, keys: &[K], answers: &mut Vec<bool>)
    where
        Self: Sized,
    {
        answers.clear();
        answers.extend(keys.iter().map(|key| self.contains(key)));
    }

    /// How many keys are stored.
    fn len(&self) -> usize;

    /// Whether no key is stored.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys fit before the filter is full or has to grow.
    fn capacity(&self) -> usize;

    /// The numbers that an operator wants to see.
    fn stats(&self) -> FilterStats;
}

/// A filter that repairs its false positives with the help of a [`Remote`].
///
/// The remote is what the filter was built up with; handing it another one is an error that the filter reports
/// where it can notice it. Inserting a key twice keeps set semantics: the remote knows what is stored.
pub trait Adaptive: Filter {
    /// Inserts a key. `false` if it was there already.
    ///
    /// # Errors
    ///
    /// [`AdaptiveError::Full`] without room for it, [`AdaptiveError::Remote`] if the remote failed; filter and
    /// remote are unchanged in either case.
    fn insert<K, R>(&mut self, key: &K, remote: &mut R) -> Result<bool, AdaptiveError<R::Error>>
    where
        K: Key + ?Sized,
        R: Remote;

    /// Removes a key. `false`, and nothing changes, if it was not there.
    ///
    /// # Errors
    ///
    /// [`AdaptiveError::Remote`] if the remote failed; filter and remote are unchanged.
    fn remove<K, R>(&mut self, key: &K, remote: &mut R) -> Result<bool, AdaptiveError<R::Error>>
    where
        K: Key + ?Sized,
        R: Remote;

    /// Repairs the false positive `key`, so that the filter no longer answers "maybe present" for it.
    ///
    /// Harmless for a stored key and for one that the filter rejects already: the answer is then
    /// [`Adaptation::NotFalsePositive`].
    ///
    /// # Errors
    ///
    /// [`AdaptiveError::Remote`] if the remote failed; filter and remote are unchanged.
    fn adapt<K, R>(&mut self, key: &K, remote: &mut R) -> Result<Adaptation, AdaptiveError<R::Error>>
    where
        K: Key + ?Sized,
        R: Remote;
}

/// What [`Adaptive::adapt`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Adaptation {
    /// The filter rejects the key already, or the key is stored: nothing to repair.
    NotFalsePositive,
    /// The filter now rejects the key.
    Fixed {
        /// How many slots or cells were changed.
        slots: usize,
    },
    /// The filter now rejects the key; to make room, it forgot earlier repairs.
    FixedAfterReset {
        /// How many slots or cells were changed for this key.
        slots: usize,
        /// How many blocks (or, where a filter rebuilds as a whole, rebuilds) lost their earlier repairs.
        resets: usize,
    },
    /// The filter now rejects the key; the repairs of some blocks moved to a side table. Nothing was forgotten.
    Spilled {
        /// How many slots were changed for this key.
        slots: usize,
        /// How many blocks moved to the side table just now.
        spills: usize,
    },
    /// The filter still accepts the key: it can tell it no further from a stored key, because the hash bits of
    /// the two agree as far as the filter can go.
    Unfixable,
}

impl Adaptation {
    /// Whether the filter rejects the key from now on although it accepted it before.
    #[must_use]
    pub fn is_fixed(self) -> bool {
        !matches!(self, Self::NotFalsePositive | Self::Unfixable)
    }
}

/// The numbers that an operator wants to see. Fields that a filter has no use for are 0.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct FilterStats {
    /// Keys stored.
    pub items: usize,
    /// Slots (or bits, or cells) that the filter has for them.
    pub slots: usize,
    /// The share of the slots in use.
    pub load: f64,
    /// All memory of the filter in bits, side tables included.
    pub bits: usize,
    /// False positives repaired so far.
    pub adaptations: u64,
    /// Blocks (or whole filters) that forgot their repairs to make room.
    pub resets: u64,
    /// Blocks whose repairs live in a side table now.
    pub spills: usize,
    /// Slots whose selector, extension or place is not the initial one.
    pub adapted_slots: usize,
    /// The bits that repairs take up at present.
    pub adaptivity_bits: usize,
    /// Times the whole filter was rebuilt with new hash functions.
    pub rebuilds: u64,
}

impl FilterStats {
    /// Memory per stored key, in bits. Infinite while nothing is stored.
    #[must_use]
    pub fn bits_per_key(&self) -> f64 {
        self.bits as f64 / self.items as f64
    }
}
