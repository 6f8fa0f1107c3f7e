//! Catches: an adversary that cannot win where it should, an oracle that does not adapt, tells too much or loses
//! an error. The filters here are models: one that never adapts, one that whitelists, one that fails.
use std::collections::{HashMap, HashSet};

use super::*;
use crate::{
    Adaptation, Adaptive, AdaptiveError, BuildError, Digest, Filter, FilterStats, FullError, IntegerHash,
    InvariantError, Key, KeyHasher, MemoryRemote, Remote, Seed, Settled, TelescopingFilter, Xxh3,
};

/// Counts fingerprints of a few bits per key; knows repaired keys by name if it is told to.
struct Model {
    hash: Xxh3,
    buckets: u64,
    fingerprints: HashMap<u64, usize>,
    repaired: HashSet<Vec<u8>>,
    forgets: Forgets,
    capacity: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Forgets {
    Everything,
    OnRemoval,
    Nothing,
}

impl Model {
    fn new(seed: u64, rules: Rules, forgets: Forgets) -> Self {
        let buckets = (rules.capacity as f64 / rules.rate) as u64;
        let hash = Xxh3::with_seed(seed.into());
        let (fingerprints, repaired) = Default::default();
        Self { hash, buckets, fingerprints, repaired, forgets, capacity: rules.capacity }
    }

    fn fingerprint(&self, digest: Digest) -> u64 {
        ((u128::from(digest.hi) * u128::from(self.buckets)) >> 64) as u64
    }
}

impl Filter for Model {
    type Hasher = Xxh3;
    type Place = Digest;

    fn hasher(&self) -> &Xxh3 {
        &self.hash
    }

    fn place(&self, digest: Digest) -> Digest {
        digest
    }

    fn contains_at(&self, digest: Digest, _: impl FnOnce() -> Digest) -> bool {
        self.fingerprints.contains_key(&self.fingerprint(digest))
    }

    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        let repaired = key.with_bytes(|bytes| self.repaired.contains(bytes));
        !repaired && self.contains_digest(self.hash.digest_key(key))
    }

    fn len(&self) -> usize {
        self.fingerprints.values().sum()
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn false_positive_rate(&self) -> f64 {
        self.capacity as f64 / self.buckets as f64
    }

    fn stats(&self) -> FilterStats {
        FilterStats::default()
    }

    fn verify(&self) -> Result<(), InvariantError> {
        Ok(())
    }
}

type Answer<T, R> = Result<T, AdaptiveError<<R as Remote>::Error>>;

impl Adaptive for Model {
    fn insert_bytes<R: Remote>(&mut self, key: &[u8], _: &mut R) -> Answer<bool, R> {
        if self.len() == self.capacity {
            return Err(FullError { len: self.len(), capacity: self.capacity }.into());
        }
        let fingerprint = self.fingerprint(self.hash.digest(key));
        *self.fingerprints.entry(fingerprint).or_default() += 1;
        Ok(true)
    }

    fn remove_bytes<R: Remote>(&mut self, key: &[u8], _: &mut R) -> Answer<bool, R> {
        let fingerprint = self.fingerprint(self.hash.digest(key));
        let count = self.fingerprints.get_mut(&fingerprint).expect("the oracle removes stored keys only");
        *count -= 1;
        if *count == 0 {
            self.fingerprints.remove(&fingerprint);
        }
        if self.forgets == Forgets::OnRemoval {
            let (hash, buckets) = (self.hash.clone(), self.buckets);
            let of = |key: &Vec<u8>| ((u128::from(hash.digest(key).hi) * u128::from(buckets)) >> 64) as u64;
            self.repaired.retain(|key| of(key) != fingerprint);
        }
        Ok(true)
    }

    fn adapt_bytes<R: Remote>(&mut self, key: &[u8], _: &mut R) -> Answer<Adaptation, R> {
        if self.forgets == Forgets::Everything {
            return Ok(Adaptation::Unfixable);
        }
        self.repaired.insert(key.to_vec());
        Ok(Adaptation::Fixed { slots: 1 })
    }

    fn clear<R: Remote>(&mut self, _: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        unreachable!("nobody clears a model")
    }

    fn verify_remote<R: Remote>(&self, _: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        Ok(())
    }

