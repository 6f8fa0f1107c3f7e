//! Catches: rates and sizes that are not what the documentation says, keys lost by growth, merging or overfilling,
//! builders that refuse what can be met or accept what cannot.

use super::super::next::fault;
use crate::testing::Random;
use crate::{BinFilter, BuildError, Filter, Insert, Merge, MergeError, Remove, SipHash};

fn keys(role: u64, count: usize) -> Vec<u64> {
    let mut random = Random::new(role);
    (0..count).map(|_| random.next()).collect()
}

fn filled(keys: &[u64], rate: f64, load: f64) -> BinFilter {
    let builder = BinFilter::builder().capacity(keys.len()).false_positive_rate(rate).max_load(load);
    let mut filter = builder.seed(1_u64).build().unwrap();
    filter.insert_many(keys).unwrap();
    filter
}

#[test]
fn the_rate_is_what_the_formula_says_and_at_most_what_was_asked_for() {
    let (members, strangers) = (keys(1, 100_000), keys(2, 2_000_000));
    let few = 2_f64.powi(-16);
    for rate in [1.0 / 16.0, 1.0 / 64.0, 0.01, 1.0 / 256.0, 0.001, 1e-4, few] {
        for load in [0.5, 0.9, 0.95, 0.99] {
            let filter = filled(&members, rate, load);
            filter.verify().unwrap();
            assert!(members.iter().all(|key| filter.contains(key)));
            let hits = strangers.iter().filter(|key| filter.contains(*key)).count() as f64;
            let expected = filter.expected_rate(filter.len()) * strangers.len() as f64;
            let (measured, interval) = (hits / 2e6 / rate, 1.96 * hits.sqrt() / 2e6 / rate);
            let bits = filter.stats().bits_per_key();
            println!(
                "1/{:.0}, load {load}: {measured:.3} ± {interval:.3} of it, {bits:.2} bits a key",
                1.0 / rate
            );
            assert!((hits - expected).abs() < 4.5 * expected.sqrt() + 1.0, "{rate}: {hits}, not {expected}");
            assert!(filter.false_positive_rate() <= rate, "{} > {rate}", filter.false_positive_rate());
        }
    }
}

#[test]
fn space_is_what_the_documentation_says() {
    let default = 1.0 / 256.0;
    for (rate, load, most) in [
        (default, 0.90, 11.60),
        (default, 0.95, 11.30),
        (0.01, 0.90, 11.05),
        (0.01, 0.95, 10.75),
        (0.001, 0.90, 14.15),
        (0.001, 0.95, 13.85),
    ] {
        let filter = filled(&keys(1, 943_718), rate, load);
        let bits = filter.stats().bits_per_key();
        assert!((0.98 * most..most).contains(&bits), "{bits} bits per key at load {load}, rate {rate}");
        assert!((filter.stats().load - load).abs() < 0.001);
    }
}

#[test]
fn answers_in_batches_are_those_for_single_keys() {
    let (members, strangers) = (keys(1, 5_000), keys(2, 5_000));
    let filter = filled(&members, 0.01, 0.95);
    let mut answers = vec![true; 7];
    for count in [0, 1, 31, 32, 33, 64, 1_000, 5_000] {
        for keys in [&members, &strangers] {
            filter.contains_many(&keys[..count], &mut answers);
            let expected: Vec<bool> = keys[..count].iter().map(|key| filter.contains(key)).collect();
            assert_eq!(answers, expected);
        }
    }
}

#[test]
fn growth_keeps_all_keys_and_the_rate() {
    let (members, strangers) = (keys(1, 40_000), keys(2, 500_000));
    let mut filter = BinFilter::builder().capacity(1_000).growable_to(40_000).seed(3_u64).build().unwrap();
    for (count, key) in members.iter().enumerate() {
        filter.insert(key).unwrap();
        if count.is_power_of_two() || count % 5_000 == 0 {
            filter.verify().unwrap();
            assert!(members[..=count].iter().all(|key| filter.contains(key)));
            assert!(filter.false_positive_rate() <= 1.0 / 256.0);
        }
    }
    let hits = strangers.iter().filter(|key| filter.contains(*key)).count() as f64;
    assert!(hits / (strangers.len() as f64) < 1.05 / 256.0, "{hits}");
    let mut same = BinFilter::builder().capacity(1_000).growable_to(40_000).seed(3_u64).build().unwrap();
    same.insert_many(&members).unwrap();
    assert!(same == filter, "all at once or one by one");
}

