//! Catches: a comparison filter that loses keys, that cannot be emptied again, or whose rate or space is not what
//! its paper says.

use super::*;
use crate::random::Random;
use crate::subject::PlainFilter;

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

/// Every filter of this kind for `keys` keys, with the false-positive rate to be expected.
fn filters(keys: usize) -> Vec<(&'static str, Box<dyn PlainFilter>, f64, bool)> {
    vec![
        ("rank-indexed", Box::new(RankIndexedFilter::plain(keys, 8, 1)), 0.5_f64.powi(8), false),
        ("rank-indexed counting", Box::new(RankIndexedFilter::counting(keys, 8, 1)), 0.5_f64.powi(8), true),
        ("d-left", Box::new(DLeftFilter::new(keys, 12, 1)), 24.0 * 0.5_f64.powi(12), true),
        ("variable increment", Box::new(VariableIncrementFilter::new(keys, 25.0, 1)), 0.0097, true),
        ("balanced", Box::new(BalancedBloomFilter::balanced(keys, 10.36, 1)), 0.01, false),
        ("ordinary", Box::new(BalancedBloomFilter::ordinary(keys, 9.585, 1)), 0.01, false),
        ("blocked", Box::new(BalancedBloomFilter::blocked(keys, 10.22, 1)), 0.01, false),
    ]
}

#[test]
fn stored_keys_are_found_and_others_as_rarely_as_the_papers_say() {
    const KEYS: u64 = 100_000;
    const QUERIES: u64 = 1_000_000;
    for (name, mut filter, expected, _) in filters(KEYS as usize) {
        (0..KEYS).for_each(|number| filter.insert(&key(number)).unwrap());
        assert!((0..KEYS).all(|number| filter.contains(&key(number))), "{name} loses keys");
        let found = (KEYS..KEYS + QUERIES).filter(|&number| filter.contains(&key(number))).count();
        let rate = found as f64 / QUERIES as f64;
        let deviation = (expected / QUERIES as f64).sqrt();
        assert!(
            (rate - expected).abs() < 0.06 * expected + 5.0 * deviation,
            "{name}: {rate}, not {expected}"
        );
        assert_eq!(filter.stats().items, KEYS as usize);
    }
}

#[test]
fn insertions_and_removals_leave_what_an_exact_multiset_holds() {
    for (name, mut filter, _, removal) in filters(2_000) {
        let (mut random, mut stored) = (Random::new(3), Vec::new());
        for step in 0..20_000 {
            if stored.len() < 1_900 && (step % 2 == 0 || !removal) {
                let number = random.below(1_500);
                filter.insert(&key(number)).unwrap();
                stored.push(number);
            } else if removal && !stored.is_empty() {
                let number = stored.swap_remove(random.below(stored.len() as u64) as usize);
                assert!(filter.remove(&key(number)).unwrap(), "{name} lost {number}");
            }
            if step % 200 == 0 {
                assert!(stored.iter().all(|&number| filter.contains(&key(number))), "{name} loses keys");
                assert_eq!(filter.stats().items, stored.len());
            }
        }
        assert_eq!(filter.remove(&key(0)).is_ok(), removal, "{name}");
        if removal {
            while let Some(number) = stored.pop() {
                filter.remove(&key(number)).unwrap();
            }
            let left = (0..3_000).filter(|&number| filter.contains(&key(number))).count();
            assert!(left < 150, "{name}: {left} keys left in an empty filter");
        }
    }
}

#[test]
fn full_filters_say_so_and_keep_what_they_have() {
    let full: [(&str, Box<dyn PlainFilter>); 2] = [
        ("rank-indexed", Box::new(RankIndexedFilter::counting(500, 12, 1))),
        ("d-left", Box::new(DLeftFilter::new(500, 16, 1))),
    ];
    for (name, mut filter) in full {
        let stored = (0..5_000).take_while(|&number| filter.insert(&key(number)).is_ok()).count() as u64;
        assert!((400..2_000).contains(&stored), "{name} took {stored} keys");
        assert!((0..stored).all(|number| filter.contains(&key(number))), "{name} lost keys when it was full");
        assert_eq!(filter.stats().items, stored as usize);
    }
}
