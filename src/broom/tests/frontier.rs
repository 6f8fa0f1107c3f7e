//! The frontier and the levels where there is no room, and taking back what was done.
//!
//! Catches: keys that are lost when the frontier gets stuck or an operation fails, a secondary level that is filled
//! beyond its limit, ghosts that the frontier passes for nothing.
use super::super::elsewhere::Elsewhere;
use super::super::filter::BroomFilter;
use super::super::fingerprint::Site;
use super::super::frontier::CARRIED;
use super::super::functions::Which;
use super::super::transaction::atomically;
use super::{filter, large, small};
use crate::bits::BitString;
use crate::testing::Random;
use crate::{Adaptive, AdaptiveError, Filter, FullError, MemoryRemote};

/// Fills a filter beyond its capacity, until most keys find no place. Returns the keys that did.
fn overfill(filter: &mut BroomFilter, remote: &mut MemoryRemote) -> Vec<u64> {
    filter.capacity = usize::MAX;
    let (mut stored, mut refused) = (Vec::new(), 0);
    for key in 0..20_000 {
        let before = filter.clone();
        match filter.insert(&key, remote) {
            Ok(inserted) => {
                assert!(inserted);
                stored.push(key);
            }
            Err(error) => {
                assert!(matches!(error, AdaptiveError::Full(full) if full.len == stored.len()), "{error}");
                assert!(*filter == before);
                refused += 1;
            }
        }
        if refused > 400 {
            return stored;
        }
    }
    panic!("the filter takes every key: {} of them", stored.len());
}

fn check(filter: &BroomFilter, remote: &mut MemoryRemote, stored: &[u64]) {
    filter.verify().unwrap();
    filter.verify_remote(remote).unwrap();
    assert_eq!(filter.len(), stored.len());
    assert!(stored.iter().all(|key| filter.contains(key)));
}

#[test]
fn a_secondary_level_without_room_refuses() {
    let (mut filter, mut remote) = (filter(small(3, 0.95), 2_000, 41), MemoryRemote::new());
    let stored = overfill(&mut filter, &mut remote);
    let Elsewhere::Secondary(secondary) = &filter.local.elsewhere else { panic!("remainders are small") };
    let slots = secondary.level.table.slots() as f64;
    assert_eq!(filter.local.elsewhere.len(), (0.9 * slots).ceil() as usize);
    check(&filter, &mut remote, &stored);
    // A place that becomes free can be taken again.
    let elsewhere = stored.iter().find(|key| {
        let fingerprint = filter.fingerprint_of(&key.to_le_bytes());
        filter.local.find(&fingerprint).unwrap().site() == Site::Secondary
    });
    let key = *elsewhere.unwrap();
    assert!(filter.remove(&key, &mut remote).unwrap() && filter.insert(&key, &mut remote).unwrap());
    check(&filter, &mut remote, &stored);
}

#[test]
fn a_stuck_frontier_waits_and_loses_nothing() {
    let (mut filter, mut remote) = (filter(small(3, 0.95), 2_000, 42), MemoryRemote::new());
    let stored = overfill(&mut filter, &mut remote);
    let mut stuck = 0;
    for query in 1_000_000..1_000_600_u64 {
        let position = filter.local.functions.position();
        if !filter.adapt(&query, &mut remote).unwrap().is_fixed() {
            continue;
        }
        assert!(!filter.contains(&query));
        if filter.local.functions.position() == position {
            stuck += 1;
            check(&filter, &mut remote, &stored);
        }
    }
    assert!(stuck > 10, "{stuck}");
    check(&filter, &mut remote, &stored);
    // With room it goes on.
    for key in &stored[..stored.len() / 4] {
        assert!(filter.remove(key, &mut remote).unwrap());
    }
    let position = filter.local.functions.position();
    for query in 2_000_000..2_000_400_u64 {
        let _ = filter.adapt(&query, &mut remote).unwrap();
    }
    assert!(filter.local.functions.position() > position);
    check(&filter, &mut remote, &stored[stored.len() / 4..]);
}

#[test]
fn ghosts_count_as_carried() {
    let mut filter = filter(small(4, 0.9), 1_000, 43);
    let old = filter.local.functions.number(Which::Old);
    let first = filter.local.functions.step(0).unwrap();
    for bits in 0..=CARRIED as u128 {
        filter.local.ghosts.add(first, old, BitString::new(bits, 5));
    }
    let mut remote = MemoryRemote::new();
    let advanced = atomically(&mut filter.local, &mut remote, |steps| {
        let carried = steps.advance()?;
        Ok(carried)
    });
    let carried = advanced.unwrap();
    assert_eq!((carried, filter.local.ghosts.len()), (CARRIED + 1, 0));
    assert_eq!(filter.local.functions.position(), (0, 1), "that was enough for one adaptation");
}

#[test]
fn an_operation_that_is_taken_back_leaves_every_key_in_its_place_of_the_back_yard() {
    // Crowded buckets: a key that came back into another place than its own would leave none for the next one.
    for seed in 44..50 {
        let (mut filter, mut remote) = (filter(large(2, 2, 0.9), 600, seed), MemoryRemote::new());
        let stored = overfill(&mut filter, &mut remote);
        let mut random = Random::new(seed);
        let mut taken = 0;
        for _ in 0..200 {
            let before = filter.clone();
            let result = atomically(&mut filter.local, &mut remote, |steps| {
                for _ in 0..6 {
                    let quotients = steps.local.elsewhere.quotients();
                    let list = steps.list(quotients[random.below(quotients.len() as u64) as usize])?;
                    for (rank, stored) in list.iter().enumerate().rev() {
                        if stored.spot.site() != Site::Primary {
                            steps.take(stored, rank);
                            taken += 1;
                        }
                    }
                }
                Err::<(), _>(FullError { len: 0, capacity: 0 }.into())
            });
            assert!(result.is_err() && filter == before);
        }
        assert!(taken > 1_000, "{taken}");
        check(&filter, &mut remote, &stored);
    }
}
