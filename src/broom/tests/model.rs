//! Random operations against an exact set, on tables so small that collisions, full sections, stuck frontiers,
//! growth and failing remotes happen all the time.
//!
//! Catches: a lost key, a fingerprint that is a prefix of another, a key that its remote list does not hold, a
//! repaired false positive that comes back while both hash functions live, an operation that fails half way.
use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::super::builder::Blueprint;
use super::super::core::Core;
use super::super::on_bins::BroomBins;
use super::super::on_quotients::BroomQuotients;
use super::super::table::BroomTable;
use super::{Error, FaultyRemote, Tested, bins, coarse_bins, filter, large, small};
use crate::testing::{Fault, FaultError, Faults, Faulty, Random};
use crate::{Adaptation, Adaptive, AdaptiveError, Filter, MemoryRemote, Xxh3};

/// Whether the remote failed as it was told to. Anything else, such as a change that names a missing entry, is a bug
/// of the filter.
fn injected(error: &Error) -> bool {
    matches!(error, AdaptiveError::Remote(FaultError::Injected(_))) || panic!("{error}")
}

/// The lists of the remote.
fn lists(remote: &MemoryRemote) -> BTreeMap<u64, Vec<Vec<u8>>> {
    let mut lists: BTreeMap<u64, Vec<Vec<u8>>> = BTreeMap::new();
    for (address, key) in remote.iter() {
        lists.entry(address).or_default().push(key.to_vec());
    }
    lists
}

/// A filter beside what it should be.
struct Pair<G: BroomTable> {
    filter: Core<G, Xxh3>,
    remote: FaultyRemote,
    stored: BTreeSet<u64>,
    /// Repaired false positives: query and stored key, with the functions that both had.
    repaired: HashSet<(u64, Vec<u8>, u64, u64)>,
    returned: u64,
    most_elsewhere: usize,
}

impl<G: BroomTable> Pair<G> {
    fn new(blueprint: Blueprint<G::Cut>, capacity: usize, seed: u64) -> Self {
        Self {
            filter: filter(blueprint, capacity, seed),
            remote: Faulty::new(MemoryRemote::new(), Faults::none()),
            stored: BTreeSet::new(),
            repaired: HashSet::new(),
            returned: 0,
            most_elsewhere: 0,
        }
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
                assert!(new && full.len == self.stored.len() && !self.filter.growable);
                false
            }
            Err(error) => injected(&error),
        }
    }

    /// Whether the remote failed.
    fn remove(&mut self, key: u64) -> bool {
        match self.filter.remove(&key, &mut self.remote) {
            Ok(removed) => {
                assert_eq!(removed, self.stored.remove(&key));
                false
            }
            Err(error) => injected(&error),
        }
    }

    /// Whether the remote failed.
    fn query(&mut self, key: u64) -> bool {
        if !self.filter.contains(&key) || self.stored.contains(&key) {
            return false;
        }
        let collision = self.filter.collision(&key.to_le_bytes(), &mut self.remote.inner).unwrap();
        let (query, _, stored_key, stored) = collision;
        let pair = (key, stored_key, query.function, stored.function);
        self.returned += u64::from(self.repaired.contains(&pair));
        match self.filter.adapt(&key, &mut self.remote) {
            Ok(adaptation) => {
                assert!(matches!(adaptation, Adaptation::Fixed { slots: 1.. }), "{adaptation:?}");
                assert!(!self.filter.contains(&key));
                self.repaired.insert(pair);
                false
            }
            Err(error) => injected(&error),
        }
    }

    /// Everything that must hold after every step.
    fn check(&mut self, universe: u64) {
        let (filter, stored) = (&self.filter, &self.stored);
        self.most_elsewhere = self.most_elsewhere.max(filter.levels().elsewhere);
        filter.verify().unwrap();
        filter.verify_remote(&mut self.remote).unwrap();
        assert_eq!((filter.len(), self.remote.inner.len()), (stored.len(), stored.len()));
        assert!(stored.iter().all(|key| filter.contains(key)));
        for key in 0..universe {
            let fingerprint = filter.local.fingerprint(filter.digest(&key.to_le_bytes()));
            let matches = filter.local.table.count_matches(&fingerprint);
            // A back yard stands for itself.
            let most = 1 + usize::from(filter.local.remainders.rest_bits > 0);
            assert!(matches <= most, "{key} matches {matches} fingerprints");
            let found = filter.local.table.find(&fingerprint).is_some();
            assert_eq!((filter.contains(&key), matches > 0), (found, found), "{key}");
        }
    }
}

fn drive<G: BroomTable>(blueprint: Blueprint<G::Cut>, capacity: usize, seed: u64, steps: u64) -> Pair<G> {
    let pair = drive_on(Pair::new(blueprint, capacity, seed), seed, steps);
    assert_eq!(pair.returned, 0, "repaired false positives came back");
    pair
}

fn drive_on<G: BroomTable>(mut pair: Pair<G>, seed: u64, steps: u64) -> Pair<G> {
    let mut random = Random::new(seed);
    let universe = 4 * pair.filter.capacity as u64;
    let mut faults = 0;
    for step in 0..steps {
        let key = random.below(universe);
        let before = (pair.filter.clone(), lists(&pair.remote.inner));
        if random.one_in(3) {
            let accesses = random.below(8).min(random.below(8));
            pair.remote.faults.light_fuse(accesses, Fault::FailBefore);
        }
        // Waves of filling and emptying, so that all loads are seen.
        let filling = step / 400 % 3 != 2;
        let failed = match random.below(8) {
            0..=2 if filling => pair.insert(key),
            3 if filling => pair.remove(key),
            0 => pair.insert(key),
            1..=3 => pair.remove(key),
            _ => pair.query(key),
        };
        pair.remote.faults.put_out();
        if failed {
            faults += 1;
            assert!(before.0 == pair.filter, "a fault left traces in the filter at step {step}");
            assert!(before.1 == lists(&pair.remote.inner), "a fault left traces at step {step}");
        }
        pair.check(universe);
    }
    assert!(faults > steps / 100, "{faults} faults");
    pair
}

