//! The adversary that never looks anything up.

use super::{Adversary, Answers, FreshKeys, Rules};

/// Fills the filter and guesses blindly: it wins with the static false-positive rate, which every filter has.
///
/// The measure for all the others: one that wins more often has learned something.
#[derive(Debug, Clone)]
pub struct SingleQuery {
    seed: u64,
}

impl SingleQuery {
    /// Plays with the keys of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }
}

impl Adversary for SingleQuery {
    fn name(&self) -> &'static str {
        "single-query"
    }

    fn attack(&mut self, rules: Rules, oracle: &mut dyn Answers) -> Vec<u8> {
        let mut keys = FreshKeys::new(self.seed);
        keys.by_ref().take(rules.capacity).for_each(|key| oracle.insert(&key));
        keys.next().unwrap_or_default().to_vec()
    }
}
