//! The attack on filters whose stored keys have few states (003, Theorems 9 and 10).

use besom::game::{Adversary, Answers, FreshKeys, Rules};

/// Asks about a fresh key several times in a row; one that gets through every time has collided with a stored key
/// in every state that this can be in, and will do so forever.
///
/// A stored key of a cyclic filter has 2^s states (Theorem 9), one of a swapping filter b (Theorem 10). A key
/// collides in all of them with probability ε^states, so the attack takes about states/ε^states look-ups: it is
/// a matter of small fingerprints.
#[derive(Debug, Clone)]
pub struct PersistentQuery {
    seed: u64,
    tries: u32,
    candidates: u64,
}

impl PersistentQuery {
    /// Plays with the keys of this seed: asks about each of up to `candidates` keys up to `tries` times.
    #[must_use]
    pub fn new(seed: u64, tries: u32, candidates: u64) -> Self {
        Self { seed, tries, candidates }
    }

    /// As many candidates as the theorems take, `constant`/ε^states, where a fingerprint has ε.
    #[must_use]
    pub fn candidates(constant: f64, fingerprint_rate: f64, states: u32) -> u64 {
        (constant / fingerprint_rate.powi(states as i32)).ceil().min(1e15) as u64
    }
}

impl Adversary for PersistentQuery {
    fn name(&self) -> &'static str {
        "persistent-query"
    }

    fn attack(&mut self, rules: Rules, oracle: &mut dyn Answers) -> Vec<u8> {
        let mut keys = FreshKeys::new(self.seed);
        keys.by_ref().take(rules.capacity).for_each(|key| oracle.insert(&key));
        let mut best: (u32, [u8; 8]) = (0, [0; 8]);
        for _ in 0..self.candidates {
            let key = keys.next().unwrap_or_default();
            let hits = (0..self.tries).take_while(|_| oracle.lookup(&key)).count() as u32;
            if hits == self.tries {
                return key.to_vec();
            }
            if hits >= best.0 {
                best = (hits, key);
            }
        }
        best.1.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts the keys of one residue at most `patience` times each.
    struct Patient {
        patience: u32,
        asked: std::collections::HashMap<Vec<u8>, u32>,
    }

    impl Answers for Patient {
        fn lookup(&mut self, key: &[u8]) -> bool {
            let asked = self.asked.entry(key.to_vec()).or_default();
            *asked += 1;
            key[0].is_multiple_of(16) && *asked <= self.patience
        }

        fn insert(&mut self, _: &[u8]) {}

        fn remove(&mut self, _: &[u8]) {}
    }

    #[test]
    fn it_stops_at_the_first_key_that_always_gets_through() {
        let rules = Rules { capacity: 0, rate: 0.1 };
        let mut oracle = Patient { patience: 4, asked: Default::default() };
        let guess = PersistentQuery::new(1, 4, 10_000).attack(rules, &mut oracle);
        assert_eq!(oracle.asked[&guess], 4);
        assert_eq!(oracle.asked.values().filter(|&&asked| asked > 1).count(), 1);
        let mut oracle = Patient { patience: 3, asked: Default::default() };
        PersistentQuery::new(1, 4, 1000).attack(rules, &mut oracle);
        assert_eq!(oracle.asked.len(), 1000);
    }
}
