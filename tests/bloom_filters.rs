//! Catches: false negatives (after merges and beyond capacity too), a rate or a size other than promised, panics
//! on bad input. Every test runs for the classic and for the blocked filter.

use std::collections::HashSet;

use besom::bloom::{BlockedBloomFilter, BloomFilter};
use besom::testing::Random;
use besom::{BuildError, Filter, FullError, Insert, Merge, MergeError, SipHash};

/// What the two filters have in common beyond the traits, so that one test serves both.
trait Bloom: Insert + Merge + Clone + PartialEq + Extend<u64> + FromIterator<u64> + Send + Sync + Sized {
    fn build(capacity: usize, rate: f64, seed: u64) -> Result<Self, BuildError>;
    fn size_in_bits(capacity: usize, rate: f64) -> Result<usize, BuildError>;
}

macro_rules! bloom {
    ($($filter:ty),*) => {$(
        impl Bloom for $filter {
            fn build(capacity: usize, rate: f64, seed: u64) -> Result<Self, BuildError> {
                Self::builder().capacity(capacity).false_positive_rate(rate).seed(seed).build()
            }
            fn size_in_bits(capacity: usize, rate: f64) -> Result<usize, BuildError> {
                Self::builder().capacity(capacity).false_positive_rate(rate).size_in_bits()
            }
        }
    )*};
}
bloom!(BloomFilter, BlockedBloomFilter);

/// Random insertions, merges and clearings of two filters of one shape, against exact sets.
fn agrees_with_a_set<F: Bloom>() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let capacity = 1 + random.below(300) as usize;
        let rate = 0.5_f64.powi(1 + random.below(20) as i32);
        let empty = F::build(capacity, rate, seed).unwrap();
        let mut filters = [(empty.clone(), HashSet::new(), 0), (empty, HashSet::new(), 0)];
        for _ in 0..600 {
            let (side, key) = (random.below(2) as usize, random.below(1000));
            match random.below(100) {
                0..90 => {
                    let (filter, set, len) = &mut filters[side];
                    let accepted = filter.contains(&key);
                    match filter.insert(&key) {
                        Ok(new) => {
                            assert_eq!(new, !accepted);
                            set.insert(key);
                            *len += usize::from(new);
                        }
                        Err(full) => {
                            assert!(!accepted, "a key that takes no room was refused");
                            assert_eq!((full.len, full.capacity), (capacity, *len));
                        }
                    }
                }
                90..97 => {
                    let (other, keys, others) = filters[1 - side].clone();
                    let (filter, set, len) = &mut filters[side];
                    match filter.merge(&other) {
                        Ok(()) => {
                            set.extend(keys);
                            *len += others;
                        }
                        Err(error) => {
                            assert_eq!(error, MergeError::Full { needed: *len + others, capacity });
                            assert!(*len + others > capacity);
                        }
                    }
                }
                _ => {
                    let (filter, set, len) = &mut filters[side];
                    filter.clear();
                    set.clear();
                    *len = 0;
                }
            }
            for (filter, set, len) in &filters {
                filter.verify().unwrap();
                assert_eq!((filter.len(), filter.is_empty()), (*len, *len == 0));
                assert!(set.iter().all(|key| filter.contains(key)), "a false negative");
            }
        }
    }
}

#[test]
fn filters_agree_with_a_set() {
    agrees_with_a_set::<BloomFilter>();
    agrees_with_a_set::<BlockedBloomFilter>();
}

/// The measured rate of a full filter, with the number of false positives it rests on.
fn measured_rate(filter: &impl Filter, queries: u64) -> (f64, f64) {
    let mut random = Random::new(u64::from(u32::MAX));
    let hits = (0..queries).filter(|_| filter.contains(&(random.next() | 1 << 63))).count() as f64;
    (hits / queries as f64, hits)
}

/// Four standard deviations of sampling around the promised rate, and 2% for the formula's own error.
fn meets_its_rate<F: Bloom>() {
    for (capacity, rate) in [
        (50_000, 0.3),
        (50_000, 0.1),
        (50_000, 0.01),
        (50_000, 1.0 / 256.0),
        (50_000, 1e-4),
        (300, 1.0 / 64.0),
    ] {
        let mut filters = 1;
        // A small filter differs from its expectation by chance; the mean of many does not.
        if capacity < 1000 {
            filters = 200;
        }
        let (mut sum, mut hits) = (0.0, 0.0);
        for seed in 0..filters {
            let mut filter = F::build(capacity, rate, seed).unwrap();
            (0..capacity as u64).for_each(|key| assert!(filter.insert(&key).is_ok()));
            let (one, found) = measured_rate(&filter, 2_000_000 / filters);
            sum += one / filters as f64;
            hits += found;
        }
        let slack =
            0.02 + 4.0 / f64::sqrt(hits) + 0.2 / f64::sqrt(capacity as f64 * filters as f64).min(20.0);
        assert!(sum < rate * (1.0 + slack), "{capacity} keys: rate {sum}, asked for {rate} + {slack}");
        // Small filters are rounded up to whole words or lines, and do better than asked for.
        assert!(sum > rate * (1.0 - slack) || filters > 1, "{capacity} keys: rate {sum}, asked for {rate}");
    }
}

#[test]
fn the_classic_filter_meets_its_rate() {
    meets_its_rate::<BloomFilter>();
}

