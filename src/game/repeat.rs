//! The adversary that repeats its false positives.

use super::{Adversary, Answers, FreshKeys, Rules};

/// Fills the filter, asks about fresh keys, and asks again about every false positive that it has found; it
/// guesses the key that got through most often.
///
/// A filter that does not adapt accepts such a key every time.
#[derive(Debug, Clone)]
pub struct RepeatFalsePositives {
    seed: u64,
    lookups: usize,
}

impl RepeatFalsePositives {
    /// Plays with the keys of this seed and spends that many look-ups.
    #[must_use]
    pub fn new(seed: u64, lookups: usize) -> Self {
        Self { seed, lookups }
    }
}

impl Adversary for RepeatFalsePositives {
    fn name(&self) -> &'static str {
        "repeat-false-positives"
    }

    fn attack(&mut self, rules: Rules, oracle: &mut dyn Answers) -> Vec<u8> {
        let mut keys = FreshKeys::new(self.seed);
        keys.by_ref().take(rules.capacity).for_each(|key| oracle.insert(&key));
        // The false positives found so far, with how often each got through. Every second look-up goes to them
        // in turn, the others look for more.
        let mut found: Vec<([u8; 8], u64)> = Vec::new();
        let mut turn = 0;
        for lookup in 0..self.lookups {
            if lookup % 2 == 1 && !found.is_empty() {
                turn = (turn + 1) % found.len();
                let (key, hits) = &mut found[turn];
                *hits += u64::from(oracle.lookup(key));
            } else {
                let key = keys.next().unwrap_or_default();
                if oracle.lookup(&key) {
                    found.push((key, 1));
                }
            }
        }
        let best = found.iter().max_by_key(|(_, hits)| hits).map(|&(key, _)| key);
        best.or_else(|| keys.next()).unwrap_or_default().to_vec()
    }
}