    fn settle<R: Remote>(
        &mut self,
        _: std::ops::RangeInclusive<u64>,
        _: crate::Authority,
        _: &mut R,
    ) -> Result<Settled, AdaptiveError<R::Error>> {
        Ok(Settled::Agreed)
    }

    fn emptied(&self) -> Result<Self, BuildError> {
        unreachable!("nobody empties a model")
    }
}

const RULES: Rules = Rules { capacity: 256, rate: 1.0 / 64.0 };
const GAMES: u64 = 200;

fn wins(forgets: Forgets, adversary: fn(u64) -> Box<dyn Adversary>) -> (u64, f64) {
    let (mut wins, mut fps, mut negatives) = (0, 0, 0);
    for seed in 0..GAMES {
        let mut oracle = Oracle::new(Model::new(seed, RULES, forgets), MemoryRemote::new(), RULES);
        let outcome = oracle.play(adversary(seed ^ 0x1234_5678).as_mut()).unwrap();
        assert_eq!(outcome.false_negatives, 0);
        assert!(oracle.stored().len() <= RULES.capacity);
        wins += u64::from(outcome.won);
        fps += outcome.false_positives;
        negatives += outcome.negative_lookups;
    }
    (wins, fps as f64 / negatives.max(1) as f64)
}

/// More wins than 200 games at ε = 1/64 have with a probability of 1e-4: mean 3.1.
const TOO_MANY: u64 = 12;

#[test]
fn a_filter_that_never_adapts_loses_to_everyone_who_looks() {
    let (single, _) = wins(Forgets::Everything, |seed| Box::new(SingleQuery::new(seed)));
    assert!((1..TOO_MANY).contains(&single), "{single} wins");
    let (repeat, rate) = wins(Forgets::Everything, |seed| Box::new(RepeatFalsePositives::new(seed, 1024)));
    assert_eq!(repeat, GAMES);
    assert!(rate > 0.4, "{rate}");
    let (rounds, _) = wins(Forgets::Everything, |seed| Box::new(LowerBoundRounds::new(seed, 1)));
    assert!(rounds > GAMES * 9 / 10, "{rounds} wins");
}

#[test]
fn a_filter_that_forgets_on_removal_loses_to_the_timing_attack_alone() {
    let (repeat, rate) = wins(Forgets::OnRemoval, |seed| Box::new(RepeatFalsePositives::new(seed, 1024)));
    assert_eq!(repeat, 0);
    assert!(rate < 1.0 / 64.0, "{rate}");
    let (timing, _) = wins(Forgets::OnRemoval, |seed| Box::new(DeletionTiming::new(seed, 16)));
    assert!(timing > GAMES * 9 / 10, "{timing} wins");
}

#[test]
fn a_filter_that_forgets_nothing_loses_to_nobody() {
    let adversaries: [fn(u64) -> Box<dyn Adversary>; 3] = [
        |seed| Box::new(RepeatFalsePositives::new(seed, 1024)),
        |seed| Box::new(LowerBoundRounds::new(seed, 2)),
        |seed| Box::new(DeletionTiming::new(seed, 16)),
    ];
    for adversary in adversaries {
        assert_eq!(wins(Forgets::Nothing, adversary).0, 0, "{}", adversary(0).name());
    }
}

#[test]
fn the_first_error_ends_the_game() {
    let small = Rules { capacity: 8, ..RULES };
    let mut oracle = Oracle::new(Model::new(1, small, Forgets::Nothing), MemoryRemote::new(), RULES);
    let error = oracle.play(&mut RepeatFalsePositives::new(1, 100)).unwrap_err();
    assert_eq!(error, AdaptiveError::Full(FullError { len: 8, capacity: 8 }));
    assert_eq!(oracle.filter().len(), 8);
    assert!(oracle.remote().is_empty());
    let (filter, _) = oracle.into_parts();
    assert_eq!(filter.capacity(), 8);
}

#[test]
fn the_same_seed_plays_the_same_game() {
    let play = |seed| {
        let mut oracle = Oracle::new(Model::new(5, RULES, Forgets::Nothing), MemoryRemote::new(), RULES);
        oracle.play(&mut DeletionTiming::new(seed, 4)).unwrap()
    };
    assert_eq!(play(3), play(3));
    assert_ne!(play(3), play(4));
}

/// A hash function that keeps differences: two keys collide if their neighbours do.
#[derive(Debug, Clone, PartialEq)]
struct Linear(Seed, u64);

impl KeyHasher for Linear {
    fn with_seed(seed: Seed) -> Self {
        Self(seed, Xxh3::with_seed(seed).digest(b"factor").hi | 1)
    }