#[test]
fn a_full_filter_says_so_and_is_unchanged() {
    let members = keys(1, 1_001);
    let mut filter = filled(&members[..1_000], 0.01, 0.9);
    let before = filter.clone();
    let error = filter.insert(&members[1_000]).unwrap_err();
    assert_eq!((error.len, error.capacity), (1_000, 1_000));
    assert!(filter.insert_many(&members[..1]).is_err() && filter == before);
    assert!(filter.remove(&members[0]).unwrap() && filter.insert(&members[1_000]).is_ok());
}

#[test]
fn merged_filters_hold_what_both_held() {
    let members = keys(1, 6_000);
    let build = || BinFilter::builder().capacity(1_000).growable_to(10_000).seed(3_u64).build().unwrap();
    let (mut left, mut right, mut both) = (build(), build(), build());
    left.insert_many(&members[..700]).unwrap();
    right.insert_many(&members[700..]).unwrap();
    both.insert_many(&members).unwrap();
    let (before, grown) = (left.clone(), right.clone());
    left.merge(&right).unwrap();
    left.verify().unwrap();
    assert!(members.iter().all(|key| left.contains(key)) && left.len() == 6_000);
    assert!(left == both && right == grown);
    right.merge(&before).unwrap();
    assert!(right == both);
}

#[test]
fn a_merge_that_fits_to_the_last_key_is_made() {
    let members = keys(1, 1_001);
    let build =
        || BinFilter::builder().capacity(1_000).false_positive_rate(0.01).seed(1_u64).build().unwrap();
    let (mut first, mut second, mut third) = (build(), build(), build());
    first.insert_many(&members[..400]).unwrap();
    second.insert_many(&members[400..1_000]).unwrap();
    third.insert_many(&members[400..]).unwrap();
    let before = first.clone();
    assert_eq!(first.merge(&third), Err(MergeError::Full { needed: 1_001, capacity: 1_000 }));
    assert!(first == before);
    first.merge(&second).unwrap();
    assert!(members[..1_000].iter().all(|key| first.contains(key)) && first.len() == 1_000);
    // What is expected follows from the keys that are there, what is promised from those that fit.
    let (half, full) = (before.expected_rate(before.len()), first.expected_rate(first.len()));
    assert_eq!([&before, &first].map(Filter::false_positive_rate), [full; 2]);
    assert!((half / full - 0.4).abs() < 0.01, "{half} with 400 keys, {full} with 1,000");
}

#[test]
fn filters_that_do_not_match_are_not_merged() {
    let build =
        |capacity: usize, seed: u64| BinFilter::builder().capacity(capacity).seed(seed).build().unwrap();
    let mut filter = filled(&keys(1, 900), 1.0 / 256.0, 0.9);
    let before = filter.clone();
    assert_eq!(filter.merge(&build(900, 2)), Err(MergeError::HashMismatch));
    let error = filter.merge(&build(1_800, 1));
    assert!(matches!(error, Err(MergeError::ShapeMismatch { what: "bins", .. })), "{error:?}");
    let other = BinFilter::builder().capacity(970).false_positive_rate(0.01).seed(1_u64).build().unwrap();
    assert!(matches!(filter.merge(&other), Err(MergeError::ShapeMismatch { .. })));
    let full = MergeError::Full { needed: 1_800, capacity: 900 };
    assert_eq!(filter.merge(&before), Err(full));
    assert!(filter == before);
}

