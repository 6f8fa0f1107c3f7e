//! The side of the filter.

use std::collections::HashSet;

use super::{Adversary, Answers, Outcome, Rules};
use crate::{Adaptive, AdaptiveError, Remote, RemoteResult};

/// A filter, its remote and the exact set of the stored keys: what an [`Adversary`] plays against.
///
/// The filter starts empty; whatever is stored, the adversary has stored.
#[derive(Debug, Clone)]
pub struct Oracle<F, R> {
    filter: F,
    remote: R,
    rules: Rules,
    stored: HashSet<Vec<u8>>,
}

impl<F: Adaptive, R: Remote> Oracle<F, R> {
    /// An oracle for a filter and a remote without keys.
    #[must_use]
    pub fn new(filter: F, remote: R, rules: Rules) -> Self {
        Self { filter, remote, rules, stored: HashSet::new() }
    }

    /// Lets the adversary play one game to its end, the guess included.
    ///
    /// May be called again: the next game then starts with what this one left behind.
    ///
    /// # Errors
    ///
    /// The first error of the filter or its remote. From then on the adversary got nothing but rejections, so
    /// there is no outcome to report.
    pub fn play(&mut self, adversary: &mut dyn Adversary) -> RemoteResult<Outcome, R> {
        let rules = self.rules;
        let mut game = Game { oracle: self, outcome: Outcome::default(), error: None };
        let guess = adversary.attack(rules, &mut game);
        let Game { mut outcome, error, .. } = game;
        if let Some(error) = error {
            return Err(error);
        }
        outcome.won = self.filter.contains(guess.as_slice()) && !self.stored.contains(&guess);
        Ok(outcome)
    }

    /// The filter as it is now.
    pub fn filter(&self) -> &F {
        &self.filter
    }

    /// The remote as it is now.
    pub fn remote(&self) -> &R {
        &self.remote
    }

    /// The stored keys.
    pub fn stored(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.stored.iter().map(Vec::as_slice)
    }

    /// The filter and the remote, given back.
    #[must_use]
    pub fn into_parts(self) -> (F, R) {
        (self.filter, self.remote)
    }
}

/// One game under way: the only thing that the adversary touches.
struct Game<'o, F, R: Remote> {
    oracle: &'o mut Oracle<F, R>,
    outcome: Outcome,
    /// The first error; nothing is done after it.
    error: Option<AdaptiveError<R::Error>>,
}

impl<F: Adaptive, R: Remote> Game<'_, F, R> {
    /// Keeps the error of a failed operation.
    fn note<T>(&mut self, result: RemoteResult<T, R>) -> Option<T> {
        result.map_err(|error| self.error = Some(error)).ok()
    }
}

impl<F: Adaptive, R: Remote> Answers for Game<'_, F, R> {
    fn lookup(&mut self, key: &[u8]) -> bool {
        if self.error.is_some() {
            return false;
        }
        let present = self.oracle.filter.contains(key);
        let stored = self.oracle.stored.contains(key);
        self.outcome.lookups += 1;
        self.outcome.negative_lookups += u64::from(!stored);
        self.outcome.false_negatives += u64::from(stored && !present);
        if present && !stored {
            self.outcome.false_positives += 1;
            let result = self.oracle.filter.adapt(key, &mut self.oracle.remote);
            self.note(result);
        }
        present
    }

    fn insert(&mut self, key: &[u8]) {
        let full = self.oracle.stored.len() >= self.oracle.rules.capacity;
        if self.error.is_some() || full || self.oracle.stored.contains(key) {
            return;
        }
        let result = self.oracle.filter.insert(key, &mut self.oracle.remote);
        if self.note(result).is_some() {
            self.outcome.insertions += 1;
            self.oracle.stored.insert(key.to_vec());
        }
    }

    fn remove(&mut self, key: &[u8]) {
        if self.error.is_some() || !self.oracle.stored.contains(key) {
            return;
        }
        let result = self.oracle.filter.remove(key, &mut self.oracle.remote);
        if self.note(result).is_some() {
            self.outcome.removals += 1;
            self.oracle.stored.remove(key);
        }
    }
}
