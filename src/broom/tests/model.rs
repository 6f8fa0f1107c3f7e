//! Random operations against an exact set, on tables so small that collisions, full sections, stuck frontiers,
//! growth and failing remotes happen all the time.
//!
//! Catches: a lost key, a fingerprint that is a prefix of another, a key that its remote list does not hold, a
//! repaired false positive that comes back while both hash functions live, an operation that fails half way.
use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::super::builder::Plan;
use super::super::filter::BroomFilter;
use super::super::fingerprint::Overflow;
use super::filter;
use crate::testing::Random;
use crate::{Adaptation, Adaptive, AdaptiveError, Change, Filter, MemoryRemote, Remote, Xxh3};

/// A remote that fails at its n-th access from now, if it is told to.
#[derive(Default)]
struct Faulty {
    remote: MemoryRemote,
    accesses: u32,
    fails_at: Option<u32>,
}

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("told to fail")]
struct Fault;

impl Faulty {
    fn access(&mut self) -> Result<(), Fault> {
        self.accesses += 1;
        if self.fails_at == Some(self.accesses) { Err(Fault) } else { Ok(()) }
    }

    fn arm(&mut self, fails_at: Option<u32>) {
        (self.accesses, self.fails_at) = (0, fails_at);
    }
}

impl Remote for Faulty {
    type Error = Fault;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), Fault> {
        self.access()?;
        self.remote.read(address, visit).map_err(|_| Fault)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Fault> {
        self.access()?;
        // A change that names a missing entry is a bug of the filter, not a fault.
        self.remote.apply(changes).unwrap();
        Ok(())
    }

    fn scan(
        &mut self,
        visit: &mut dyn FnMut(u64, &[u8]) -> std::ops::ControlFlow<()>,
    ) -> Result<(), Self::Error> {
        self.access()?;
        self.remote.scan(visit).map_err(|_| Fault)
    }
}

/// What an operation that failed must leave as it was: lists, answers, frontier, adaptivity bits, ghosts.
type Picture = (BTreeMap<u64, Vec<Vec<u8>>>, Vec<bool>, (u64, u64), usize, usize);

/// A filter beside what it should be.
struct Pair {
    filter: BroomFilter<Xxh3>,
    remote: Faulty,
    stored: BTreeSet<u64>,
    /// Repaired false positives: query and stored key, with the functions that both had.
    repaired: HashSet<(u64, Vec<u8>, u64, u64)>,
    returned: u64,
    most_accesses: u32,
    most_overflow: usize,
}

impl Pair {
    fn new(plan: Plan, capacity: usize, max_capacity: usize, seed: u64) -> Self {
        let filter = filter(plan, capacity, max_capacity, seed);
        let (remote, stored, repaired) = Default::default();
        Self { filter, remote, stored, repaired, returned: 0, most_accesses: 0, most_overflow: 0 }
    }

    /// Whether the remote failed.
    fn insert(&mut self, key: u64) -> bool {
        let new = !self.stored.contains(&key);
        match self.filter.insert(&key, &mut self.remote) {
            Ok(inserted) => {
                assert_eq!(inserted, new);
                self.stored.insert(key);
                false
            }
            Err(AdaptiveError::Full(full)) => {
                assert!(
                    new && full.len == self.stored.len() && self.filter.capacity == self.filter.max_capacity
                );
                false
            }
            Err(error) => error == AdaptiveError::Remote(Fault) || panic!("{error}"),
        }
    }

    /// Whether the remote failed.
    fn remove(&mut self, key: u64) -> bool {
        match self.filter.remove(&key, &mut self.remote) {
            Ok(removed) => {
                assert_eq!(removed, self.stored.remove(&key));
                false
            }
            Err(error) => error == AdaptiveError::Remote(Fault) || panic!("{error}"),
        }
    }