    fn seed(&self) -> Seed {
        self.0
    }

    fn digest(&self, bytes: &[u8]) -> Digest {
        let key = bytes.try_into().map_or(0, u64::from_le_bytes);
        Digest { hi: key.wrapping_mul(self.1), lo: key }
    }

    fn rehash(&self, digest: Digest, counter: u64) -> Digest {
        Xxh3::with_seed(self.0).rehash(digest, counter)
    }
}

/// Stores numbers in a row or in a stride, and asks for the neighbours of every false positive, whose partners'
/// neighbours are stored: an algebraic hash function betrays them.
struct Neighbours {
    stride: u64,
    lookups: u64,
    strikes: Strikes,
}

impl Adversary for Neighbours {
    fn name(&self) -> &'static str {
        "neighbours"
    }

    fn attack(&mut self, rules: Rules, oracle: &mut dyn Answers) -> Vec<u8> {
        let key = |number: u64| number.wrapping_mul(self.stride).to_le_bytes();
        (0..rules.capacity as u64).for_each(|number| oracle.insert(&key(number)));
        let mut fresh = FreshKeys::new(self.stride);
        for _ in 0..self.lookups {
            let found = u64::from_le_bytes(fresh.next().unwrap_or_default());
            if oracle.lookup(&found.to_le_bytes()) {
                for step in 1..=4 {
                    let away = self.stride.wrapping_mul(step);
                    for next in [found.wrapping_add(away), found.wrapping_sub(away), found ^ away] {
                        self.strikes.count(oracle.lookup(&next.to_le_bytes()));
                    }
                }
            }
        }
        fresh.next().unwrap_or_default().to_vec()
    }
}

fn against<H: KeyHasher>(adversary: &mut dyn Adversary, rules: Rules, seed: u64) -> Outcome {
    let builder = TelescopingFilter::builder().capacity(rules.capacity).false_positive_rate(rules.rate);
    let filter = builder.seed(seed).hasher::<H>().build().unwrap();
    let mut oracle = Oracle::new(filter, MemoryRemote::new(), rules);
    let outcome = oracle.play(adversary).unwrap();
    assert_eq!(outcome.false_negatives, 0);
    outcome
}

/// How often the neighbours of false positives are some, in units of the rate.
fn neighbours<H: KeyHasher>() -> f64 {
    let rules = Rules { capacity: 1 << 12, rate: 1.0 / 64.0 };
    let mut strikes = Strikes::default();
    for (seed, stride) in [1, 1 << 20, 1 << 44, 10_007].into_iter().enumerate() {
        let mut adversary = Neighbours { stride, lookups: 1 << 16, strikes };
        against::<H>(&mut adversary, rules, seed as u64 + 1);
        strikes = adversary.strikes;
    }
    println!("{} of {} neighbours", strikes.hits, strikes.asked);
    strikes.rate() / rules.rate
}

/// About 40,000 neighbours, 600 of them by chance: 1.2 is five standard deviations.
#[test]
fn neighbours_of_false_positives_are_strangers_to_every_hash_function() {
    for (what, rate) in [("XXH3", neighbours::<Xxh3>()), ("integers", neighbours::<IntegerHash>())] {
        assert!(rate < 1.2, "{what}: {rate} times the rate");
    }
    let linear = neighbours::<Linear>();
    assert!(linear > 5.0, "{linear}: nobody could lose");
}

#[test]
fn the_hash_of_integers_loses_to_nobody_who_sees_answers_alone() {
    let adversaries: [fn(u64) -> Box<dyn Adversary>; 3] = [
        |seed| Box::new(SingleQuery::new(seed)),
        |seed| Box::new(RepeatFalsePositives::new(seed, 1024)),
        |seed| Box::new(LowerBoundRounds::new(seed, 2)),
    ];
    for adversary in adversaries {
        let won = |&seed: &u64| against::<IntegerHash>(adversary(seed).as_mut(), RULES, seed).won;
        let wins = (0..GAMES).filter(won).count() as u64;
        assert!(wins < TOO_MANY, "{}: {wins} wins", adversary(0).name());
    }
}
