//! Growth and merging, and what a failure in the middle of them leaves.
//!
//! Catches: a key that is lost on the way, old lists that are taken for new ones, a failed growth that the filter or
//! its remote does not survive, memory or groups in proportion to the keys.
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::core::Core;
use super::super::on_bins::BroomBins;
use super::super::on_quotients::BroomQuotients;
use super::super::table::BroomTable;
use super::{FaultyRemote, bins, coarse_bins, large, small};
use crate::testing::{CountingRemote, Fault, Faults, Faulty, Random};
use crate::{
    Adaptive, AdaptiveError, BroomFilter, Filter, Growable, KeyHasher, MemoryRemote, Remote, SipHash, Xxh3,
};

use super::super::builder::Blueprint;

fn growable<G: BroomTable>(blueprint: Blueprint<G::Cut>, capacity: usize, seed: u64) -> Core<G, Xxh3> {
    Core::from_blueprint(blueprint, capacity, true, Xxh3::with_seed(seed.into()), 0).unwrap()
}

fn check<F: Adaptive, R: Remote>(filter: &F, remote: &mut R, keys: impl IntoIterator<Item = u64>) {
    filter.verify().unwrap();
    filter.verify_remote(remote).unwrap();
    assert!(keys.into_iter().all(|key| filter.contains(&key)));
}

#[test]
fn growing_filters_hold_all_keys_and_leave_no_old_lists() {
    fn check_on<G: BroomTable>(blueprint: Blueprint<G::Cut>, seed: u64) {
        let (mut filter, mut remote) = (growable::<G>(blueprint, 5, seed), MemoryRemote::new());
        for key in 0..1_000_u64 {
            assert!(filter.insert(&key, &mut remote).unwrap());
            if filter.contains(&(key + 10_000)) {
                assert!(filter.adapt(&(key + 10_000), &mut remote).unwrap().is_fixed());
            }
            assert_eq!((filter.len(), remote.len()), (key as usize + 1, key as usize + 1));
        }
        assert!(
            filter.growths >= 8 && filter.capacity() >= 1_000 && filter.stats().rebuilds == filter.growths
        );
        check(&filter, &mut remote, 0..1_000);
    }
    check_on::<BroomQuotients>(small(3, 0.9), 21);
    check_on::<BroomQuotients>(small(8, 0.9), 22);
    check_on::<BroomQuotients>(large(2, 3, 0.7), 23);
    check_on::<BroomBins>(bins(3, 0.9), 24);
    check_on::<BroomBins>(coarse_bins(8, 1.3), 25);
}

#[test]
fn a_repair_survives_growth_with_probability_epsilon_at_worst() {
    survive::<BroomQuotients>(small(5, 0.9));
    survive::<BroomBins>(bins(5, 0.9));
}

fn survive<G: BroomTable>(blueprint: Blueprint<G::Cut>) {
    let (mut filter, mut remote) = (growable::<G>(blueprint, 4_000, 7), MemoryRemote::new());
    (0..4_000_u64).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
    let repaired: Vec<u64> =
        (10_000..200_000).filter(|key| filter.adapt(key, &mut remote).unwrap().is_fixed()).collect();
    let back = |filter: &Core<G, Xxh3>| repaired.iter().filter(|key| filter.contains(*key)).count();
    filter.grow(&mut remote).unwrap();
    let (back, rate) = (back(&filter), 0.45 / 32.0);
    println!("{back} of {} repairs are back after growth, ε = {rate:.4}", repaired.len());
    assert!((back as f64) < 1.3 * rate * repaired.len() as f64, "{back} of {}", repaired.len());
}

#[test]
fn growth_works_in_groups() {
    grow_in_groups::<BroomQuotients>(small(8, 0.9));
    grow_in_groups::<BroomBins>(bins(8, 0.9));
}

fn grow_in_groups<G: BroomTable>(blueprint: Blueprint<G::Cut>) {
    let mut filter: Core<G, Xxh3> = growable(blueprint, 20_000, 8);
    let mut remote = CountingRemote::new(MemoryRemote::new());
    (0..20_000_u64).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
    remote.take_accesses();
    filter.grow(&mut remote).unwrap();
    let accesses = remote.take_accesses();
    println!("doubling 20000 keys: {accesses:?}");
    assert!(accesses.writes >= accesses.changes / 300, "{accesses:?}");
    assert!(
        accesses.changes <= 2 * 20_000 + 1_000 && accesses.reads <= 3 * filter.local.quotients(),
        "{accesses:?}"
    );
    check(&filter, &mut remote, 0..20_000);
    assert_eq!(remote.inner.len(), 20_000);
}

/// A filter of so many keys with a remote in which nothing goes wrong yet.
fn filled<G: BroomTable>(
    blueprint: Blueprint<G::Cut>,
    keys: usize,
    seed: u64,
) -> (Core<G, Xxh3>, FaultyRemote) {
    let mut filter = growable(blueprint, keys, seed);
    let mut remote = Faulty::new(MemoryRemote::new(), Faults::none());
    (0..keys as u64).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
    (filter, remote)
}

