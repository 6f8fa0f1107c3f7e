//! The adversary that looks for queries on the crowded side of a change of functions.

use super::{Adversary, Answers, FreshKeys, Rules, Strikes};

/// Collects queries that were false positives, replaces all stored keys by others, and asks again.
///
/// A query that was a false positive once is not repaired against keys that it never met. If all places are equally
/// full, that says nothing of it. But while a filter is on its way from one hash function to the next, some places are
/// fuller than others, and a false positive is more likely to be of such a place: so it is more likely than others to
/// be one again.
#[derive(Debug, Clone)]
pub struct SideInference {
    seed: u64,
    rounds: usize,
    finds: usize,
    once: Strikes,
    twice: Strikes,
}

impl SideInference {
    /// Plays with the keys of this seed: in each of this many rounds it looks for this many false positives, replaces
    /// all keys, and asks about what it has found.
    #[must_use]
    pub fn new(seed: u64, rounds: usize, finds: usize) -> Self {
        Self { seed, rounds, finds, once: Strikes::default(), twice: Strikes::default() }
    }

    /// The look-ups of queries that had been false positives once.
    #[must_use]
    pub fn once(&self) -> Strikes {
        self.once
    }

    /// The look-ups of queries that had been false positives twice, before different keys.
    #[must_use]
    pub fn twice(&self) -> Strikes {
        self.twice
    }

    fn replace(stored: &mut [[u8; 8]], keys: &mut FreshKeys, oracle: &mut dyn Answers) {
        for key in stored {
            oracle.remove(key);
            *key = keys.next().unwrap_or_default();
            oracle.insert(key);
        }
    }
}

impl Adversary for SideInference {
    fn name(&self) -> &'static str {
        "side-inference"
    }

    fn attack(&mut self, rules: Rules, oracle: &mut dyn Answers) -> Vec<u8> {
        let mut keys = FreshKeys::new(self.seed);
        let mut stored: Vec<[u8; 8]> = keys.by_ref().take(rules.capacity).collect();
        stored.iter().for_each(|key| oracle.insert(key));
        (self.once, self.twice) = (Strikes::default(), Strikes::default());
        let mut guess = keys.next().unwrap_or_default();
        // Twenty times as many look-ups as it should take, against filters that have no more false positives.
        let most = (20.0 * self.finds as f64 / rules.rate).min(1e12) as usize;
        for _ in 0..self.rounds {
            let mut found = Vec::new();
            for _ in 0..most {
                if found.len() >= self.finds {
                    break;
                }
                let key = keys.next().unwrap_or_default();
                if oracle.lookup(&key) {
                    found.push(key);
                }
            }
            for strikes in [&mut self.once, &mut self.twice] {
                Self::replace(&mut stored, &mut keys, oracle);
                found.retain(|key| {
                    let hit = oracle.lookup(key);
                    strikes.count(hit);
                    hit
                });
            }
            guess = found.pop().unwrap_or(guess);
        }
        // It was a false positive three times, if there was such a key.
        Self::replace(&mut stored, &mut keys, oracle);
        guess.to_vec()
    }
}
