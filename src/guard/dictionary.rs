//! The slow data behind a guard.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// The slow data that a [`Guard`](crate::Guard) protects: a map from key bytes to values.
///
/// Four methods, so that any store is a dictionary in a few lines. They take `&mut self` because a store may
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
    /// Whatever the store reports. After an error the value may be stored or not: the guard is right either way.
    fn insert(&mut self, key: &[u8], value: Self::Value) -> Result<Option<Self::Value>, Self::Error>;

    /// Removes a key, and returns its value if it was there.
    ///
    /// # Errors
    ///
    /// Whatever the store reports. After an error the key may be there or not; after success it is not.
    fn remove(&mut self, key: &[u8]) -> Result<Option<Self::Value>, Self::Error>;

    /// Calls `visit` with the bytes of every key that is stored, in any order; stops when it breaks. This is what a
    /// filter comes back from when it has lost step, so it must leave no key out.
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
    values: BTreeMap<Box<[u8]>, V>,
}

impl<V> MemoryDictionary<V> {
    /// A dictionary without keys.
    #[must_use]
    pub fn new() -> Self {
        Self { values: BTreeMap::new() }
    }

    /// Returns how many keys are stored.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether a key is stored.
    #[must_use]
    pub fn contains_key(&self, key: &[u8]) -> bool {
        self.values.contains_key(key)
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
