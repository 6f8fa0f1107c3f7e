//! The attack by deletions (section 4.3 of the paper).

use super::{Adversary, Answers, FreshKeys, Rules};

/// Finds a false positive x, then the stored key y that it collides with, by removing and inserting stored keys
/// until x gets through again; from then on each removal and insertion of y opens the door for x.
///
/// It works against every filter in which the removal of a key forgets the repairs that were made to it.
#[derive(Debug, Clone)]
pub struct DeletionTiming {
    seed: u64,
    repetitions: usize,
}

impl DeletionTiming {
    /// Plays with the keys of this seed. Once it has found its pair, it uses it that many times before the guess.
    #[must_use]
    pub fn new(seed: u64, repetitions: usize) -> Self {
        Self { seed, repetitions }
    }

    /// A false positive among fresh keys. Gives up after twenty times as many look-ups as one should take.
    fn find(keys: &mut FreshKeys, rules: Rules, oracle: &mut dyn Answers) -> Option<[u8; 8]> {
        let lookups = (20.0 / rules.rate).min(1e9) as usize;
        keys.take(lookups).find(|key| oracle.lookup(key))
    }
}

impl Adversary for DeletionTiming {
    fn name(&self) -> &'static str {
        "deletion-timing"
    }

    fn attack(&mut self, rules: Rules, oracle: &mut dyn Answers) -> Vec<u8> {
        let mut keys = FreshKeys::new(self.seed);
        let mut stored: Vec<[u8; 8]> = keys.by_ref().take(rules.capacity).collect();
        stored.iter().for_each(|key| oracle.insert(key));
        let Some(victim) = Self::find(&mut keys, rules, oracle) else {
            return keys.next().unwrap_or_default().to_vec();
        };
        keys.shuffle(&mut stored);
        let renew = |oracle: &mut dyn Answers, key: &[u8]| {
            oracle.remove(key);
            oracle.insert(key);
        };
        let partner = stored.iter().find(|&key| {
            renew(oracle, key);
            oracle.lookup(&victim)
        });
        if let Some(partner) = partner {
            for _ in 0..self.repetitions {
                renew(oracle, partner);
                oracle.lookup(&victim);
            }
            renew(oracle, partner);
        }
        victim.to_vec()
    }
}