#[test]
fn small_remainders_keep_all_promises() {
    for (seed, bits, load) in [(1, 3, 0.9), (2, 3, 0.95), (3, 5, 0.9), (4, 3, 0.5)] {
        let pair: Pair<BroomQuotients> = drive(small(bits, load), 120, seed, 6_000);
        let levels = pair.filter.levels();
        assert!(levels.phase as f64 + levels.frontier > 0.5, "{levels:?}");
        assert!(!pair.repaired.is_empty() && !levels.large_remainders);
    }
}

#[test]
fn the_secondary_level_keeps_all_promises() {
    // Two sections and a bit, so that there are borders that keys cannot cross.
    let mut pair: Pair<BroomQuotients> = Pair::new(small(3, 0.95), 2_000, 5);
    for key in 0..2_000 {
        assert!(!pair.insert(4 * key));
    }
    let pair = drive_on(pair, 5, 1_200);
    assert_eq!(pair.returned, 0, "repaired false positives came back");
    assert!(pair.most_elsewhere >= 5, "{}", pair.most_elsewhere);
}

#[test]
fn keys_of_one_quotient_on_both_levels_keep_all_promises() {
    for (seed, blueprint) in [(8, small(3, 0.9)), (9, large(2, 2, 0.6))] {
        let mut pair: Pair<BroomQuotients> = Pair::new(blueprint, 120, seed);
        pair.filter.local.table.crowd();
        let pair = drive_on(pair, seed, 4_000);
        assert_eq!(pair.returned, 0, "repaired false positives came back");
        assert!(pair.most_elsewhere >= 8, "{}", pair.most_elsewhere);
    }
}

#[test]
fn within_the_budget_no_repaired_false_positive_ever_comes_back() {
    fn check<G: BroomTable>(blueprint: Blueprint<G::Cut>, seed: u64) {
        let pair: Pair<G> = drive(Blueprint { budget: 8.0, ..blueprint }, 120, seed, 3_000);
        assert_eq!(pair.filter.local.functions.position(), (0, 0), "nothing was carried");
        assert!(pair.repaired.len() > 5, "{}", pair.repaired.len());
    }
    check::<BroomQuotients>(small(3, 0.9), 6);
    check::<BroomQuotients>(large(2, 2, 0.6), 7);
    check::<BroomBins>(bins(3, 0.9), 6);
    check::<BroomBins>(coarse_bins(3, 0.9), 7);
}

#[test]
fn without_ghosts_repaired_false_positives_come_back() {
    fn returned<G: BroomTable>(blueprint: Blueprint<G::Cut>) -> u64 {
        let returned = (0..4).map(|seed| {
            let mut pair: Pair<G> = Pair::new(Blueprint { budget: 8.0, ..blueprint }, 120, seed);
            pair.filter.local.switches.ghosts = false;
            drive_on(pair, seed, 4_000).returned
        });
        returned.sum()
    }
    assert!(returned::<BroomQuotients>(small(3, 0.9)) > 0);
    assert!(returned::<BroomBins>(bins(3, 0.9)) > 0);
}

#[test]
fn large_remainders_keep_all_promises() {
    for (seed, signature, rest) in [(11, 2, 1), (12, 2, 3), (13, 3, 1)] {
        let pair: Pair<BroomQuotients> = drive(large(signature, rest, 0.6), 60, seed, 6_000);
        let levels = pair.filter.levels();
        assert!(levels.large_remainders && levels.elsewhere > 0, "{levels:?}");
        assert!(levels.phase as f64 + levels.frontier > 0.5, "{levels:?}");
    }
}

#[test]
fn bins_keep_all_promises() {
    // Few bins, of 64 and of 16 classes; and some with so many keys that a third of them lies beyond the lines.
    for (seed, blueprint, capacity) in [
        (21, bins(3, 0.9), 120),
        (22, bins(2, 0.95), 40),
        (23, coarse_bins(4, 0.9), 120),
        (24, bins(4, 0.5), 200),
        (25, bins(3, 1.5), 140),
        (26, coarse_bins(5, 1.6), 170),
    ] {
        let pair: Pair<BroomBins> = drive(blueprint, capacity, seed, 2_500);
        let levels = pair.filter.levels();
        assert!(levels.phase as f64 + levels.frontier > 0.3, "{levels:?}");
        assert!(!pair.repaired.is_empty());
        assert!(blueprint.load < 1.0 || pair.most_elsewhere >= 15, "{}", pair.most_elsewhere);
    }
}

#[test]
fn a_repaired_key_that_comes_back_keeps_its_repairs() {
    comes_back::<BroomQuotients>(small(4, 0.9));
    comes_back::<BroomBins>(bins(4, 0.9));
}

/// Property 10, for the partner that is removed and inserted again at once.
fn comes_back<G: BroomTable>(blueprint: Blueprint<G::Cut>) {
    let mut filter: Core<G, Xxh3> = filter(blueprint, 400, 31);
    let mut remote = MemoryRemote::new();
    (0..400_u64).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
    let mut pairs = 0;
    for query in 1000_u64..6000 {
        let Some((x, _, key, y)) = filter.collision(&query.to_le_bytes(), &mut remote) else { continue };
        assert!(filter.adapt(&query, &mut remote).unwrap().is_fixed());
        let same = |f: &Core<G, Xxh3>| {
            let now = |key: &[u8]| f.fingerprint_of(key).function;
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
