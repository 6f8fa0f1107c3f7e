//! Many changes in one commit.

/// A key, and what it has afterwards.
pub(crate) type Step<'k> = (&'k [u8], Option<&'k [u8]>);

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
    /// Keys and values, one behind the other.
    bytes: Vec<u8>,
    /// Where each key ends, and its value, if it is to have one.
    ends: Vec<(usize, Option<usize>)>,
}

impl Batch {
    /// No changes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores a value.
    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(key);
        let end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((end, Some(self.bytes.len())));
        self
    }

    /// Removes a key, if it is there.
    pub fn remove(&mut self, key: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(key);
        self.ends.push((self.bytes.len(), None));
        self
    }

    /// The changes, in their order.
    pub(crate) fn steps(&self) -> impl Iterator<Item = Step<'_>> {
        let mut from = 0;
        self.ends.iter().map(move |&(key_end, value_end)| {
            let key = &self.bytes[from..key_end];
            from = value_end.unwrap_or(key_end);
            (key, value_end.map(|end| &self.bytes[key_end..end]))
        })
    }

    /// How many changes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Forgets all changes, and keeps the memory for others.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}
