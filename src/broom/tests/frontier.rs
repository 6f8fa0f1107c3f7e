//! The frontier and the levels where there is no room, and taking back what was done.
//!
//! Catches: keys that are refused or lost where sections, the secondary level or the back yard are full, a frontier
//! that waits, ghosts that it passes for nothing, an operation that is taken back to another state than the one before.
use super::super::builder::Blueprint;
use super::super::core::Core;
use super::super::elsewhere::Elsewhere;
use super::super::functions::Which;
use super::super::on_bins::BroomBins;
use super::super::on_quotients::{BroomQuotients, Site};
use super::super::table::BroomTable;
use super::super::transaction::atomically;
use super::{bins, coarse_bins, filter, large, small};
use crate::bins::testing::fault;
use crate::bits::BitString;
use crate::testing::Random;
use crate::{Adaptive, AdaptiveError, Filter, FullError, KeyHasher, MemoryRemote, Xxh3};

type OnQuotients = Core<BroomQuotients, Xxh3>;

/// Fills a filter far beyond its load.
fn overfill<G: BroomTable>(filter: &mut Core<G, Xxh3>, remote: &mut MemoryRemote) -> Vec<u64> {
    let keys = 3 * filter.capacity as u64;
    filter.capacity = usize::MAX;
    (0..keys).for_each(|key| assert!(filter.insert(&key, remote).unwrap()));
    (0..keys).collect()
}

fn check<G: BroomTable>(filter: &Core<G, Xxh3>, remote: &mut MemoryRemote, stored: &[u64]) {
    filter.verify().unwrap();
    filter.verify_remote(remote).unwrap();
    assert_eq!(filter.len(), stored.len());
    assert!(stored.iter().all(|key| filter.contains(key)));
}

/// Both ways to store keys that the primary table cannot take.
fn both(capacity: usize, seed: u64) -> [OnQuotients; 2] {
    [filter(small(3, 0.95), capacity, seed), filter(large(2, 2, 0.9), capacity, seed)]
}

#[test]
fn levels_without_room_take_more_memory() {
    for mut filter in both(2_000, 41) {
        let mut remote = MemoryRemote::new();
        let (before, elsewhere) = (filter.stats().bits, filter.local.table.elsewhere.memory_bits());
        let stored = overfill(&mut filter, &mut remote);
        assert!(filter.levels().elsewhere > 2_000, "{:?}", filter.levels());
        if let Elsewhere::Secondary(secondary) = &filter.local.table.elsewhere {
            let table = &secondary.level.table;
            assert!(table.len() as u64 <= table.slots() * 91 / 100, "{} of {}", table.len(), table.slots());
        }
        assert!(filter.local.table.elsewhere.memory_bits() > 2 * elsewhere && filter.stats().bits > before);
        check(&filter, &mut remote, &stored);
    }
}

#[test]
fn the_frontier_never_waits() {
    fn check_on<G: BroomTable>(mut filter: Core<G, Xxh3>) {
        let mut remote = MemoryRemote::new();
        let stored = overfill(&mut filter, &mut remote);
        let first = filter.local.functions.position().0;
        while filter.local.functions.position().0 < first + 2 {
            let position = filter.local.functions.position();
            filter.push_frontier(&mut remote);
            assert!(filter.local.functions.position() > position);
        }
        check(&filter, &mut remote, &stored);
    }
    both(1_000, 42).into_iter().for_each(check_on);
    check_on::<BroomBins>(filter(bins(3, 0.95), 1_000, 42));
}

#[test]
fn bins_without_room_take_more_memory() {
    let (mut filter, mut remote) = (filter::<BroomBins>(bins(4, 0.95), 2_000, 41), MemoryRemote::new());
    let before = filter.stats().bits;
    let stored = overfill(&mut filter, &mut remote);
    assert!(filter.levels().elsewhere > 2_000 && filter.stats().bits > before, "{:?}", filter.levels());
    check(&filter, &mut remote, &stored);
}

#[test]
fn ghosts_count_as_carried() {
    passed_ghosts::<BroomQuotients>(small(4, 0.9));
    passed_ghosts::<BroomBins>(bins(4, 0.9));
}

