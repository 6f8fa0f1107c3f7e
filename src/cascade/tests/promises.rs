//! Catches: a size other than the one told beforehand, an absurd size that is worked on before it is refused, filters
//! that cannot go to another thread, equality that is none.

use std::time::{Duration, Instant};

use super::*;

fn is_as_large_as_told<F: LevelFilter>() {
    for capacity in [1, 7, 64, 1_000, 5_000, 70_000] {
        for rate in [0.5, 0.1, 1.0 / 256.0, 1e-4, 1e-9] {
            for levels in 1..=4 {
                let builder =
                    Cascade::<F>::builder().capacity(capacity).false_positive_rate(rate).levels(levels);
                let told = builder.size_in_bits().unwrap();
                assert_eq!(builder.build().unwrap().stats().bits, told, "{capacity} keys at {rate}");
            }
        }
    }
}

#[test]
fn the_size_is_known_before_building() {
    is_as_large_as_told::<BloomFilter>();
    is_as_large_as_told::<BlockedBloomFilter>();
    is_as_large_as_told::<QuotientFilter>();
}

/// A trillion keys take terabytes. That is to be seen at once, not after gigabytes of deeper levels were written.
fn refuses_at_once<F: LevelFilter + std::fmt::Debug>() {
    let start = Instant::now();
    let builder = Cascade::<F>::builder().capacity(1_000_000_000_000).false_positive_rate(1e-4);
    let told = builder.size_in_bits().unwrap();
    assert_eq!(builder.build().unwrap_err(), BuildError::OutOfMemory { bytes: told / 8 });
    assert!(start.elapsed() < Duration::from_millis(500), "took {:?}", start.elapsed());
}

#[test]
fn absurd_capacities_are_refused_at_once() {
    refuses_at_once::<BloomFilter>();
    refuses_at_once::<BlockedBloomFilter>();
    refuses_at_once::<QuotientFilter>();
}

#[test]
fn cascades_go_to_other_threads() {
    fn sendable<T: Send + Sync + 'static>() {}
    sendable::<AdaptiveBloomFilter>();
    sendable::<Cascade<QuotientFilter, crate::SipHash>>();
    sendable::<CascadeBuilder<BlockedBloomFilter>>();
}

#[test]
fn equality_is_that_of_parameters_hash_functions_keys_and_repairs() {
    let build = |seed: u64, capacity| {
        AdaptiveBloomFilter::builder().capacity(capacity).false_positive_rate(0.2).seed(seed).build().unwrap()
    };
    let (mut left, mut right) = (build(1, 100), build(1, 100));
    assert!(left == right && left != build(2, 100) && left != build(1, 101));
    let (mut remote, mut other) = (MemoryRemote::new(), MemoryRemote::new());
    (0..100_u64).for_each(|key| assert!(left.insert(&key, &mut remote).unwrap()));
    (0..100_u64).rev().for_each(|key| assert!(right.insert(&key, &mut other).unwrap()));
    assert!(left == right);
    let strangers: Vec<u64> = (1_000..).filter(|key| left.contains(key)).take(3).collect();
    strangers.iter().for_each(|key| assert!(left.adapt(key, &mut remote).unwrap().is_fixed()));
    assert!(left != right);
    strangers.iter().rev().for_each(|key| assert!(right.adapt(key, &mut other).unwrap().is_fixed()));
    assert!(left == right && left == left.clone());
}
