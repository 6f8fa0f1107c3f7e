//! Catches: a second level that swallows more and more keys while keys are replaced, and keys that are lost on the way.

use super::model::scale;
use crate::testing::Random;
use crate::{BinFilter, Filter, Insert, Remove};

/// Replaces every key many times over; the second level must stay as small as it was.
fn churn(load: f64, rate: f64, rounds: usize) {
    let count = 10_000;
    let mut random = Random::new(77);
    let builder = BinFilter::builder().capacity(count).max_load(load).false_positive_rate(rate);
    let mut filter = builder.seed(7_u64).build().unwrap();
    let mut members: Vec<u64> = (0..count).map(|_| random.next()).collect();
    filter.insert_many(&members).unwrap();
    let (first, bits) = (filter.overflown() as f64, filter.stats().bits);
    // How many were in the second level after each round, in the first and in the second half of them.
    let mut halves = [0.0; 2];
    for round in 0..rounds {
        for _ in 0..count {
            let member = random.below(count as u64) as usize;
            assert_eq!(filter.remove(&members[member]), Ok(true), "a key was lost");
            members[member] = random.next();
            filter.insert(&members[member]).unwrap();
        }
        let now = filter.overflown() as f64;
        halves[2 * round / rounds] += now / (rounds / 2) as f64;
        // Six times the variance of as many single ones, on both sides.
        assert!(
            (now - first).abs() < 6.0 * (12.0 * first).sqrt(),
            "{now} after {round} rounds, {first} before"
        );
    }
    let change = halves[1] / halves[0] - 1.0;
    assert!(change.abs() < 0.15, "from {} to {} in the second level at load {load}", halves[0], halves[1]);
    assert!(members.iter().all(|key| filter.contains(key)), "a key was lost");
    filter.verify().unwrap();
    assert!(filter.stats().bits <= bits * 101 / 100, "{} bits instead of {bits}", filter.stats().bits);
}

#[test]
fn a_hundred_replacements_per_key_leave_the_second_level_as_it_was() {
    for load in [0.90, 0.95] {
        churn(load, 1.0 / 256.0, 100 * scale());
        churn(load, 0.01, 30 * scale());
        churn(load, 0.001, 30 * scale());
    }
}
