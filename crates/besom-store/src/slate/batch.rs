//! Several operations in one.

use std::collections::BTreeMap;

use slatedb::bytes::Bytes;

use super::SlateError;
use super::store::check;
use super::write::{Insertion, Operations};

/// Insertions and removals that are made together, or not at all: see [`SlateStore::write`](super::SlateStore::write).
///
/// ```
/// use besom_store::slate::SlateBatch;
///
/// let mut batch = SlateBatch::new();
/// batch.insert(b"new", b"value");
/// batch.remove(b"old");
/// assert_eq!(batch.len(), 2);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlateBatch {
    /// The last operation of every key: its value, or that it goes.
    operations: BTreeMap<Bytes, Option<Bytes>>,
}

impl SlateBatch {
    /// A batch without operations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores a value.
    pub fn insert(&mut self, key: &[u8], value: &[u8]) {
        self.operations.insert(Bytes::copy_from_slice(key), Some(Bytes::copy_from_slice(value)));
    }

    /// Removes a key, if it is there.
    pub fn remove(&mut self, key: &[u8]) {
        self.operations.insert(Bytes::copy_from_slice(key), None);
    }

    /// How many keys are named.
    #[must_use]
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether no key is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    pub(super) fn into_operations(self) -> Result<Operations, SlateError> {
        let mut operations = Operations::default();
        for (key, value) in self.operations {
            check(&key, value.as_deref().unwrap_or_default())?;
            match value {
                Some(value) => operations.insertions.push(Insertion { key, value, known: false }),
                None => operations.removals.push(key),
            }
        }
        Ok(operations)
    }
}
