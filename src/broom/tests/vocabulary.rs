//! Builders, equality, and the promises that the compiler checks.
//!
//! Catches: a size that is not the one announced, filters that are equal though they answer differently, a method that
//! one of the hash functions has no use for.
use crate::{
    Adaptive, BroomFilter, BroomFilterBuilder, BuildError, Filter, MemoryRemote, SipHash, Table, Xxh3,
};

#[test]
fn a_broom_filter_can_go_to_other_threads() {
    const fn is_send_and_sync<T: Send + Sync>() {}
    const { is_send_and_sync::<BroomFilter<Xxh3>>() };
    const { is_send_and_sync::<BroomFilter<SipHash>>() };
}

#[test]
fn the_size_is_known_before_building() {
    for capacity in [1, 2, 3, 57, 58, 100, 1_000, 12_345, 100_000] {
        for rate in [0.4, 0.1, 1.0 / 64.0, 1.0 / 256.0, 4e-4, 2.5e-4, 1e-4, 1e-6, 1e-14] {
            for load in [0.01, 0.5, 0.9, 0.95] {
                let builder =
                    BroomFilter::builder().capacity(capacity).false_positive_rate(rate).max_load(load);
                let bits = builder.size_in_bits().unwrap();
                let filter = builder.build().unwrap();
                assert_eq!(bits, filter.stats().bits, "{capacity} keys at {rate}, load {load}");
                assert_eq!(filter.stats().bits, filter.emptied().unwrap().stats().bits);
            }
        }
    }
    for capacity in [1, 40, 57, 1_000, 100_000] {
        for rate in [0.4, 1.0 / 64.0, 1.0 / 256.0, 1e-3, 2e-5] {
            for load in [0.01, 0.9, 0.99] {
                let builder = BroomFilter::builder().capacity(capacity).false_positive_rate(rate);
                let builder = builder.max_load(load).table(Table::Bins);
                let (bits, filter) = (builder.size_in_bits().unwrap(), builder.build().unwrap());
                assert_eq!((bits, filter.table()), (filter.stats().bits, Table::Bins));
                assert_eq!(filter.stats().bits, filter.emptied().unwrap().stats().bits);
            }
        }
    }
    let refused = |builder: BroomFilterBuilder| builder.table(Table::Bins).build().unwrap_err();
    assert_eq!(refused(BroomFilter::builder()), BuildError::ZeroCapacity);
    let builder = BroomFilter::builder().capacity(100).adaptivity_budget(1.0);
    assert!(matches!(refused(builder.clone().false_positive_rate(1e-9)), BuildError::RateOutOfRange { .. }));
    assert!(matches!(refused(builder.max_load(1.0)), BuildError::OutOfRange { name: "max_load", .. }));
    let builder = BroomFilter::builder().capacity(usize::MAX);
    assert_eq!(builder.size_in_bits().unwrap_err(), builder.build().unwrap_err());
    assert!(BroomFilter::builder().size_in_bits().is_err());
}

#[test]
fn equality_is_that_of_parameters_functions_and_contents() {
    equality(Table::Quotient);
    equality(Table::Bins);
    let on = |table| BroomFilter::builder().capacity(9).seed(1_u64).table(table).build().unwrap();
    assert!(on(Table::Quotient) != on(Table::Bins));
}

fn equality(table: Table) {
    let mut remote = MemoryRemote::new();
    let builder = BroomFilter::builder().capacity(100).false_positive_rate(0.1).table(table);
    let empty = builder.clone().seed(1_u64).build().unwrap();
    let mut filter = empty.clone();
    assert!(filter == builder.clone().seed(1_u64).build().unwrap());
    assert!(filter != builder.clone().seed(2_u64).build().unwrap());
    assert!(filter != builder.clone().seed(1_u64).growable().build().unwrap());
    assert!(filter != builder.clone().seed(1_u64).capacity(99).build().unwrap());
    assert!(filter != builder.seed(1_u64).max_load(0.5).build().unwrap());
    (0..100_u64).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
    assert!(filter != empty);
    let same = filter.clone();
    let repaired = (1000_u64..).find(|key| filter.contains(key)).unwrap();
    assert!(filter.adapt(&repaired, &mut remote).unwrap().is_fixed());
    assert!(filter != same, "a repair is content");
    assert!(!filter.contains(&repaired) && same.contains(&repaired));
    // The order in which keys came does not matter where they do not collide.
    let [mut forth, mut back] = [empty.clone(), empty];
    let [mut forth_remote, mut back_remote] = [MemoryRemote::new(), MemoryRemote::new()];
    let mut strangers = Vec::new();
    for key in 0..60_u64 {
        if !forth.contains(&key) {
            assert!(forth.insert(&key, &mut forth_remote).unwrap());
            strangers.push(key);
        }
    }
    strangers.iter().rev().for_each(|key| assert!(back.insert(key, &mut back_remote).unwrap()));
    assert!(strangers.len() > 40 && forth == back);
}

#[test]
fn every_way_to_ask_gives_the_same_answer() {
    [Table::Quotient, Table::Bins].into_iter().for_each(every_way_to_ask);
}

fn every_way_to_ask(table: Table) {
    let mut remote = MemoryRemote::new();
    let builder = BroomFilter::builder().capacity(2_000).false_positive_rate(0.2).hasher::<SipHash>();
    let builder = builder.table(table);
    let mut filter = builder.seed(3_u64).build().unwrap();
    (0..2_000_u64).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
    for key in 2_000..4_000_u64 {
        let _ = filter.adapt(&key, &mut remote).unwrap();
    }
    let keys: Vec<u64> = (0..8_000).collect();
    let mut answers = Vec::new();
    filter.contains_many(&keys, &mut answers);
    for (key, &answer) in keys.iter().zip(&answers) {
        let digest = filter.digest(&key.to_le_bytes());
        assert_eq!((filter.contains(key), filter.contains_digest(digest)), (answer, answer));
    }
    assert!(answers[..2_000].iter().all(|&answer| answer));
    filter.clear(&mut remote).unwrap();
    assert!(filter.is_empty() && remote.is_empty() && !keys.iter().any(|key| filter.contains(key)));
    filter.verify().unwrap();
    filter.verify_remote(&mut remote).unwrap();
}