#[test]
fn a_growth_that_fails_anywhere_changes_nothing_and_can_be_repeated() {
    grow_and_fail::<BroomQuotients>(small(3, 0.9));
    grow_and_fail::<BroomQuotients>(large(2, 2, 0.6));
    grow_and_fail::<BroomBins>(bins(3, 0.9));
}

fn grow_and_fail<G: BroomTable>(blueprint: Blueprint<G::Cut>) {
    let (start, start_remote) = filled::<G>(blueprint, 300, 9);
    let (mut failed, mut done) = (0, 0);
    for accesses in (0..1_400).step_by(3) {
        let fault = Fault::ALL[accesses as usize / 3 % Fault::ALL.len()];
        let (mut filter, mut remote) = (start.clone(), start_remote.clone());
        remote.faults.light_fuse(accesses, fault);
        let grown = catch_unwind(AssertUnwindSafe(|| filter.grow(&mut remote)));
        remote.faults.put_out();
        if matches!(grown, Ok(Ok(()))) {
            done += 1;
        } else if filter.capacity() == 300 {
            // A panic in the removal of the old lists comes when the growth is done.
            failed += 1;
            assert!(filter == start, "{fault:?} after {accesses} accesses left traces");
        }
        filter.verify().unwrap();
        assert!((0..300_u64).all(|key| filter.contains(&key)));
        // Only a list that lied while leftovers were removed can have kept one of them.
        filter.verify_remote(&mut remote).unwrap();
        filter.grow(&mut remote).unwrap();
        check(&filter, &mut remote, 0..300);
        assert!(remote.inner.len() <= 301 && filter.capacity() >= 600);
    }
    assert!(failed > 50 && done > 50, "{failed} failed, {done} done");
}

#[test]
fn clear_removes_what_a_failed_growth_left() {
    // After the first group of the new lists was written, and before the last one.
    let mut failed = (200..).map(|accesses| {
        let (mut filter, mut remote) = filled::<BroomQuotients>(small(3, 0.9), 300, 10);
        remote.faults.light_fuse(accesses, Fault::FailBefore);
        filter.grow(&mut remote).unwrap_err();
        (filter, remote)
    });
    let (mut filter, mut remote) = failed.find(|(_, remote)| remote.inner.len() > 300).unwrap();
    filter.clear(&mut remote).unwrap();
    assert!(remote.inner.is_empty());
}

#[test]
fn filters_of_any_table_seed_hash_and_rate_merge() {
    use crate::Table::{Bins, Quotient};
    for (table, other) in [(Quotient, Quotient), (Quotient, Bins), (Bins, Quotient), (Bins, Bins)] {
        merge(table, other);
    }
}

fn merge(table: crate::Table, other: crate::Table) {
    let builder = BroomFilter::builder().capacity(300).false_positive_rate(0.1).growable().seed(11_u64);
    let (mut left, mut left_remote) = (builder.table(table).build().unwrap(), MemoryRemote::new());
    let builder =
        BroomFilter::builder().capacity(500).false_positive_rate(1e-4).hasher::<SipHash>().table(other);
    let (mut right, mut right_remote) = (builder.seed(12_u64).build().unwrap(), MemoryRemote::new());
    let mut random = Random::new(13);
    let mut union = std::collections::BTreeSet::new();
    for _ in 0..300 {
        let key = random.below(1_000);
        union.insert(key);
        left.insert(&key, &mut left_remote).unwrap();
    }
    for _ in 0..500 {
        let key = random.below(1_000);
        union.insert(key);
        right.insert(&key, &mut right_remote).unwrap();
    }
    let (before, keys) = (right.len(), union.len());
    left.merge(&right, &mut right_remote, &mut left_remote).unwrap();
    assert_eq!((left.len(), left_remote.len(), left.capacity()), (keys, keys, 600));
    assert_eq!((right.len(), right_remote.len()), (before, before));
    check(&left, &mut left_remote, union);
    right.verify_remote(&mut right_remote).unwrap();
}

#[test]
fn a_union_that_does_not_fit_is_refused() {
    let (start, remote) = filled::<BroomQuotients>(small(3, 0.9), 300, 14);
    let mut left = Core { growable: false, ..start.clone() };
    let mut left_remote = remote.inner;
    let (mut right, mut right_remote) = (growable::<BroomBins>(bins(3, 0.9), 10, 15), MemoryRemote::new());
    right.insert(&5_u64, &mut right_remote).unwrap();
    left.merge(&right, &mut right_remote, &mut left_remote).unwrap();
    assert_eq!((left.len(), left.capacity()), (300, 300), "both have the key");
    right.insert(&999_u64, &mut right_remote).unwrap();
    let before = left.clone();
    let error = left.merge(&right, &mut right_remote, &mut left_remote).unwrap_err();
    assert!(matches!(error, AdaptiveError::Full(full) if full.len == 300), "{error}");
    assert!(left == before);
    check(&left, &mut left_remote, 0..300);
    // A remote that lacks a key of its filter is no source.
    let mut empty = MemoryRemote::new();
    let error = left.merge(&right, &mut empty, &mut left_remote).unwrap_err();
    assert!(matches!(error, AdaptiveError::Inconsistent { .. }), "{error}");
    check(&left, &mut left_remote, 0..300);
}
