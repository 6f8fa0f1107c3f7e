//! A filter in a few lines for the tests of adversaries: every stored key is in one of k states, in each of which
//! it has another hash.

use std::collections::HashMap;

use besom::game::{Adversary, Answers, FreshKeys, Rules};
use besom::{KeyHasher, Xxh3};

/// How a key that collided changes its state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Moves {
    /// To the next of k, in a circle.
    InTurn,
    /// To another of k.
    AtRandom,
    /// To one that it never was in.
    Endlessly,
}

pub(super) struct Model {
    hash: Xxh3,
    rules: Rules,
    states: u64,
    moves: Moves,
    random: FreshKeys,
    /// By state and hash in it: the stored keys.
    places: HashMap<(u64, u64), Vec<[u8; 8]>>,
    stored: HashMap<[u8; 8], u64>,
    /// All states that some key was ever in.
    used: u64,
}

impl Model {
    pub(super) fn new(seed: u64, rules: Rules, states: u64, moves: Moves) -> Self {
        let hash = Xxh3::with_seed((seed ^ 0xabcd).into());
        let random = FreshKeys::new(seed ^ 0x1234);
        Self { hash, rules, states, moves, random, places: HashMap::new(), stored: HashMap::new(), used: 1 }
    }

    pub(super) fn play(mut self, adversary: &mut dyn Adversary) -> bool {
        let guess = adversary.attack(self.rules, &mut self);
        self.lookup(&guess)
    }

    fn hash(&self, key: &[u8], state: u64) -> (u64, u64) {
        let range = (self.rules.capacity as f64 / self.rules.rate) as u64;
        let digest = self.hash.rehash(self.hash.digest(key), state);
        (state, ((u128::from(digest.hi) * u128::from(range)) >> 64) as u64)
    }

    fn next_state(&mut self, state: u64) -> u64 {
        match self.moves {
            Moves::InTurn => (state + 1) % self.states,
            Moves::AtRandom => (state + 1 + self.random.below(self.states as usize - 1) as u64) % self.states,
            Moves::Endlessly => state + 1,
        }
    }
}

impl Answers for Model {
    fn lookup(&mut self, key: &[u8]) -> bool {
        let collided: Vec<[u8; 8]> =
            (0..self.used).filter_map(|state| self.places.remove(&self.hash(key, state))).flatten().collect();
        for key in &collided {
            let state = self.next_state(self.stored[key]);
            self.used = self.used.max(state + 1);
            self.stored.insert(*key, state);
            let place = self.hash(key, state);
            self.places.entry(place).or_default().push(*key);
        }
        !collided.is_empty()
    }

    fn insert(&mut self, key: &[u8]) {
        let key: [u8; 8] = key.try_into().expect("adversaries have keys of 8 bytes");
        self.stored.insert(key, 0);
        let place = self.hash(&key, 0);
        self.places.entry(place).or_default().push(key);
    }

    fn remove(&mut self, _: &[u8]) {}
}