fn passed_ghosts<G: BroomTable>(blueprint: Blueprint<G::Cut>) {
    let mut filter: Core<G, Xxh3> = filter(blueprint, 1_000, 43);
    let old = filter.local.functions.number(Which::Old);
    let (first, most) = (filter.local.functions.step(0), 8);
    for bits in 0..=most as u128 {
        filter.local.add_ghost(first, old, BitString::new(bits, 5));
    }
    assert_eq!((filter.stats().ghosts, filter.stats().ghost_bits), (most + 1, 5 * (most + 1)));
    let mut remote = MemoryRemote::new();
    let carried = atomically(&mut filter.local, &mut remote, |steps| {
        let carried = steps.advance(most)?;
        Ok(carried)
    });
    let carried = carried.unwrap();
    assert_eq!((carried, filter.stats().ghosts), (most + 1, 0));
    assert_eq!(filter.local.functions.position(), (0, 1), "that was enough for one adaptation");
}

/// Where all keys are.
fn spots(filter: &OnQuotients, keys: &[u64]) -> Vec<Site> {
    let spot = |key: &u64| filter.local.table.find(&filter.fingerprint_of(&key.to_le_bytes())).unwrap();
    keys.iter().map(|key| BroomQuotients::site(spot(key))).collect()
}

#[test]
fn an_operation_that_is_taken_back_leaves_every_key_in_its_place_of_the_back_yard() {
    // Crowded buckets: a key that came back into another place than its own would leave none for the next one. And the
    // back yard grows on the way, after some keys have left it and before others do.
    let mut grown = 0;
    for seed in 44..50 {
        let (mut filter, mut remote): (OnQuotients, _) =
            (filter(large(2, 2, 0.9), 600, seed), MemoryRemote::new());
        let stored = overfill(&mut filter, &mut remote);
        let mut random = Random::new(seed);
        let mut taken = 0;
        for _ in 0..200 {
            let (before, places) = (filter.clone(), spots(&filter, &stored));
            let memory = filter.local.table.elsewhere.memory_bits();
            let result = atomically(&mut filter.local, &mut remote, |steps| {
                for _ in 0..6 {
                    let quotients = steps.local.table.elsewhere.quotients();
                    let list = steps.list(quotients[random.below(quotients.len() as u64) as usize])?;
                    for stored in list.iter().rev() {
                        if BroomQuotients::site(stored.spot) != Site::Primary {
                            steps.take(stored);
                            taken += 1;
                        }
                    }
                    for _ in 0..random.below(60) {
                        let key = random.next().to_le_bytes();
                        let fingerprint =
                            steps.local.fingerprint(steps.local.functions.hasher().digest(&key));
                        steps.place(&fingerprint, &key)?;
                    }
                }
                grown += u32::from(steps.local.table.elsewhere.memory_bits() > memory);
                Err::<(), _>(FullError { len: 0, capacity: 0 }.into())
            });
            assert!(result.is_err() && filter == before);
            assert_eq!(spots(&filter, &stored), places);
        }
        assert!(taken > 1_000, "{taken}");
        check(&filter, &mut remote, &stored);
    }
    assert!(grown > 10, "the back yard grew {grown} times");
}

#[test]
fn within_the_budget_nothing_is_carried_and_nothing_forgotten() {
    fn check<G: BroomTable>(mut blueprint: Blueprint<G::Cut>) {
        blueprint.budget = 2.0;
        let (mut filter, mut remote): (Core<G, Xxh3>, _) =
            (filter(blueprint, 2_000, 51), MemoryRemote::new());
        (0..2_000_u64).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
        let mut repaired = Vec::new();
        for query in 10_000_u64.. {
            if filter.stats().adaptivity_bits + 60 > filter.levels().budget {
                break;
            }
            assert_eq!(filter.local.functions.position(), (0, 0));
            if filter.adapt(&query, &mut remote).unwrap().is_fixed() {
                repaired.push(query);
            }
        }
        assert!(repaired.len() > 350, "{}", repaired.len());
        assert!(!repaired.iter().any(|query| filter.contains(query)));
        // Beyond the budget it moves with every repair.
        let mut query = 100_000_000_u64;
        while filter.local.functions.position().0 < 2 {
            query += 1;
            let over = filter.local.adaptivity_bits() > filter.local.budget;
            let position = filter.local.functions.position();
            let fixed = filter.adapt(&query, &mut remote).unwrap().is_fixed();
            assert!(!over || !fixed || filter.local.functions.position() > position);
        }
        assert!(filter.local.adaptivity_bits() < filter.local.budget + 100);
        filter.verify().unwrap();
        filter.verify_remote(&mut remote).unwrap();
    }
    check::<BroomQuotients>(small(4, 0.9));
    check::<BroomQuotients>(large(3, 2, 0.9));
    check::<BroomBins>(bins(4, 0.9));
    check::<BroomBins>(coarse_bins(6, 0.9));
}

