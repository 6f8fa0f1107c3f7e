//! A filter in front of a dictionary: look-ups of absent keys stay away from it, and every one that did not is
//! repaired on the spot.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

use thiserror::Error;

use crate::{Adaptive, AdaptiveError, Change, Key, MemoryRemote, Remote};

/// The slow data that a [`Guard`] protects: a map from key bytes to values.
///
/// Three methods, so that any store is a dictionary in a few lines. They take `&mut self` because a store may
/// keep a connection or a cache; nothing is read behind the guard's back.
pub trait Dictionary {
    /// What is stored under a key.
    type Value;

    /// What a failed access returns.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The value of a key, if it is stored.
    ///
    /// # Errors
    ///
    /// Whatever the store reports.
    fn get(&mut self, key: &[u8]) -> Result<Option<Self::Value>, Self::Error>;

    /// Stores a value, and returns the one that was there before.
    ///
    /// # Errors
    ///
    /// Whatever the store reports. After an error the dictionary is as it was before.
    fn insert(&mut self, key: &[u8], value: Self::Value) -> Result<Option<Self::Value>, Self::Error>;

    /// Removes a key, and returns its value if it was there.
    ///
    /// # Errors
    ///
    /// Whatever the store reports. After an error the dictionary is as it was before.
    fn remove(&mut self, key: &[u8]) -> Result<Option<Self::Value>, Self::Error>;

    /// Calls `visit` with the bytes of every key that is stored, in any order; stops when it breaks. This is what a filter
    /// comes back from when it has lost step, so it must leave no key out.
    ///
    /// # Errors
    ///
    /// Whatever the store reports.
    fn scan(&mut self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), Self::Error>;
}

/// A [`Dictionary`] in memory: for tests, examples and benchmarks.
///
/// ```
/// use besom::{Dictionary, MemoryDictionary};
///
/// let mut dictionary = MemoryDictionary::new();
/// dictionary.insert(b"key", 7)?;
/// assert_eq!(dictionary.get(b"key")?, Some(7));
/// # Ok::<(), std::convert::Infallible>(())
/// ```
#[derive(Debug, Clone)]
pub struct MemoryDictionary<V> {
    values: HashMap<Box<[u8]>, V>,
}

impl<V> MemoryDictionary<V> {
    /// A dictionary without keys.
    #[must_use]
    pub fn new() -> Self {
        Self { values: HashMap::new() }
    }

    /// How many keys are stored.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether no key is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl<V> Default for MemoryDictionary<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: Clone> Dictionary for MemoryDictionary<V> {
    type Value = V;
    type Error = Infallible;

    fn get(&mut self, key: &[u8]) -> Result<Option<V>, Infallible> {
        Ok(self.values.get(key).cloned())
    }

    fn insert(&mut self, key: &[u8], value: V) -> Result<Option<V>, Infallible> {
        Ok(self.values.insert(key.into(), value))
    }

    fn remove(&mut self, key: &[u8]) -> Result<Option<V>, Infallible> {
        Ok(self.values.remove(key))
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), Infallible> {
        // The visitor's break ends the scan, and is no error.
        let _ = self.values.keys().try_for_each(|key| visit(key));
        Ok(())
    }
}

/// An operation of a [`Guard`] failed, in the filter (or its remote) or in the dictionary.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum GuardError<R, D> {
    /// The filter is full, or its remote failed.
    #[error(transparent)]
    Filter(AdaptiveError<R>),
    /// The dictionary failed; its error is inside.
    #[error("the dictionary failed: {0}")]
    Dictionary(#[source] D),
}

/// What a [`Guard`] has counted since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct GuardStats {
    /// Calls of [`Guard::get`] that were answered.
    pub queries: u64,
    /// Queries that the filter settled alone: the dictionary was not touched.
    pub negatives: u64,
    /// Queries whose key the dictionary had.
    pub true_positives: u64,
    /// Queries that reached the dictionary for nothing. The filter was told of each.
    pub false_positives: u64,
    /// Lists read from the remote, by any operation.
    pub remote_reads: u64,
    /// Groups of changes made to the remote, by any operation.
    pub remote_writes: u64,
}

impl GuardStats {
    /// The share of absent keys that reached the dictionary. 0 before the first absent key.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        match self.negatives + self.false_positives {
            0 => 0.0,
            absent => self.false_positives as f64 / absent as f64,
        }
    }
}

type Errors<R, D> = GuardError<<R as Remote>::Error, <D as Dictionary>::Error>;

/// An adaptive filter, its remote and a dictionary, kept in step.
///
/// [`get`](Self::get) asks the filter first and goes to the dictionary only if it says "maybe". When the
/// dictionary then does not have the key, the filter is repaired, so that the same question does not get
/// through again.
///
/// ```
/// use besom::{Guard, MemoryDictionary, TelescopingFilter};
///
/// let filter = TelescopingFilter::with_capacity(1_000)?;
/// let mut ages = Guard::new(filter, MemoryDictionary::new());
/// ages.insert("Ada", 36)?;
/// ages.insert("Grace", 85)?;
///
/// assert_eq!(ages.get("Ada")?, Some(36));
/// assert_eq!(ages.get("Charles")?, None); // almost certainly without a look into the dictionary
/// assert_eq!(ages.remove("Ada")?, Some(36));
/// assert_eq!(ages.get("Ada")?, None);
///
/// let stats = ages.stats();
/// assert_eq!((stats.queries, stats.true_positives), (3, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Failures
///
/// The filter always holds every key of the dictionary: a key enters the filter before the dictionary and leaves
/// it after. If an operation fails half-way, the filter may be left with a key that the dictionary does not have.
/// That is no wrong answer, only a look-up in vain, and the next `get` of that key takes it out.
#[derive(Debug, Clone)]
pub struct Guard<F, D, R = MemoryRemote> {
    filter: F,
    dictionary: D,
    remote: R,
    stats: GuardStats,
}