    /// Whether the remote failed.
    fn query(&mut self, key: u64) -> bool {
        if !self.filter.contains(&key) || self.stored.contains(&key) {
            return false;
        }
        let collision = self.filter.collision(&key.to_le_bytes(), &mut self.remote.remote).unwrap();
        let (query, _, stored_key, stored) = collision;
        let pair = (key, stored_key, query.function, stored.function);
        self.returned += u64::from(self.repaired.contains(&pair));
        self.remote.accesses = 0;
        match self.filter.adapt(&key, &mut self.remote) {
            Ok(adaptation) => {
                assert!(matches!(adaptation, Adaptation::Fixed { slots: 1.. }), "{adaptation:?}");
                assert!(!self.filter.contains(&key));
                self.repaired.insert(pair);
                self.most_accesses = self.most_accesses.max(self.remote.accesses);
                false
            }
            Err(error) => error == AdaptiveError::Remote(Fault) || panic!("{error}"),
        }
    }

    /// Everything that must hold after every step.
    fn check(&mut self, universe: u64) {
        let (filter, stored) = (&self.filter, &self.stored);
        self.most_overflow = self.most_overflow.max(filter.levels().overflow);
        filter.verify().unwrap();
        assert_eq!((filter.len(), self.remote.remote.len()), (stored.len(), stored.len()));
        assert!(stored.iter().all(|key| filter.contains(key)));
        // Every key is listed at its home, and no key matches more than one fingerprint on a level.
        for (address, key) in self.remote.remote.iter() {
            assert_eq!(filter.local.fingerprint(filter.digest(key)).quotient(), address);
        }
        for key in 0..universe {
            let fingerprint = filter.local.fingerprint(filter.digest(&key.to_le_bytes()));
            let primary = filter.local.primary.count_matches(fingerprint.baseline, fingerprint.tail);
            let beyond = match &filter.local.overflow {
                Overflow::Secondary(secondary) => {
                    let baseline = secondary.baseline(fingerprint.baseline);
                    secondary.level.count_matches(baseline, fingerprint.tail)
                }
                // One set of fingerprints is spread over two tables, but a back yard stands for itself.
                Overflow::BackYard(_) => 0,
            };
            assert!(primary + beyond <= 1, "{key} matches {primary} and {beyond} fingerprints");
        }
    }

    /// Content of the remote and answers of the filter.
    fn picture(&self, universe: u64) -> Picture {
        let mut lists: BTreeMap<u64, Vec<Vec<u8>>> = BTreeMap::new();
        for (address, key) in self.remote.remote.iter() {
            lists.entry(address).or_default().push(key.to_vec());
        }
        let answers = (0..universe).map(|key| self.filter.contains(&key)).collect();
        let local = &self.filter.local;
        (lists, answers, local.functions.position(), local.adaptivity_bits(), local.ghosts.len())
    }
}

fn drive(plan: Plan, capacity: usize, max_capacity: usize, seed: u64, steps: u64) -> Pair {
    let pair = drive_on(Pair::new(plan, capacity, max_capacity, seed), seed, steps);
    assert_eq!(pair.returned, 0, "repaired false positives came back");
    pair
}

fn drive_on(mut pair: Pair, seed: u64, steps: u64) -> Pair {
    let mut random = Random::new(seed);
    let max_capacity = pair.filter.max_capacity;
    let universe = 4 * max_capacity as u64;
    let mut faults = 0;
    for step in 0..steps {
        let key = random.below(universe);
        let fault = random.one_in(3).then(|| 1 + random.below(8).min(random.below(8)) as u32);
        let before = fault.map(|_| pair.picture(universe));
        pair.remote.arm(fault);
        // Waves of filling and emptying, so that all loads are seen.
        let filling = step / 400 % 3 != 2;
        let failed = match random.below(8) {
            0..=2 if filling => pair.insert(key),
            3 if filling => pair.remove(key),
            0 => pair.insert(key),
            1..=3 => pair.remove(key),
            _ => pair.query(key),
        };
        pair.remote.arm(None);
        if failed {
            faults += 1;
            assert!(before == Some(pair.picture(universe)), "a fault left traces at step {step}");
        }
        pair.check(universe);
    }
    assert!(faults > steps / 100, "{faults} faults");
    assert!(pair.most_accesses <= 2 + 4 * 12, "{} remote accesses in one adaptation", pair.most_accesses);
    pair
}

