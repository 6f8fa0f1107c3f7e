//! The adversary that collects what keys have in common under all hash functions.

use super::{Adversary, Answers, FreshKeys, Rules, Strikes};

/// Lets a set of keys grow by its own false positives, through many hash functions.
///
/// It stores nothing but its collection and looks for false positives. Each is like one of the collection in all that
/// decides which function a key uses, and joins it. Then it fills the filter up with strangers and asks until the
/// functions should have changed, removes the strangers and begins again. If anything that places a key survives a
/// change of functions, the collection ends up sharing it: then any further key that shares it is a false positive far
/// more often than it should be.
///
/// It begins with one key, and keeps every eighth find for the end: then it asks about these again and again, with some
/// work in between so that their repairs are forgotten.
#[derive(Debug, Clone)]
pub struct Gathering {
    seed: u64,
    /// The look-ups that are left.
    lookups: u64,
    passes: usize,
    strikes: Strikes,
    collected: usize,
}

/// One find of this many is kept for the end.
const KEPT: usize = 8;

/// False positives after which all hash functions of a full filter should be others, per key.
const TURN: f64 = 0.5;

impl Gathering {
    /// Plays with the keys of this seed. Collects with at most this many look-ups, and then asks this many times about
    /// what shares the collection's traits.
    #[must_use]
    pub fn new(seed: u64, lookups: u64, passes: usize) -> Self {
        Self { seed, lookups, passes, strikes: Strikes::default(), collected: 0 }
    }

    /// How often it asked about its finds in the end, and how many of these look-ups got through.
    #[must_use]
    pub fn strikes(&self) -> Strikes {
        self.strikes
    }

    /// How many keys it has collected in the last game.
    #[must_use]
    pub fn collected(&self) -> usize {
        self.collected
    }

    /// False positives among fresh keys, up to this many, as long as there are look-ups.
    fn find(&mut self, most: usize, keys: &mut FreshKeys, oracle: &mut dyn Answers) -> Vec<[u8; 8]> {
        let mut found = Vec::new();
        while found.len() < most && self.lookups > 0 {
            self.lookups -= 1;
            let key = keys.next().unwrap_or_default();
            if oracle.lookup(&key) {
                found.push(key);
            }
        }
        found
    }

    /// Fills the filter up with strangers, asks until the functions have changed, and takes the strangers out again.
    fn turn(&mut self, rules: Rules, stored: usize, keys: &mut FreshKeys, oracle: &mut dyn Answers) {
        let strangers: Vec<[u8; 8]> = keys.by_ref().take(rules.capacity.saturating_sub(stored)).collect();
        strangers.iter().for_each(|key| oracle.insert(key));
        self.find((TURN * rules.capacity as f64) as usize, keys, oracle);
        strangers.iter().for_each(|key| oracle.remove(key));
    }
}

impl Adversary for Gathering {
    fn name(&self) -> &'static str {
        "gathering"
    }

    fn attack(&mut self, rules: Rules, oracle: &mut dyn Answers) -> Vec<u8> {
        let mut keys = FreshKeys::new(self.seed);
        let mut collection: Vec<[u8; 8]> = keys.by_ref().take(1).collect();
        let mut mates: Vec<[u8; 8]> = Vec::new();
        collection.iter().for_each(|key| oracle.insert(key));
        while collection.len() < rules.capacity && self.lookups > 0 {
            // Half as many as there are: a key that was hit seldom is again, before the functions change.
            let found = self.find(collection.len().div_ceil(2), &mut keys, oracle);
            self.turn(rules, collection.len(), &mut keys, oracle);
            for (number, key) in found.into_iter().enumerate() {
                if number % KEPT == KEPT - 1 || collection.len() == rules.capacity {
                    mates.push(key);
                } else {
                    oracle.insert(&key);
                    collection.push(key);
                }
            }
        }
        self.collected = collection.len();
        keys.by_ref().take(rules.capacity - collection.len()).for_each(|key| oracle.insert(&key));
        self.strikes = Strikes::default();
        let guess = mates.pop().or_else(|| keys.next()).unwrap_or_default();
        for _ in 0..self.passes {
            self.lookups = (20.0 * rules.capacity as f64 / rules.rate).min(1e12) as u64;
            self.find((TURN * rules.capacity as f64) as usize, &mut keys, oracle);
            mates.iter().for_each(|key| self.strikes.count(oracle.lookup(key)));
        }
        guess.to_vec()
    }
}
