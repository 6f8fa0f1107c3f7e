//! Catches: false negatives, a length that drifts, a rate above the requested one, panics on bad input.

use std::collections::HashMap;

use besom::quotient::QuotientFilter;
use besom::testing::Random;
use besom::{BuildError, Filter, FullError, Insert, Merge, MergeError, Remove, SipHash, Xxh3};

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
        let (known, seemed) =
            (self.counts.get(&key).is_some_and(|&count| count > 0), self.filter.contains(&key));
        match self.filter.insert(&key) {
            Ok(new) => {
                assert!(new != seemed && !(new && known), "{key} was new, or was not");
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
    let mut random = Random::new(seed);
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

/// What the errors of a merge say must be true of the filters, and what they advise must work.
#[test]
fn merge_errors_name_the_filters_own_numbers() {
    let build = |capacity: usize, most: usize, rate: f64| {
        let builder = QuotientFilter::builder().capacity(capacity).growable_to(most).max_load(0.5);
        builder.false_positive_rate(rate).seed(1_u64).build().unwrap()
    };
    let slots = |filter: &QuotientFilter| filter.stats().slots as u64;
    let fill = |mut filter: QuotientFilter, keys: std::ops::Range<u64>| {
        for key in keys {
            filter.insert(&key).unwrap();
        }
        filter
    };
    // The one merged into is smaller, or larger, and neither grows.
    let (small, large) = (build(100, 100, 0.01), build(200, 200, 0.01));
    for (left, right) in [(&small, &large), (&large, &small)] {
        let error = left.clone().merge(right).unwrap_err();
        let (left, right) = (slots(left), slots(right));
        assert_eq!(error, MergeError::ShapeMismatch { what: "slots", left, right });
        assert!(error.to_string().contains(&format!("slots: {left} and {right}; build both with the same")));
    }
    let fine = build(100, 100, 0.001);
    let error = small.clone().merge(&fine).unwrap_err();
    assert_eq!(error, MergeError::ShapeMismatch { what: "remainder bits", left: 6, right: 9 });
    // One that has grown further than the other may.
    let (grown, short) = (fill(build(100, 400, 0.01), 0..300), build(100, 100, 0.0025));
    let error = short.clone().merge(&grown).unwrap_err();
    let (left, right) = (slots(&short), slots(&grown));
    assert_eq!(error, MergeError::ShapeMismatch { what: "slots", left, right });
    // The other way round there is nothing in the way.
    grown.clone().merge(&fill(short, 1_000..1_050)).unwrap();
    // Too many keys: the most that fits, and both built for as many as the error says do merge.
    let error =
        fill(build(100, 400, 0.01), 0..300).merge(&fill(build(100, 400, 0.01), 300..500)).unwrap_err();
    assert_eq!(error, MergeError::Full { needed: 500, capacity: 400 });
    let message = error.to_string();
    assert_eq!(
        message,
        "the union has 500 keys, but the filter holds at most 400; build both filters for 500 keys"
    );
    let mut left = fill(build(500, 500, 0.01), 0..300);
    left.merge(&fill(build(500, 500, 0.01), 300..500)).unwrap();
    assert!((0..500_u64).all(|key| left.contains(&key)));
}

#[test]
fn the_rates_that_an_error_names_can_be_met() {
    let build = |rate| QuotientFilter::builder().capacity(10).false_positive_rate(rate).build();
    let error = build(1.0).unwrap_err();
    let BuildError::RateOutOfRange { min, max, .. } = error else { panic!("{error}") };
    assert!(
        build(min).is_ok() && build(max).is_ok() && build(max * 1.01).is_err() && build(min * 0.99).is_err()
    );
}

#[test]
fn the_size_is_known_before() {
    for capacity in [1, 2, 45, 46, 50, 51, 1_000, 99_991] {
        for rate in [0.5, 0.1, 1.0 / 256.0, 1e-5, 1e-9] {
            for load in [0.01, 0.5, 0.95, 0.99] {
                let builder =
                    QuotientFilter::builder().capacity(capacity).false_positive_rate(rate).max_load(load);
                for builder in [builder.clone(), builder.growable_to(4 * capacity)] {
                    let Ok(size) = builder.size_in_bits() else {
                        assert!(builder.build().is_err());
                        continue;
                    };
                    assert_eq!(builder.build().unwrap().stats().bits, size);
                }
            }
        }
    }
    assert_eq!(QuotientFilter::builder().size_in_bits(), Err(BuildError::ZeroCapacity));
}

#[test]
fn equal_filters_have_the_same_parameters_and_contents() {
    let build = |seed: u64| {
        QuotientFilter::builder().capacity(300).false_positive_rate(0.1).seed(seed).build().unwrap()
    };
    let (mut left, mut right) = (build(1), build(1));
    assert!(left == right && left != build(2));
    left.extend(0..250_u64);
    right.extend((0..250_u64).rev());
    assert!(left == right, "the order of insertion does not matter");
    right.remove(&7_u64).unwrap();
    assert!(left != right);
    right.insert(&1_000_u64).unwrap();
    assert!(left != right);
    let larger =
        QuotientFilter::builder().capacity(301).false_positive_rate(0.1).seed(1_u64).build().unwrap();
    assert!(build(1) != larger);
}

#[test]
fn filters_can_be_shared_between_threads() {
    fn assert_send_and_sync<T: Send + Sync>() {}
    assert_send_and_sync::<QuotientFilter<Xxh3>>();
    assert_send_and_sync::<besom::quotient::QuotientFilterBuilder<SipHash>>();
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
