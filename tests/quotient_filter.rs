//! Catches: false negatives, a length that drifts, a rate above the requested one, panics on bad input.

use std::collections::HashMap;

use besom::{BuildError, Filter, FullError, Insert, MergeError, QuotientFilter, Remove, SipHash};

/// `SplitMix64`, so that every run is the same.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

/// A filter beside the exact multiset of what was put in.
struct Checked {
    filter: QuotientFilter,
    counts: HashMap<u64, usize>,
    stored: Vec<u64>,
}

impl Checked {
    fn new(filter: QuotientFilter) -> Self {
        Self { filter, counts: HashMap::new(), stored: Vec::new() }
    }

    fn insert(&mut self, key: u64) {
        match self.filter.insert(&key) {
            Ok(_) => {
                *self.counts.entry(key).or_default() += 1;
                self.stored.push(key);
            }
            Err(FullError { len, capacity }) => {
                assert_eq!((len, capacity), (self.filter.len(), self.filter.capacity()));
                assert_eq!(len, self.stored.len());
            }
        }
    }

    fn remove(&mut self, key: u64) {
        assert!(self.filter.remove(&key).unwrap(), "{key} was inserted and is not there");
        *self.counts.get_mut(&key).unwrap() -= 1;
    }

    fn merge(&mut self, other: &Self) {
        match self.filter.merge(&other.filter) {
            Ok(_) => {
                self.stored.extend(&other.stored);
                for (&key, count) in &other.counts {
                    *self.counts.entry(key).or_default() += count;
                }
            }
            Err(MergeError::Full { needed, .. }) => {
                assert_eq!(needed, self.stored.len() + other.stored.len());
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn check(&self) {
        self.filter.verify().unwrap();
        let keys: Vec<u64> =
            self.counts.iter().filter(|&(_, &count)| count > 0).map(|(&key, _)| key).collect();
        assert!(keys.iter().all(|key| self.filter.count(key) >= self.counts[key]), "a false negative");
        let mut answers = Vec::new();
        self.filter.contains_many(&keys, &mut answers);
        assert!(answers.iter().all(|&answer| answer) && answers.len() == keys.len());
    }
}

/// Insertions, removals, growth and merges against an exact multiset.
fn drive(remainder_bits: i32, capacity: usize, growth: usize, steps: usize, seed: u64) {
    let mut random = Random(seed);
    let build = || {
        let builder = QuotientFilter::builder().capacity(capacity).growable_to(capacity * growth);
        let builder = builder.false_positive_rate(0.5_f64.powi(remainder_bits)).seed(seed);
        Checked::new(builder.build().unwrap())
    };
    let mut checked = build();
    for step in 0..steps {
        // Few distinct keys, so that the same one is inserted again and again.
        let key = random.below(capacity as u64 * 2);
        // Now it fills, now it empties.
        let filling = step / 2_000 % 2 == 0;
        match random.below(1_000) {
            0..5 => {
                let mut other = build();
                (0..random.below(capacity as u64 / 4 + 1)).for_each(|_| other.insert(random.below(50)));
                checked.merge(&other);
            }
            5 => {
                checked.filter.clear();
                checked.counts.clear();
                checked.stored.clear();
            }
            6..100 => {
                let count = checked.counts.get(&key).copied().unwrap_or(0);
                assert!(checked.filter.count(&key) >= count && (count == 0 || checked.filter.contains(&key)));
            }
            choice if (choice < 700) == filling || checked.stored.is_empty() => checked.insert(key),
            _ => {
                let chosen = random.below(checked.stored.len() as u64) as usize;
                let key = checked.stored.swap_remove(chosen);
                checked.remove(key);
            }
        }
        assert_eq!(checked.filter.len(), checked.stored.len());
        if step % 64 == 0 {
            checked.check();
        }
    }
}

#[test]
fn a_million_operations_agree_with_an_exact_multiset() {
    for (number, remainder_bits) in [2, 4, 8, 8, 11, 16, 23].into_iter().enumerate() {
        for (capacity, growth) in [(1, 64), (30, 8), (400, 1), (400, 4)] {
            drive(remainder_bits, capacity, growth, 36_000, number as u64 * 10 + growth as u64);
        }
    }
}

/// Counts false positives of `filter` among `queries` keys that were not inserted.
fn false_positives(filter: &QuotientFilter, queries: u64) -> u64 {
    (0..queries).filter(|query| filter.contains(&(query | 1 << 63))).count() as u64
}

#[test]
fn any_capacity_fills_to_its_load_and_meets_its_rate() {
    for capacity in [1, 2, 3, 7, 47, 48, 100, 1_000, 4_097, 65_536, 99_991] {
        for rate in [0.25, 0.05, 1.0 / 256.0, 0.001] {
            let builder = QuotientFilter::builder().capacity(capacity).false_positive_rate(rate);
            let mut filter = builder.seed(11_u64).build().unwrap();
            for key in 0..capacity as u64 {
                filter.insert(&key).unwrap();
            }
            assert_eq!(filter.insert(&0_u64), Err(FullError { len: capacity, capacity }));
            assert!((0..capacity as u64).all(|key| filter.contains(&key)));
            filter.verify().unwrap();
            // The rate of a small filter depends on the luck of its few keys.
            if capacity >= 1_000 {
                let queries = 200_000;
                let found = false_positives(&filter, queries) as f64;
                let allowed = rate * queries as f64;
                assert!(found <= 1.05 * allowed + 3.0 * allowed.sqrt(), "{found} of {queries} at {rate}");
                assert!(
                    found >= 0.4 * allowed - 3.0 * allowed.sqrt(),
                    "{found} of {queries} at {rate}: wasteful"
                );
            }
        }
    }
}

/// The largest capacities take minutes and gigabytes of keys: `BESOM_FULL=1 cargo test --release` includes them.
#[test]
fn large_capacities_fill_to_their_load() {
    let full = std::env::var_os("BESOM_FULL").is_some();
    for capacity in if full { vec![10_000_000, 100_000_000] } else { vec![1_000_003] } {
        let mut filter = QuotientFilter::builder().capacity(capacity).seed(14_u64).build().unwrap();
        for key in 0..capacity as u64 {
            filter.insert(&key).unwrap();
        }
        let mut answers = Vec::new();
        for first in (0..capacity as u64).step_by(100_000) {
            let keys: Vec<u64> = (first..(first + 100_000).min(capacity as u64)).collect();
            filter.contains_many(&keys, &mut answers);
            assert!(answers.iter().all(|&answer| answer), "a false negative behind {first}");
        }
        filter.verify().unwrap();
        let queries = 4_000_000;
        let found = false_positives(&filter, queries) as f64;
        let allowed = queries as f64 / 256.0;
        assert!(
            found <= 1.05 * allowed && found >= 0.85 * allowed,
            "{found} of {queries} at {capacity} keys"
        );
    }
}

#[test]
fn a_growing_filter_keeps_its_rate() {
    let builder = QuotientFilter::builder().capacity(100).growable_to(50_000);
    let mut filter = builder.false_positive_rate(1.0 / 256.0).seed(12_u64).build().unwrap();
    for key in 0..50_000_u64 {
        filter.insert(&key).unwrap();
    }
    assert!((0..50_000_u64).all(|key| filter.contains(&key)));
    let found = false_positives(&filter, 500_000) as f64;
    assert!(found <= 500_000.0 / 256.0 * 1.05, "{found} false positives");
    filter.verify().unwrap();
}

#[test]
fn bad_parameters_are_refused_with_what_can_be_met() {
    let builder = || QuotientFilter::builder().capacity(100);
    assert_eq!(QuotientFilter::builder().build().unwrap_err(), BuildError::ZeroCapacity);
    assert_eq!(QuotientFilter::with_capacity(0).unwrap_err(), BuildError::ZeroCapacity);
    for rate in [0.0, 1.0, -0.5, 2.0, f64::NAN, f64::INFINITY, 1e-300] {
        let error = builder().false_positive_rate(rate).build().unwrap_err();
        assert!(matches!(error, BuildError::RateOutOfRange { .. }), "{error}");
    }
    for load in [0.0, 1.0, -1.0, f64::NAN] {
        let error = builder().max_load(load).build().unwrap_err();
        assert!(matches!(error, BuildError::OutOfRange { name: "max_load", .. }), "{error}");
    }
    for capacity in [usize::MAX, 1 << 60, 1 << 50] {
        let error = QuotientFilter::with_capacity(capacity).unwrap_err();
        assert!(matches!(error, BuildError::CapacityTooLarge { .. }), "{error}");
    }
    let error = QuotientFilter::with_capacity(1 << 46).unwrap_err();
    assert!(matches!(error, BuildError::OutOfMemory { .. }), "{error}");
    let error = builder().growable_to(1 << 40).build().unwrap_err();
    let BuildError::CapacityTooLarge { max, .. } = error else { panic!("{error}") };
    assert!(builder().growable_to(max).build().is_ok(), "the error named {max}, which cannot be met");
    assert!(builder().growable_to(3).build().is_ok());
}

#[test]
fn filters_that_cannot_be_merged_say_why_and_stay_as_they_are() {
    let build = |capacity, seed: u64, rate| {
        QuotientFilter::builder().capacity(capacity).seed(seed).false_positive_rate(rate).build().unwrap()
    };
    let mut filter = build(100, 1, 0.01);
    filter.insert("kept").unwrap();
    assert_eq!(filter.merge(&build(100, 2, 0.01)), Err(MergeError::HashMismatch));
    let wider = filter.merge(&build(100, 1, 0.0001));
    assert!(matches!(wider, Err(MergeError::ShapeMismatch { what: "remainder bits", .. })), "{wider:?}");
    let larger = filter.merge(&build(1000, 1, 0.01));
    assert!(matches!(larger, Err(MergeError::ShapeMismatch { what: "slots", .. })), "{larger:?}");
    let mut full = build(100, 1, 0.01);
    (0..100_u64).for_each(|key| {
        full.insert(&key).unwrap();
    });
    assert_eq!(filter.merge(&full), Err(MergeError::Full { needed: 101, capacity: 100 }));
    assert!(filter.contains("kept") && filter.len() == 1);
    filter.verify().unwrap();
}

#[test]
fn filters_that_grew_differently_merge() {
    let build = || QuotientFilter::builder().capacity(10).growable_to(1_000).seed(3_u64).build().unwrap();
    let (mut small, mut large) = (build(), build());
    (0..8_u64).for_each(|key| {
        small.insert(&key).unwrap();
    });
    (100..400_u64).for_each(|key| {
        large.insert(&key).unwrap();
    });
    let mut both = small.clone();
    both.merge(&large).unwrap();
    large.merge(&small).unwrap();
    for filter in [&both, &large] {
        filter.verify().unwrap();
        assert_eq!(filter.len(), 308);
        assert!((0..8_u64).chain(100..400).all(|key| filter.contains(&key)));
    }
}

#[test]
fn removing_what_is_not_there_changes_nothing() {
    let builder = QuotientFilter::builder().capacity(50).false_positive_rate(1e-6);
    let mut filter = builder.seed(4_u64).build().unwrap();
    assert!(!filter.remove("nothing").unwrap());
    filter.insert("something").unwrap();
    assert!(!filter.remove("nothing").unwrap());
    assert!(filter.contains("something") && filter.len() == 1);
}

#[test]
fn a_key_inserted_twice_is_removed_twice() {
    let mut filter = QuotientFilter::with_capacity(10).unwrap();
    filter.insert("twice").unwrap();
    filter.insert("twice").unwrap();
    assert_eq!((filter.len(), filter.count("twice")), (2, 2));
    assert!(filter.remove("twice").unwrap() && filter.contains("twice"));
    assert!(filter.remove("twice").unwrap() && !filter.contains("twice"));
    assert!(!filter.remove("twice").unwrap());
}

#[test]
fn one_key_may_fill_the_whole_filter() {
    let mut filter = QuotientFilter::builder().capacity(3_000).seed(5_u64).build().unwrap();
    (0..3_000).for_each(|_| {
        filter.insert("again").unwrap();
    });
    assert_eq!(filter.count("again"), 3_000);
    filter.verify().unwrap();
    (0..3_000).for_each(|_| assert!(filter.remove("again").unwrap()));
    assert!(filter.is_empty() && !filter.contains("again"));
    filter.verify().unwrap();
}

#[test]
fn extend_loses_no_key_even_beyond_capacity() {
    let mut filter = QuotientFilter::with_capacity(10).unwrap();
    filter.extend(0..5_000_u64);
    assert_eq!(filter.len(), 5_000);
    assert!((0..5_000_u64).all(|key| filter.contains(&key)));
    filter.verify().unwrap();
    let collected: QuotientFilter = (0..1_000_u32).collect();
    assert!(collected.len() == 1_000 && (0..1_000_u32).all(|key| collected.contains(&key)));
    let none: QuotientFilter = std::iter::empty::<u32>().collect();
    assert!(none.is_empty());
}

#[test]
fn the_hardened_hash_works_alike_and_digests_can_be_reused() {
    let builder = QuotientFilter::builder().capacity(100).seed(6_u64).hasher::<SipHash>();
    let mut filter = builder.build().unwrap();
    filter.insert("key").unwrap();
    let digest = filter.digest(b"key");
    assert!(filter.contains("key") && filter.contains_digest(digest));
    filter.insert_digest(digest).unwrap();
    assert_eq!(filter.count("key"), 2);
}

#[test]
fn space_is_what_the_formula_says() {
    let mut filter = QuotientFilter::builder().capacity(100_000).build().unwrap();
    filter.extend(0..100_000_u64);
    let bits = filter.stats().bits_per_key();
    assert!(bits < 10.24 / 0.95 * 1.005, "{bits} bits per key");
}