#[test]
fn an_operation_that_is_taken_back_leaves_bins_as_they_were() {
    // Many keys come and go beyond the lines, where the second level would move to more memory on the way.
    for (seed, blueprint) in [(44, bins(3, 1.6)), (45, coarse_bins(4, 1.8)), (46, bins(8, 1.4))] {
        let (mut filter, mut remote) = (filter::<BroomBins>(blueprint, 500, seed), MemoryRemote::new());
        filter.capacity = usize::MAX;
        let mut stored: Vec<u64> = (0..500).collect();
        stored.iter().for_each(|key| assert!(filter.insert(key, &mut remote).unwrap()));
        let mut random = Random::new(seed);
        for round in 0..60 {
            let before = filter.clone();
            let result = atomically(&mut filter.local, &mut remote, |steps| {
                for _ in 0..8 {
                    let key = stored[random.below(stored.len() as u64) as usize].to_le_bytes();
                    let digest = steps.local.functions.hasher().digest(&key);
                    let quotient = steps.local.fingerprint(digest).quotient();
                    let list = steps.list(quotient)?;
                    for stored in list.iter().rev() {
                        steps.take(stored);
                    }
                    for _ in 0..random.below(60) {
                        let key = random.next().to_le_bytes();
                        let digest = steps.local.functions.hasher().digest(&key);
                        steps.place(&steps.local.fingerprint(digest), &key)?;
                    }
                    steps.advance(6)?;
                }
                Err::<(), _>(FullError { len: 0, capacity: 0 }.into())
            });
            assert!(result.is_err() && filter == before, "round {round}");
            let key = random.next();
            assert!(filter.insert(&key, &mut remote).unwrap());
            stored.push(key);
        }
        check(&filter, &mut remote, &stored);
    }
}

#[test]
fn without_memory_beyond_the_lines_nothing_changes() {
    let (mut filter, mut remote) = (filter::<BroomBins>(bins(3, 1.5), 400, 53), MemoryRemote::new());
    filter.capacity = usize::MAX;
    (0..400_u64).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
    let (mut stored, mut random, mut refused) = ((0..400).collect::<Vec<u64>>(), Random::new(53), [0; 2]);
    for key in 1_000..2_500_u64 {
        let before = (filter.clone(), remote.len());
        fault::after(Some(random.below(3) as usize));
        let result = match key % 2 {
            0 => filter.insert(&key, &mut remote),
            _ => filter.adapt(&key, &mut remote).map(|_| false),
        };
        fault::after(None);
        match result {
            Ok(true) => stored.push(key),
            Ok(false) => {}
            Err(error) => {
                assert!(matches!(error, AdaptiveError::OutOfMemory { .. }), "{error}");
                assert!(filter == before.0 && remote.len() == before.1);
                refused[(key % 2) as usize] += 1;
            }
        }
    }
    assert!(refused.iter().all(|&refused| refused > 20), "{refused:?}");
    check(&filter, &mut remote, &stored);
}

#[test]
fn a_filter_says_where_its_keys_are() {
    let mut filter: OnQuotients = filter(large(2, 2, 0.9), 500, 52);
    let mut remote = MemoryRemote::new();
    (0..500_u64).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
    let Elsewhere::BackYard(yard) = &filter.local.table.elsewhere else { panic!("remainders are large") };
    let levels = filter.levels();
    assert_eq!((levels.primary + levels.elsewhere, levels.elsewhere), (500, yard.len()));
}