#[test]
fn keys_beyond_the_capacity_are_kept_too() {
    for rate in [0.05, 1.0 / 256.0, 0.001] {
        let members = keys(1, 4_000);
        let builder = BinFilter::builder().capacity(500).false_positive_rate(rate);
        let mut filter = builder.seed(5_u64).build().unwrap();
        filter.extend(&members);
        filter.verify().unwrap();
        assert!(members.iter().all(|key| filter.contains(key)) && filter.len() == 4_000);
        assert!(members.iter().all(|key| filter.remove(key).unwrap()) && filter.is_empty());
        filter.verify().unwrap();
    }
    assert!(std::iter::empty::<u64>().collect::<BinFilter>().is_empty());
}

#[test]
fn builders_say_what_can_be_met() {
    let builder = BinFilter::builder;
    assert_eq!(builder().build().unwrap_err(), BuildError::ZeroCapacity);
    let huge = builder().capacity(usize::MAX).build().unwrap_err();
    assert!(matches!(huge, BuildError::CapacityTooLarge { .. }), "{huge}");
    for rate in [0.0, -1.0, 0.6, 1.0, 2.0, 1e-7, f64::NAN] {
        let error = builder().capacity(10).false_positive_rate(rate).build().unwrap_err();
        let BuildError::RateOutOfRange { min, max, .. } = error else { panic!("{error}") };
        for told in [min, max] {
            assert!(builder().capacity(10).false_positive_rate(told).build().is_ok(), "{told} was told");
        }
    }
    for load in [0.0, 1.0, f64::NAN] {
        let error = builder().capacity(10).max_load(load).build().unwrap_err();
        assert!(matches!(error, BuildError::OutOfRange { name: "max_load", .. }), "{error}");
    }
    let BuildError::CapacityTooLarge { max, .. } =
        builder().capacity(1_000).growable_to(1_000_000_000).build().unwrap_err()
    else {
        panic!("no more than seven doublings")
    };
    assert!(builder().capacity(1_000).growable_to(max).build().is_ok());
    assert!(builder().capacity(1).build().is_ok());
    assert!(builder().capacity(100).hasher::<SipHash>().build().is_ok());
}

#[test]
fn counts_are_those_of_a_multiset() {
    let mut filter = BinFilter::builder().capacity(2_000).seed(2_u64).build().unwrap();
    // More equal items than a bin has slots.
    for count in 0..200 {
        assert_eq!(filter.count("key"), count);
        assert_eq!(filter.insert("key"), Ok(count == 0));
    }
    for count in (0..200).rev() {
        assert_eq!(filter.remove("key"), Ok(true));
        assert_eq!(filter.count("key"), count);
        filter.verify().unwrap();
    }
    assert_eq!(filter.remove("key"), Ok(false));
}

#[test]
fn without_memory_many_keys_are_inserted_up_to_the_one_that_finds_none() {
    let members = keys(1, 10_000);
    let mut filter = BinFilter::builder().capacity(10_000).max_load(0.95).seed(2_u64).build().unwrap();
    filter.insert_many(&members[..5_000]).unwrap();
    let mut expected = filter.clone();
    fault::after(Some(100));
    let error = filter.insert_many(&members[5_000..]).unwrap_err();
    fault::after(None);
    assert_eq!(error.full.len, 5_000 + error.inserted);
    assert!((101..5_000).contains(&error.inserted), "{error}");
    expected.insert_many(&members[5_000..5_000 + error.inserted]).unwrap();
    assert!(filter == expected);
    filter.verify().unwrap();
}

#[test]
fn the_size_is_known_before_the_filter_is_built() {
    for (capacity, rate, load) in
        [(1, 0.4, 0.9), (100, 0.01, 0.95), (50_000, 0.001, 0.2), (70_000, 1e-5, 0.99)]
    {
        let builder = BinFilter::builder().capacity(capacity).false_positive_rate(rate).max_load(load);
        let size = builder.size_in_bits().unwrap();
        assert_eq!(builder.build().unwrap().stats().bits, size, "{capacity} keys");
    }
}
