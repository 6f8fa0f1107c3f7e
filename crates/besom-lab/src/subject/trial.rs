//! A subject in use: the exact set beside it, every false positive reported to it.

use std::collections::HashSet;

use besom::testing::Accesses;
use besom::{Adaptation, FilterStats};

use super::{Subject, SubjectError};

/// What a look-up turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The filter rejected an absent key.
    Negative,
    /// The key is stored.
    Positive,
    /// The filter accepted an absent key, and this is what it made of being told so.
    FalsePositive(Adaptation),
}

impl Answer {
    /// Whether the filter was wrong.
    #[must_use]
    pub fn is_false_positive(self) -> bool {
        matches!(self, Self::FalsePositive(_))
    }
}

/// What happened so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Look-ups of keys that are not stored.
    pub absent: u64,
    /// Those of them that the filter accepted.
    pub false_positives: u64,
}

impl Counts {
    /// The share of absent keys that the filter accepted.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.false_positives as f64 / self.absent.max(1) as f64
    }
}

/// A subject with the exact set of its keys.
pub struct Trial {
    subject: Subject,
    stored: HashSet<Box<[u8]>>,
    counts: Counts,
}

impl Trial {
    /// A subject into which nothing was inserted yet.
    #[must_use]
    pub fn new(subject: Subject) -> Self {
        Self { subject, stored: HashSet::new(), counts: Counts::default() }
    }

    /// Stores a key. `false` if it was stored already.
    ///
    /// # Errors
    ///
    /// When the filter has no room.
    pub fn insert(&mut self, key: &[u8]) -> Result<bool, SubjectError> {
        if self.stored.contains(key) {
            return Ok(false);
        }
        self.subject.insert(key)?;
        Ok(self.stored.insert(key.into()))
    }

    /// Removes a key. `false` if it was not stored.
    ///
    /// # Errors
    ///
    /// When the filter cannot.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool, SubjectError> {
        if !self.stored.contains(key) {
            return Ok(false);
        }
        self.subject.remove(key)?;
        Ok(self.stored.remove(key))
    }

    /// Looks a key up; a false positive is reported to the filter.
    ///
    /// # Errors
    ///
    /// When the filter failed, or reported a stored key absent.
    pub fn lookup(&mut self, key: &[u8]) -> Result<Answer, SubjectError> {
        if !self.subject.contains(key) {
            if self.stored.contains(key) {
                return Err(SubjectError::FalseNegative { key: key.to_vec() });
            }
            self.counts.absent += 1;
            return Ok(Answer::Negative);
        }
        if self.stored.contains(key) {
            return Ok(Answer::Positive);
        }
        self.counts.absent += 1;
        self.counts.false_positives += 1;
        Ok(Answer::FalsePositive(self.subject.adapt(key)?))
    }

    /// Whether a key is stored.
    #[must_use]
    pub fn stores(&self, key: &[u8]) -> bool {
        self.stored.contains(key)
    }

    /// Returns how many keys are stored.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stored.len()
    }

    /// Whether no key is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stored.is_empty()
    }

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Starts counting again, and returns what was counted.
    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }

    /// The filter's own numbers.
    #[must_use]
    pub fn stats(&self) -> FilterStats {
        self.subject.stats()
    }

    /// Accesses to the remote so far.
    #[must_use]
    pub fn accesses(&self) -> Accesses {
        self.subject.accesses()
    }
}
