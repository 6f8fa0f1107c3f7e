//! Catches: a comparison filter that loses keys, that cannot be emptied again, whose rate or space is not what its
//! paper says, or that does not keep the promises of the library's traits.

use besom::any::{AnyRemote, DynFilter, DynFilterError, dyn_plain, dyn_removable};
use besom::testing::NullRemote;

use super::*;
use crate::random::Random;

const NOTHING: AnyRemote<NullRemote> = AnyRemote(NullRemote);

type Boxed = Box<dyn DynFilter>;

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

fn insert(filter: &mut Boxed, number: u64) -> Result<bool, DynFilterError> {
    filter.insert(&key(number), &mut { NOTHING })
}

fn remove(filter: &mut Boxed, number: u64) -> Result<bool, DynFilterError> {
    filter.remove(&key(number), &mut { NOTHING })
}

/// Every filter of this kind for `keys` keys, with the false-positive rate to be expected.
fn filters(keys: usize) -> Vec<(&'static str, Boxed, f64, bool)> {
    let rank_indexed = 0.5_f64.powi(8);
    let vacuum = 8.0 * 0.93 * 0.5_f64.powi(12);
    vec![
        ("rank-indexed", dyn_removable(RankIndexedFilter::plain(keys, 8, 1)), rank_indexed, false),
        ("rank-indexed counting", dyn_removable(RankIndexedFilter::counting(keys, 8, 1)), rank_indexed, true),
        (
            "rank-indexed, small bins",
            dyn_removable(RankIndexedFilter::with_bins(21, keys, 8, true, 1)),
            rank_indexed,
            true,
        ),
        ("d-left", dyn_removable(DLeftFilter::new(keys, 12, 1)), 24.0 * 0.5_f64.powi(12), true),
        ("variable increment", dyn_removable(VariableIncrementFilter::new(keys, 25.0, 1)), 0.0097, true),
        ("vacuum", dyn_removable(VacuumFilter::new(keys, 12, 0.95, 1)), vacuum, true),
        ("balanced", dyn_plain(BalancedBloomFilter::balanced(keys, 10.36, 1)), 0.01, false),
        ("ordinary", dyn_plain(BalancedBloomFilter::ordinary(keys, 9.585, 1)), 0.01, false),
        ("blocked", dyn_plain(BalancedBloomFilter::blocked(keys, 10.22, 1)), 0.01, false),
    ]
}

#[test]
fn stored_keys_are_found_and_others_as_rarely_as_the_papers_say() {
    const KEYS: u64 = 100_000;
    const QUERIES: u64 = 1_000_000;
    for (name, mut filter, expected, _) in filters(KEYS as usize) {
        (0..KEYS).for_each(|number| assert!(insert(&mut filter, number).is_ok()));
        assert!((0..KEYS).all(|number| filter.contains(&key(number))), "{name} loses keys");
        let found = (KEYS..KEYS + QUERIES).filter(|&number| filter.contains(&key(number))).count();
        let rate = found as f64 / QUERIES as f64;
        let deviation = (expected / QUERIES as f64).sqrt();
        assert!(
            (rate - expected).abs() < 0.06 * expected + 5.0 * deviation,
            "{name}: {rate}, not {expected}"
        );
        let promised = filter.false_positive_rate();
        assert!(
            rate < promised + 5.0 * deviation && promised < 1.1 * expected,
            "{name}: {rate}, {promised} promised"
        );
        assert_eq!((filter.len(), filter.capacity()), (KEYS as usize, KEYS as usize), "{name}");
        filter.verify().unwrap();
    }
}

#[test]
fn insertions_and_removals_leave_what_an_exact_multiset_holds() {
    for (name, mut filter, _, removal) in filters(2_000) {
        let (mut random, mut stored) = (Random::new(3), Vec::new());
        for step in 0..20_000 {
            if stored.len() < 1_900 && (step % 2 == 0 || !removal) {
                let number = random.below(1_500);
                let accepted = filter.contains(&key(number));
                assert_eq!(insert(&mut filter, number).unwrap(), !accepted, "{name}");
                stored.push(number);
            } else if removal && !stored.is_empty() {
                let number = stored.swap_remove(random.below(stored.len() as u64) as usize);
                assert!(remove(&mut filter, number).unwrap(), "{name} lost {number}");
            }
            if step % 200 == 0 {
                assert!(stored.iter().all(|&number| filter.contains(&key(number))), "{name} loses keys");
                assert_eq!(filter.stats().items, stored.len());
                filter.verify().unwrap();
            }
        }
        assert_eq!(remove(&mut filter, 0).is_ok(), removal, "{name}");
        if removal {
            while let Some(number) = stored.pop() {
                remove(&mut filter, number).unwrap();
            }
            let left = (0..3_000).filter(|&number| filter.contains(&key(number))).count();
            assert!(left < 150, "{name}: {left} keys left in an empty filter");
        }
    }
}

#[test]
fn a_cleared_filter_is_as_good_as_new() {
    for (name, mut filter, _, _) in filters(500) {
        for _ in 0..2 {
            (0..500).for_each(|number| assert!(insert(&mut filter, number).is_ok()));
            filter.clear(&mut { NOTHING }).unwrap();
            filter.verify().unwrap();
            let left = (0..500).filter(|&number| filter.contains(&key(number))).count();
            assert_eq!((filter.len(), left), (0, 0), "{name}");
        }
    }
}

#[test]
fn full_filters_say_so_and_keep_what_they_have() {
    let full = [
        ("rank-indexed", dyn_removable(RankIndexedFilter::counting(500, 12, 1))),
        ("d-left", dyn_removable(DLeftFilter::new(500, 16, 1))),
        ("vacuum", dyn_removable(VacuumFilter::new(500, 16, 0.95, 1))),
    ];
    for (name, mut filter) in full {
        let stored = (0..5_000).take_while(|&number| insert(&mut filter, number).is_ok()).count() as u64;
        assert!((400..2_000).contains(&stored), "{name} took {stored} keys");
        assert!((0..stored).all(|number| filter.contains(&key(number))), "{name} lost keys when it was full");
        assert_eq!(filter.stats().items, stored as usize);
        // The next key found no room, and finds none now.
        let message = insert(&mut filter, stored).expect_err(name).to_string();
        assert!(
            message.contains(&format!("it holds {stored} keys and was built for 500")),
            "{name}: {message}"
        );
        filter.verify().unwrap();
    }
}