#[test]
fn small_remainders_keep_all_promises() {
    for (seed, bits, load) in [(1, 3, 0.9), (2, 3, 0.95), (3, 5, 0.9), (4, 3, 0.5)] {
        let plan = Plan { remainder_bits: bits, table_bits: bits, load };
        let pair = drive(plan, 120, 120, seed, 6_000);
        let levels = pair.filter.levels();
        assert!(levels.phase as f64 + levels.frontier > 0.5, "{levels:?}");
        assert!(!pair.repaired.is_empty() && !levels.large_remainders);
    }
}

#[test]
fn the_secondary_level_keeps_all_promises() {
    // Two sections and a bit, so that there are borders that keys cannot cross.
    let plan = Plan { remainder_bits: 3, table_bits: 3, load: 0.95 };
    let mut pair = Pair::new(plan, 2_000, 2_000, 5);
    for key in 0..2_000 {
        assert!(!pair.insert(4 * key));
    }
    let pair = drive_on(pair, 5, 1_200);
    assert_eq!(pair.returned, 0, "repaired false positives came back");
    assert!(pair.most_overflow >= 5, "{}", pair.most_overflow);
}

#[test]
fn without_ghosts_repaired_false_positives_come_back() {
    let plan = Plan { remainder_bits: 3, table_bits: 3, load: 0.9 };
    let returned = (0..4).map(|seed| {
        let mut pair = Pair::new(plan, 120, 120, seed);
        pair.filter.local.switches.ghosts = false;
        drive_on(pair, seed, 4_000).returned
    });
    assert!(returned.sum::<u64>() > 0);
}

#[test]
fn large_remainders_keep_all_promises() {
    for (seed, signature, rest) in [(11, 2, 1), (12, 2, 3), (13, 3, 1)] {
        let plan = Plan { remainder_bits: signature + rest, table_bits: signature, load: 0.6 };
        let pair = drive(plan, 60, 60, seed, 6_000);
        let levels = pair.filter.levels();
        assert!(levels.large_remainders && levels.overflow > 0, "{levels:?}");
        assert!(levels.phase as f64 + levels.frontier > 0.5, "{levels:?}");
    }
}

#[test]
fn growing_filters_keep_all_promises() {
    for seed in 21..24 {
        let plan = Plan { remainder_bits: 3, table_bits: 3, load: 0.9 };
        let pair = drive(plan, 5, 160, seed, 4_000);
        assert_eq!((pair.filter.capacity(), pair.filter.growths), (160, 5));
    }
    let plan = Plan { remainder_bits: 5, table_bits: 2, load: 0.7 };
    assert!(drive(plan, 8, 100, 24, 3_000).filter.growths >= 3);
}

#[test]
fn a_repaired_key_that_comes_back_keeps_its_repairs() {
    // Property 10, for the partner that is removed and inserted again at once.
    let plan = Plan { remainder_bits: 4, table_bits: 4, load: 0.9 };
    let mut filter = filter(plan, 400, 400, 31);
    let mut remote = MemoryRemote::new();
    (0..400_u64).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
    let mut pairs = 0;
    for query in 1000_u64..6000 {
        let Some((x, _, key, y)) = filter.collision(&query.to_le_bytes(), &mut remote) else { continue };
        assert!(filter.adapt(&query, &mut remote).unwrap().is_fixed());
        let same = |f: &BroomFilter<Xxh3>| {
            let now = |key: &[u8]| f.local.fingerprint(f.digest(key)).function;
            now(&query.to_le_bytes()) == x.function && now(&key) == y.function
        };
        if same(&filter) {
            assert!(filter.remove(&key, &mut remote).unwrap());
            assert!(!filter.contains(&query));
            assert!(filter.insert(&key, &mut remote).unwrap());
            assert!(!same(&filter) || !filter.contains(&query), "{query} came back");
            pairs += 1;
        }
    }
    assert!(pairs > 100, "{pairs}");
    filter.verify().unwrap();
}
