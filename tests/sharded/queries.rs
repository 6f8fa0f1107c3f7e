//! Catches: a batch that answers otherwise than single queries, shards that share their keys unevenly, a rate that suffers.

use besom::bloom::{BlockedBloomFilter, BloomFilter};
use besom::cuckoo::CuckooFilter;
use besom::quotient::QuotientFilter;
use besom::sharded::ShardedError;
use besom::tinyset::TinySet;
use besom::{BuildError, Filter, FullError, Insert, Sharded, TelescopingFilter};

fn quotient(shards: usize, capacity: usize) -> Sharded<QuotientFilter> {
    Sharded::build(shards, capacity, |capacity, _| {
        QuotientFilter::builder().capacity(capacity).seed(1_u64).build()
    })
    .unwrap()
}

#[test]
fn batches_answer_like_single_queries() {
    for shards in [1, 2, 7, 64, 1000] {
        let filter = quotient(shards, 20_000);
        let keys: Vec<u64> = (0..20_000).collect();
        for key in &keys[..5_000] {
            filter.insert(key).unwrap();
        }
        // Some may be taken for others.
        let fresh = filter.insert_many(&keys[5_000..]).unwrap();
        assert!((14_800..=15_000).contains(&fresh), "{fresh}");
        assert_eq!(filter.len(), 20_000);
        filter.verify().unwrap();
        let queries: Vec<u64> = (0..50_000).map(|key| key * 7).collect();
        let mut answers = Vec::new();
        for len in [0, 1, 5, 63, 64, 65, 1023, 1024, 1025, 50_000] {
            filter.contains_many(&queries[..len], &mut answers);
            assert!(answers.iter().copied().eq(queries[..len].iter().map(|key| filter.contains(key))));
        }
        filter.contains_many(&keys, &mut answers);
        assert!(answers.iter().all(|&answer| answer), "a key was lost");
        assert!(keys.iter().all(|key| filter.remove(key).unwrap()));
        assert!(filter.is_empty());
    }
}

#[test]
fn every_shard_gets_its_share_and_no_key_is_refused() {
    for (shards, capacity) in [(2, 10), (16, 100), (100, 100_000), (4096, 50_000)] {
        let filter = quotient(shards, capacity);
        for key in 0..capacity as u64 {
            filter.insert(&key).unwrap();
        }
        let largest = (0..shards).map(|shard| filter.look::<_, FullError>(shard, Filter::len).unwrap()).max();
        let mean = capacity as f64 / shards as f64;
        assert!((largest.unwrap() as f64) <= mean + 6.0 * mean.sqrt() + 8.0);
        assert!(filter.capacity() as f64 <= capacity as f64 + shards as f64 * (6.0 * mean.sqrt() + 9.0));
    }
}

/// The share of strangers that are taken for members.
fn rate(filter: &impl Filter) -> f64 {
    let strangers = 400_000;
    (0..strangers).filter(|key| filter.contains(&(key + (1_u64 << 40)))).count() as f64 / strangers as f64
}

fn rate_is_kept<F: Insert>(build: impl Fn(usize) -> Result<F, BuildError>) {
    let mut alone = build(20_000).unwrap();
    let shared = Sharded::build(32, 20_000, |capacity, _| build(capacity)).unwrap();
    for key in 0..20_000_u64 {
        alone.insert(&key).unwrap();
        shared.insert(&key).unwrap();
    }
    let (alone, shared) = (rate(&alone), rate(&shared));
    // Shards have a little more room, so their rate may be lower.
    assert!(shared < 1.1 * alone && shared > 0.2 * alone, "{shared} instead of {alone}");
}

#[test]
fn the_rate_is_that_of_the_filter_alone() {
    let rate = 0.01;
    rate_is_kept(|keys| {
        QuotientFilter::builder().capacity(keys).false_positive_rate(rate).seed(1_u64).build()
    });
    rate_is_kept(|keys| BloomFilter::builder().capacity(keys).false_positive_rate(rate).seed(1_u64).build());
    rate_is_kept(|keys| {
        BlockedBloomFilter::builder().capacity(keys).false_positive_rate(rate).seed(1_u64).build()
    });
    rate_is_kept(|keys| TinySet::builder().capacity(keys).false_positive_rate(rate).seed(1_u64).build());
    rate_is_kept(|keys| CuckooFilter::builder().capacity(keys).false_positive_rate(rate).seed(1_u64).build());
}

#[test]
fn what_cannot_be_built_is_refused() {
    let build = |shards, capacity| {
        Sharded::build(shards, capacity, |capacity, seed| {
            TelescopingFilter::builder().capacity(capacity).seed(seed).build()
        })
        .map(drop)
    };
    assert!(build(1, 1).is_ok() && build(4096, 1).is_ok());
    assert!(matches!(build(0, 1), Err(BuildError::OutOfRange { name: "shards", .. })));
    assert!(matches!(build(4097, 1), Err(BuildError::OutOfRange { name: "shards", .. })));
    assert_eq!(build(3, 0), Err(BuildError::ZeroCapacity));
    // Each with a seed of its own.
    let seeds = Sharded::build(2, 10, |capacity, _| TelescopingFilter::builder().capacity(capacity).build());
    assert_eq!(seeds.map(drop), Err(BuildError::SeedsDiffer));
    let other = QuotientFilter::builder().capacity(5).seed(2_u64).build().unwrap();
    assert_eq!(quotient(2, 10).replace(1, other), Err(BuildError::SeedsDiffer));
}

#[test]
fn a_full_shard_says_so() {
    let filter = quotient(2, 10);
    let refused = (0..1_000_u64).find_map(|key| filter.insert(&key).err()).unwrap();
    assert!(matches!(refused, ShardedError::Filter(FullError { .. })), "{refused}");
    let keys: Vec<u64> = (0..1_000).collect();
    assert!(matches!(quotient(2, 10).insert_many(&keys), Err(ShardedError::Filter(FullError { .. }))));
}
