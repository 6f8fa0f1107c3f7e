//! Filters that do not adapt, as subjects.

use besom::{
    Adaptation, BloomFilter, Filter, FilterStats, QuotientFilter, TinySet, WhitelistError, WhitelistFilter,
};

use super::{RemoteAccesses, Subject, SubjectError};

/// What a filter that does not adapt has to offer to be a subject. The library's plain filters have no common
/// trait for insertion, so each one says here how it is done.
pub trait PlainFilter: Send {
    /// Stores a key.
    ///
    /// # Errors
    ///
    /// When there is no room.
    fn insert(&mut self, key: &[u8]) -> Result<(), SubjectError>;

    /// Removes a stored key.
    ///
    /// # Errors
    ///
    /// [`SubjectError::NoRemoval`] unless the filter can.
    fn remove(&mut self, key: &[u8]) -> Result<bool, SubjectError> {
        let _ = key;
        Err(SubjectError::NoRemoval)
    }

    /// Whether the key may be stored.
    fn contains(&self, key: &[u8]) -> bool;

    /// The filter's numbers; `items` and `bits` at least.
    fn stats(&self) -> FilterStats;
}

/// A filter that does not adapt.
#[derive(Debug)]
pub struct Plain<F>(pub F);

impl<F: PlainFilter> Subject for Plain<F> {
    fn insert(&mut self, key: &[u8]) -> Result<bool, SubjectError> {
        self.0.insert(key).map(|()| true)
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, SubjectError> {
        self.0.remove(key)
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.0.contains(key)
    }

    fn adapt(&mut self, _: &[u8]) -> Result<Adaptation, SubjectError> {
        Ok(Adaptation::Unfixable)
    }

    fn stats(&self) -> FilterStats {
        self.0.stats()
    }

    fn remote(&self) -> RemoteAccesses {
        RemoteAccesses::default()
    }
}

impl PlainFilter for QuotientFilter {
    fn insert(&mut self, key: &[u8]) -> Result<(), SubjectError> {
        Self::insert(self, key).map_err(|error| SubjectError::Failed(error.to_string()))
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, SubjectError> {
        Ok(Self::remove(self, key))
    }

    fn contains(&self, key: &[u8]) -> bool {
        Filter::contains(self, key)
    }

    fn stats(&self) -> FilterStats {
        Filter::stats(self)
    }
}

impl PlainFilter for BloomFilter {
    fn insert(&mut self, key: &[u8]) -> Result<(), SubjectError> {
        Self::insert(self, key).map_err(|error| SubjectError::Failed(error.to_string()))
    }

    fn contains(&self, key: &[u8]) -> bool {
        Filter::contains(self, key)
    }

    fn stats(&self) -> FilterStats {
        Filter::stats(self)
    }
}

/// Needs no remote, so it is no [`Adaptive`](besom::Adaptive) filter; adapts until its list is full.
impl Subject for WhitelistFilter {
    fn insert(&mut self, key: &[u8]) -> Result<bool, SubjectError> {
        let inserted = Self::insert(self, key);
        inserted.map(|()| true).map_err(|error| SubjectError::Failed(error.to_string()))
    }

    fn remove(&mut self, _: &[u8]) -> Result<bool, SubjectError> {
        Err(SubjectError::NoRemoval)
    }

    fn contains(&self, key: &[u8]) -> bool {
        Filter::contains(self, key)
    }

    fn adapt(&mut self, key: &[u8]) -> Result<Adaptation, SubjectError> {
        match Self::adapt(self, key) {
            Ok(adaptation) => Ok(adaptation),
            Err(WhitelistError::Full { .. }) => Ok(Adaptation::Unfixable),
            Err(error) => Err(SubjectError::Failed(error.to_string())),
        }
    }

    fn stats(&self) -> FilterStats {
        Filter::stats(self)
    }

    fn remote(&self) -> RemoteAccesses {
        RemoteAccesses::default()
    }
}

impl PlainFilter for TinySet {
    fn insert(&mut self, key: &[u8]) -> Result<(), SubjectError> {
        Self::insert(self, key).map_err(|error| SubjectError::Failed(error.to_string()))
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, SubjectError> {
        Self::remove(self, key).map_err(|_| SubjectError::NoRemoval)
    }

    fn contains(&self, key: &[u8]) -> bool {
        Filter::contains(self, key)
    }

    fn stats(&self) -> FilterStats {
        Filter::stats(self)
    }
}