impl<F: Adaptive, D: Dictionary> Guard<F, D> {
    /// Guards a dictionary with a filter, both without keys, and keeps the remote in memory.
    pub fn new(filter: F, dictionary: D) -> Self {
        Self::with_remote(filter, dictionary, MemoryRemote::new())
    }
}

impl<F: Adaptive, D: Dictionary, R: Remote> Guard<F, D, R> {
    /// Guards a dictionary with a filter that holds the same keys, and the remote that the filter was built with.
    pub fn with_remote(filter: F, dictionary: D, remote: R) -> Self {
        Self { filter, dictionary, remote, stats: GuardStats::default() }
    }

    /// The value of a key.
    ///
    /// # Errors
    ///
    /// [`GuardError::Dictionary`] if it failed. [`GuardError::Filter`] if the dictionary does not have the key,
    /// but the filter could not be told so; the answer is `None`, and the filter is as it was.
    pub fn get<K: Key + ?Sized>(&mut self, key: &K) -> Result<Option<D::Value>, Errors<R, D>> {
        if !self.filter.contains(key) {
            self.stats.queries += 1;
            self.stats.negatives += 1;
            return Ok(None);
        }
        let found = key.with_bytes(|bytes| self.dictionary.get(bytes)).map_err(GuardError::Dictionary)?;
        self.stats.queries += 1;
        if found.is_some() {
            self.stats.true_positives += 1;
            return Ok(found);
        }
        self.stats.false_positives += 1;
        let remote = &mut Counted { remote: &mut self.remote, stats: &mut self.stats };
        let adaptation = self.filter.adapt(key, remote).map_err(GuardError::Filter)?;
        if !adaptation.is_fixed() {
            // The filter stores the key itself: an earlier operation failed half-way. If it does not (hash bits
            // equal as far as the filter goes), this changes nothing.
            self.filter.remove(key, remote).map_err(GuardError::Filter)?;
        }
        Ok(None)
    }

    /// Stores a value, and returns the one that was there before.
    ///
    /// # Errors
    ///
    /// [`GuardError::Filter`] if the filter is full or its remote failed, [`GuardError::Dictionary`] if that
    /// failed; in either case the key has the value that it had before.
    pub fn insert<K: Key + ?Sized>(
        &mut self,
        key: &K,
        value: D::Value,
    ) -> Result<Option<D::Value>, Errors<R, D>> {
        let remote = &mut Counted { remote: &mut self.remote, stats: &mut self.stats };
        let new = self.filter.insert(key, remote).map_err(GuardError::Filter)?;
        let stored = key.with_bytes(|bytes| self.dictionary.insert(bytes, value));
        if stored.is_err() && new {
            // Best effort: a key that stays behind in the filter is taken out by the next `get` of it.
            let _ = self.filter.remove(key, remote);
        }
        stored.map_err(GuardError::Dictionary)
    }

    /// Removes a key, and returns its value if it was there.
    ///
    /// # Errors
    ///
    /// [`GuardError::Dictionary`] if that failed, and the key is still there; [`GuardError::Filter`] if the
    /// remote failed: the key is gone, but the filter does not know yet.
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> Result<Option<D::Value>, Errors<R, D>> {
        if !self.filter.contains(key) {
            return Ok(None);
        }
        let removed =
            key.with_bytes(|bytes| self.dictionary.remove(bytes)).map_err(GuardError::Dictionary)?;
        if removed.is_some() {
            let remote = &mut Counted { remote: &mut self.remote, stats: &mut self.stats };
            self.filter.remove(key, remote).map_err(GuardError::Filter)?;
        }
        Ok(removed)
    }

    /// Whether the key may be stored, by the filter's word alone. `false` is certain.
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.filter.contains(key)
    }

    /// What was counted so far.
    pub fn stats(&self) -> GuardStats {
        self.stats
    }

    /// The filter.
    pub fn filter(&self) -> &F {
        &self.filter
    }

    /// The dictionary.
    pub fn dictionary(&self) -> &D {
        &self.dictionary
    }

    /// Takes the guard apart into filter, dictionary and remote.
    pub fn into_parts(self) -> (F, D, R) {
        (self.filter, self.dictionary, self.remote)
    }
}

/// A remote that counts its accesses.
struct Counted<'a, R> {
    remote: &'a mut R,
    stats: &'a mut GuardStats,
}

impl<R: Remote> Remote for Counted<'_, R> {
    type Error = R::Error;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), R::Error> {
        self.stats.remote_reads += 1;
        self.remote.read(address, visit)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), R::Error> {
        self.stats.remote_writes += 1;
        self.remote.apply(changes)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), R::Error> {
        self.remote.scan(visit)
    }

    fn prefetch(&self, address: u64) {
        self.remote.prefetch(address);
    }
}

#[cfg(test)]
mod tests;
