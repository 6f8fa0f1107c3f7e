//! Any filter behind one object-safe trait, by bytes: for code that chooses a filter at run time.

use std::ops::RangeInclusive;

use crate::{
    Adaptation, Adaptive, AdaptiveError, Authority, FilterStats, Insert, InvariantError, Remote, Remove,
    Seed, Settled,
};

use super::object::{Adapting, Plain};
use super::{Abilities, AnyRemoteError};

/// An operation of a [`DynFilter`] failed. The filter is unchanged.
pub type DynFilterError = AdaptiveError<AnyRemoteError>;

type Outcome<T> = Result<T, DynFilterError>;

/// Any filter of the crate, by the bytes of keys. Filters without a remote do not touch the one that they are given.
pub trait DynFilter: Send + Sync {
    /// See [`Filter::contains`](crate::Filter::contains).
    fn contains(&self, key: &[u8]) -> bool;

    /// See [`Filter::contains_many`](crate::Filter::contains_many).
    fn contains_many(&self, keys: &[&[u8]], answers: &mut Vec<bool>);

    /// [`contains_many`](Self::contains_many) for integers. The filters of this crate know that each has 8 bytes where
    /// they hash it, which saves a branch and a slice for each.
    fn contains_words(&self, keys: &[u64], answers: &mut Vec<bool>) {
        let words: Vec<_> = keys.iter().map(|key| key.to_le_bytes()).collect();
        self.contains_many(&words.iter().map(|word| &word[..]).collect::<Vec<_>>(), answers);
    }

    /// See [`Insert::insert`] and [`Adaptive::insert`].
    ///
    /// # Errors
    ///
    /// [`DynFilterError`] if there is no room or the remote failed.
    fn insert(&mut self, key: &[u8], remote: &mut dyn Remote<Error = AnyRemoteError>) -> Outcome<bool>;

    /// See [`Adaptive::insert_new`].
    ///
    /// # Errors
    ///
    /// [`DynFilterError`] if there is no room or the remote failed.
    fn insert_new(&mut self, key: &[u8], remote: &mut dyn Remote<Error = AnyRemoteError>) -> Outcome<()> {
        self.insert(key, remote).map(drop)
    }

    /// See [`Adaptive::remove_stored`].
    ///
    /// # Errors
    ///
    /// [`DynFilterError`] if the filter cannot remove keys or the remote failed.
    fn remove_stored(
        &mut self,
        key: &[u8],
        remote: &mut dyn Remote<Error = AnyRemoteError>,
    ) -> Outcome<bool> {
        self.remove(key, remote)
    }

    /// See [`Remove::remove`] and [`Adaptive::remove`].
    ///
    /// # Errors
    ///
    /// [`DynFilterError`] if the filter cannot remove keys or the remote failed.
    fn remove(&mut self, key: &[u8], remote: &mut dyn Remote<Error = AnyRemoteError>) -> Outcome<bool>;

    /// See [`Adaptive::adapt`]. A filter that does not adapt answers [`Adaptation::Unfixable`].
    ///
    /// # Errors
    ///
    /// [`DynFilterError`] if the remote failed.
    fn adapt(&mut self, key: &[u8], remote: &mut dyn Remote<Error = AnyRemoteError>) -> Outcome<Adaptation>;

    /// See [`Insert::clear`] and [`Adaptive::clear`].
    ///
    /// # Errors
    ///
    /// [`DynFilterError`] if the remote failed.
    fn clear(&mut self, remote: &mut dyn Remote<Error = AnyRemoteError>) -> Outcome<()>;

    /// See [`Adaptive::verify_remote`]. A filter without a remote agrees with any.
    ///
    /// # Errors
    ///
    /// [`DynFilterError`] if filter and remote disagree, or the remote failed.
    fn verify_remote(&self, remote: &mut dyn Remote<Error = AnyRemoteError>) -> Outcome<()>;

    /// See [`Adaptive::settle`]. A filter without a remote agrees with any.
    ///
    /// # Errors
    ///
    /// [`DynFilterError`] if the remote failed.
    fn settle(
        &mut self,
        addresses: RangeInclusive<u64>,
        authority: Authority,
        remote: &mut dyn Remote<Error = AnyRemoteError>,
    ) -> Outcome<Settled>;

    /// Whether the filter has a remote.
    fn is_adaptive(&self) -> bool;

    /// See [`Filter::verify`](crate::Filter::verify).
    ///
    /// # Errors
    ///
    /// [`InvariantError`] with the first violation found.
    fn verify(&self) -> Result<(), InvariantError>;

    /// See [`Filter::false_positive_rate`](crate::Filter::false_positive_rate).
    fn false_positive_rate(&self) -> f64;

    /// See [`Filter::stats`](crate::Filter::stats).
    fn stats(&self) -> FilterStats;

    /// See [`Filter::len`](crate::Filter::len).
    fn len(&self) -> usize;

    /// See [`Filter::is_empty`](crate::Filter::is_empty).
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// See [`Filter::capacity`](crate::Filter::capacity).
    fn capacity(&self) -> usize;

    /// See [`Filter::seed`](crate::Filter::seed).
    fn seed(&self) -> Seed;
}

/// Puts an adaptive filter behind [`DynFilter`].
pub fn dyn_adaptive<F: Adaptive + Send + Sync + 'static>(filter: F) -> Box<dyn DynFilter> {
    Box::new(Adapting { filter, abilities: Abilities::default() })
}

/// Puts a filter without a remote and without removal behind [`DynFilter`].
///
/// ```
/// let filter = besom::any::dyn_plain(besom::bloom::BloomFilter::with_capacity(100)?);
/// assert!(filter.is_empty() && !filter.is_adaptive());
/// # Ok::<(), besom::BuildError>(())
/// ```
pub fn dyn_plain<F: Insert + Send + Sync + 'static>(filter: F) -> Box<dyn DynFilter> {
    Box::new(Plain { filter, abilities: Abilities::default() })
}

/// Puts a filter without a remote that removes keys behind [`DynFilter`].
pub fn dyn_removable<F: Remove + Send + Sync + 'static>(filter: F) -> Box<dyn DynFilter> {
    Box::new(Plain { filter, abilities: Abilities::default().and_remove() })
}
