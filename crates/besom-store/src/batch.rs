//! Many changes in one transaction.

use crate::guard::Step;

/// Changes that are made together, one after the other.
///
/// ```
/// use besom_store::Batch;
///
/// let mut batch = Batch::new();
/// batch.insert(b"Ada", b"36").insert(b"Grace", b"85").remove(b"Ada");
/// assert_eq!(batch.len(), 3);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Batch {
    steps: Vec<Step>,
}

impl Batch {
    /// No changes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores a value.
    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> &mut Self {
        self.steps.push(Step::Insert(key.to_vec(), value.to_vec()));
        self
    }

    /// Removes a key, if it is there.
    pub fn remove(&mut self, key: &[u8]) -> &mut Self {
        self.steps.push(Step::Remove(key.to_vec()));
        self
    }

    /// How many changes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Forgets all changes, and keeps the memory for others.
    pub fn clear(&mut self) {
        self.steps.clear();
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }
}
