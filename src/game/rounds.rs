//! The attack of the lower bound (section 6.1 of the paper).

use super::{Adversary, Answers, FreshKeys, Rules};

/// Fills the filter with random keys and asks about as many random others; then, in rounds, asks again exactly
/// those that were false positives in the round before, until a round has none. It guesses one that survived
/// longest.
///
/// A filter that stores all repairs locally, in little space, must fail here; one that asks a remote need not.
#[derive(Debug, Clone)]
pub struct LowerBoundRounds {
    seed: u64,
    sets: usize,
}

impl LowerBoundRounds {
    /// Rounds after which an attack on one query set is given up. A filter that never adapts would keep it going
    /// forever.
    pub const MAX_ROUNDS: usize = 64;

    /// Plays with the keys of this seed: the attack of the paper on `sets` query sets, one after the other.
    #[must_use]
    pub fn new(seed: u64, sets: usize) -> Self {
        Self { seed, sets }
    }
}

impl Adversary for LowerBoundRounds {
    fn name(&self) -> &'static str {
        "lower-bound-rounds"
    }

    fn attack(&mut self, rules: Rules, oracle: &mut dyn Answers) -> Vec<u8> {
        let mut keys = FreshKeys::new(self.seed);
        keys.by_ref().take(rules.capacity).for_each(|key| oracle.insert(&key));
        let mut best: (usize, Option<[u8; 8]>) = (0, None);
        for _ in 0..self.sets {
            let mut queries: Vec<[u8; 8]> = keys.by_ref().take(rules.capacity).collect();
            // In lexicographic order, as in the proof.
            queries.sort_unstable();
            for round in 1..=Self::MAX_ROUNDS {
                queries.retain(|key| oracle.lookup(key));
                let Some(&survivor) = queries.last() else { break };
                if round >= best.0 {
                    best = (round, Some(survivor));
                }
            }
        }
        best.1.or_else(|| keys.next()).unwrap_or_default().to_vec()
    }
}
