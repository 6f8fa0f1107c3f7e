//! Many changes in one commit.

/// Changes that are made together, one after the other, or not at all. Of several changes to one key the last counts.
///
/// ```
/// use besom_store::Batch;
///
/// let mut batch = Batch::new();
/// batch.insert(b"Ada", b"36").insert(b"Grace", b"85").remove(b"Ada");
/// assert_eq!(batch.len(), 3);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    pub(crate) steps: Vec<Step>,
}

/// One change to the data: a key, and what it has afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Option<Vec<u8>>,
}

impl Batch {
    /// No changes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores a value.
    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> &mut Self {
        self.steps.push(Step { key: key.to_vec(), value: Some(value.to_vec()) });
        self
    }

    /// Removes a key, if it is there.
    pub fn remove(&mut self, key: &[u8]) -> &mut Self {
        self.steps.push(Step { key: key.to_vec(), value: None });
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
}
