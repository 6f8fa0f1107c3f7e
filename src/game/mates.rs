//! The adversaries that use what false positives have in common.

use super::{Adversary, Answers, FreshKeys, Rules, Strikes};

/// Gathers false positives of the keys that it has stored, removes all of these, inserts one half of what it has
/// gathered and asks about the other half.
///
/// Two queries that hit the same stored key share its fingerprint, so they share each other's, although they were never
/// compared: the stored key has learned to tell them from itself, not from each other. Nobody seems to have published
/// this. It works against every filter that extends fingerprints just as far as a repair needs, ghosts or not.
#[derive(Debug, Clone)]
pub struct QueryMates {
    seed: u64,
    stored: usize,
    pool: usize,
    lookups: u64,
    reversed: bool,
    strikes: Strikes,
}

impl QueryMates {
    /// Plays with the keys of this seed: stores `stored` keys, or as many as there may be, and gathers up to `pool`
    /// false positives with at most this many look-ups.
    #[must_use]
    pub fn new(seed: u64, stored: usize, pool: usize, lookups: u64) -> Self {
        Self { seed, stored, pool, lookups, reversed: false, strikes: Strikes::default() }
    }

    /// The same with the roles of query and stored key exchanged: inserts all that it has gathered and asks about the
    /// keys that were stored before.
    #[must_use]
    pub fn reversed(mut self) -> Self {
        self.reversed = true;
        self
    }

    /// How often it asked about mates in the last game, and how many of them got through. The guess, which is one more
    /// mate, is not among them.
    #[must_use]
    pub fn strikes(&self) -> Strikes {
        self.strikes
    }
}

impl Adversary for QueryMates {
    fn name(&self) -> &'static str {
        if self.reversed { "reversed-mates" } else { "query-mates" }
    }

    fn attack(&mut self, rules: Rules, oracle: &mut dyn Answers) -> Vec<u8> {
        let mut keys = FreshKeys::new(self.seed);
        let stored: Vec<[u8; 8]> = keys.by_ref().take(self.stored.min(rules.capacity)).collect();
        stored.iter().for_each(|key| oracle.insert(key));
        let mut pool = Vec::with_capacity(self.pool);
        for _ in 0..self.lookups {
            if pool.len() >= self.pool {
                break;
            }
            let key = keys.next().unwrap_or_default();
            if oracle.lookup(&key) {
                pool.push(key);
            }
        }
        stored.iter().for_each(|key| oracle.remove(key));
        keys.shuffle(&mut pool);
        let (inserted, asked) =
            if self.reversed { (&pool[..], &stored[..]) } else { pool.split_at(pool.len() / 2) };
        inserted.iter().for_each(|key| oracle.insert(key));
        self.strikes = Strikes::default();
        let Some((guess, asked)) = asked.split_last() else {
            return keys.next().unwrap_or_default().to_vec();
        };
        asked.iter().for_each(|key| self.strikes.count(oracle.lookup(key)));
        guess.to_vec()
    }
}