#[test]
fn the_blocked_filter_meets_its_rate() {
    meets_its_rate::<BlockedBloomFilter>();
}

#[test]
fn sizes_are_as_promised() {
    for rate in [0.1, 0.01, 1.0 / 256.0, 1e-4, 1e-6] {
        let optimum = -f64::log2(rate) / std::f64::consts::LN_2;
        let bits = |stats: besom::FilterStats| stats.bits as f64 / 100_000.0;
        let classic = bits(BloomFilter::build(100_000, rate, 1).unwrap().stats());
        assert!((0.999..1.01).contains(&(classic / optimum)), "{classic} bits per key at {rate}");
        let blocked = bits(BlockedBloomFilter::build(100_000, rate, 1).unwrap().stats());
        assert!((1.0..1.4).contains(&(blocked / optimum)), "{blocked} bits per key at {rate}");
    }
}

fn answers_batches_as_it_answers_single_keys<F: Bloom>() {
    for len in [0_u64, 1, 5, 24, 100, 5_000] {
        let mut filter = F::build(5_000, 0.1, 3).unwrap();
        filter.extend((0..len).map(|key| key * 2));
        let keys: Vec<u64> = (0..2 * len).collect();
        let mut answers = vec![true; 7];
        filter.contains_many(&keys, &mut answers);
        assert_eq!(answers, keys.iter().map(|key| filter.contains(key)).collect::<Vec<_>>());
    }
}

#[test]
fn batches_are_answered_as_single_keys_are() {
    answers_batches_as_it_answers_single_keys::<BloomFilter>();
    answers_batches_as_it_answers_single_keys::<BlockedBloomFilter>();
}

fn is_as_large_as_told<F: Bloom>() {
    for capacity in [1, 3, 64, 1_000, 54_321] {
        for rate in [0.5, 0.1, 1.0 / 256.0, 1e-5, 1e-12] {
            let bits = F::build(capacity, rate, 1).unwrap().stats().bits;
            assert_eq!(F::size_in_bits(capacity, rate), Ok(bits), "{capacity} keys at {rate}");
        }
    }
    assert_eq!(F::size_in_bits(0, 0.1), Err(BuildError::ZeroCapacity));
}

#[test]
fn the_size_is_known_before_building() {
    is_as_large_as_told::<BloomFilter>();
    is_as_large_as_told::<BlockedBloomFilter>();
}

fn never_loses_a_key_beyond_its_capacity<F: Bloom>() {
    let mut filter = F::build(100, 0.01, 5).unwrap();
    filter.extend(0..1_000);
    assert!((0..1_000_u64).all(|key| filter.contains(&key)));
    assert_eq!(filter.insert(&7_u64), Ok(false), "what is accepted already takes no room");
    let stranger = (1_000_000..2_000_000_u64).find(|key| !filter.contains(key)).unwrap();
    assert_eq!(filter.insert(&stranger), Err(FullError { len: filter.len(), capacity: 100 }));
    assert!((100..=1_000).contains(&filter.len()));
    let collected: F = (0..1_000).collect();
    assert!((0..1_000_u64).all(|key| collected.contains(&key)));
    assert_eq!(collected.capacity(), 1_000);
    assert!((980..=1_000).contains(&collected.len()), "{}", collected.len());
    assert_eq!(std::iter::empty().collect::<F>().len(), 0);
}

#[test]
fn no_key_is_lost_beyond_the_capacity() {
    never_loses_a_key_beyond_its_capacity::<BloomFilter>();
    never_loses_a_key_beyond_its_capacity::<BlockedBloomFilter>();
}

fn refuses_bad_parameters<F: Bloom + std::fmt::Debug>() {
    assert_eq!(F::build(0, 0.1, 1).unwrap_err(), BuildError::ZeroCapacity);
    for rate in [0.0, -1.0, 1e-20, 0.6, 1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(F::build(10, rate, 1), Err(BuildError::RateOutOfRange { .. })), "rate {rate}");
    }
    for capacity in [usize::MAX, usize::MAX / 2, 1 << 58] {
        assert!(matches!(F::build(capacity, 1e-6, 1), Err(BuildError::OutOfMemory { .. })), "{capacity}");
    }
    let mut filter = F::build(10, 0.1, 1).unwrap();
    assert_eq!(filter.merge(&F::build(10, 0.1, 2).unwrap()), Err(MergeError::HashMismatch));
    let larger = F::build(1_000, 0.1, 1).unwrap();
    assert!(matches!(filter.merge(&larger), Err(MergeError::ShapeMismatch { what: "bits", .. })));
    assert_eq!(filter, F::build(10, 0.1, 1).unwrap());
}

#[test]
fn bad_parameters_are_refused() {
    refuses_bad_parameters::<BloomFilter>();
    refuses_bad_parameters::<BlockedBloomFilter>();
}

#[test]
fn another_hash_function_can_be_chosen() {
    let mut classic = BloomFilter::builder().capacity(10).hasher::<SipHash>().build().unwrap();
    classic.insert("key").unwrap();
    assert!(classic.contains("key") && classic.contains_digest(classic.digest(b"key")));
    let mut blocked = BlockedBloomFilter::builder().capacity(10).hasher::<SipHash>().build().unwrap();
    blocked.insert("key").unwrap();
    assert!(blocked.contains("key") && blocked.contains_digest(blocked.digest(b"key")));
}
