//! Catches: growth that writes, forgets repairs, resets without counting, or changes the filter when it fails; a scan
//! from which another filter is built.

use super::traps::{Literal, literal};
use super::*;
use crate::extension::testing::extension_core;
use crate::telescoping::testing::{explicit_core, telescoping_core};
use crate::testing::{CountingRemote, Fault, Faults, Faulty};
use crate::{AdaptiveError, Change, FullError, Remote};

fn accepts<F: Tested<Hasher = Xxh3>>(core: &F, number: u64) -> bool {
    core.contains(&key(number))
}

/// Fills a filter and adapts it to this many strangers.
fn fill_and_adapt<F: Tested<Hasher = Xxh3>, R: Remote>(core: &mut F, remote: &mut R, strangers: u64) {
    let n = core.capacity() as u64;
    (0..n).for_each(|number| assert!(core.insert(&key(number), remote).unwrap()));
    let strangers = n..n + strangers;
    for number in strangers {
        core.adapt(&key(number), remote).unwrap();
    }
}

/// The share of repaired queries that are accepted again after one doubling.
fn returning<F: Tested<Hasher = Xxh3>>(mut core: F) -> f64 {
    let mut remote = MemoryRemote::new();
    let n = core.capacity() as u64;
    (0..n).for_each(|number| assert!(core.insert(&key(number), &mut remote).unwrap()));
    let mut repaired = Vec::new();
    for number in n..100 * n {
        if core.adapt(&key(number), &mut remote).unwrap().is_fixed() {
            repaired.push(number);
        }
    }
    repaired.retain(|&number| !accepts(&core, number));
    assert!(repaired.len() > 5_000, "{}", repaired.len());
    core.grow(&mut remote).unwrap();
    core.check(&mut remote);
    assert!((0..n).all(|number| accepts(&core, number)));
    repaired.iter().filter(|&&number| accepts(&core, number)).count() as f64 / repaired.len() as f64
}

#[test]
fn repairs_survive_growth() {
    let of = || parameters(20_000, 8, 0.95, Overflow::Spill, 7);
    // ε/2 is 0.002.
    assert!(returning(telescoping_core(of())) < 0.003);
    assert!(returning(explicit_core(of())) < 0.003);
    assert!(returning(extension_core(of())) == 0.0);
    assert!(returning(extension_bins(of())) == 0.0);
}

/// Long runs, with codes that are full to the brim. They do not all fit where the runs are cut differently.
fn resets_of_growth<S: Scheme>(mut core: Core<S, Literal>, seed: u64) -> u64 {
    let (mut remote, mut random) = (MemoryRemote::new(), Random::new(seed));
    let mut draw = |name| literal(random.next() >> 8, random.next(), name);
    let members: Vec<_> = (0..400).map(|_| draw(0)).collect();
    for member in &members {
        core.insert(member, &mut remote).unwrap();
    }
    for _ in 0..6_000 {
        core.adapt(&draw(1), &mut remote).unwrap();
    }
    let before = core.stats();
    core.grow(&mut remote).unwrap();
    core.check(&mut remote);
    assert!(members.iter().all(|member| core.contains_digest(core.hasher.digest(member))));
    assert!(core.stats().adapted_slots > 0 && before.resets > 0);
    core.stats().resets - before.resets
}

#[test]
fn blocks_that_are_reset_by_growth_are_counted() {
    let of = |bits| parameters(950, bits, 0.95, Overflow::Reset, 9);
    let telescoping: u64 = (0..30).map(|seed| resets_of_growth(telescoping_core(of(6)), seed)).sum();
    let extension: u64 = (0..30).map(|seed| resets_of_growth(extension_core(of(6)), seed)).sum();
    assert!(telescoping > 2, "{telescoping} and {extension} blocks were reset");
}

fn doublings_write_nothing<F: Tested<Hasher = Xxh3>>(mut core: F) {
    let mut remote = CountingRemote::new(MemoryRemote::new());
    fill_and_adapt(&mut core, &mut remote, 2_000);
    let n = core.len() as u64;
    for _ in 0..8 {
        remote.take_accesses();
        core.grow(&mut remote).unwrap();
        let accesses = remote.take_accesses();
        assert_eq!((accesses.reads, accesses.pairs, accesses.writes), (1, n, 0));
        core.check(&mut remote.inner);
        assert!((0..n).all(|number| accepts(&core, number)));
        for number in 0..20 {
            assert!(!core.insert(&key(number), &mut remote).unwrap());
            assert!(core.remove(&key(number), &mut remote).unwrap());
            assert!(core.insert(&key(number), &mut remote).unwrap());
        }
        for number in 40_000..60_000 {
            core.adapt(&key(number), &mut remote).unwrap();
        }
        assert!((40_000..60_000).all(|number| !accepts(&core, number)));
        core.check(&mut remote.inner);
    }
}

#[test]
fn a_doubling_reads_everything_once_and_writes_nothing() {
    for overflow in [Overflow::Reset, Overflow::Spill] {
        doublings_write_nothing(telescoping_core(parameters(300, 12, 0.95, overflow, 7)));
        doublings_write_nothing(extension_core(parameters(300, 12, 0.95, overflow, 7)));
    }
    doublings_write_nothing(explicit_core(parameters(300, 12, 0.95, Overflow::Spill, 7)));
    for bits in [8, 12] {
        doublings_write_nothing(extension_bins(parameters(300, bits, 0.95, Overflow::Spill, 7)));
    }
}

/// A doubling whose scan fails, or lacks a key, leaves the filter as it was; a key that the filter did not know comes
/// along.
fn doublings_fail_without_harm<F: Tested<Hasher = Xxh3>>(mut core: F) {
    let mut remote = Faulty::new(MemoryRemote::new(), Faults::none());
    fill_and_adapt(&mut core, &mut remote, 2_000);
    let before = core.clone();
    for fault in [Fault::FailBefore, Fault::FailAfter, Fault::Missing, Fault::Wrong, Fault::Surplus] {
        remote.faults.light_fuse(0, fault);
        let error = core.grow(&mut remote).unwrap_err();
        let failed = matches!(fault, Fault::FailBefore | Fault::FailAfter);
        assert_eq!(matches!(error, AdaptiveError::Remote(_)), failed, "{fault:?}: {error}");
        assert!(core == before, "{fault:?}");
    }
    let unknown = key(1 << 40);
    let address = core.hasher().digest(&unknown).hi;
    remote.apply(&[Change::Insert { address, key: &unknown }]).unwrap();
    core.grow(&mut remote).unwrap();
    core.check(&mut remote.inner);
    assert!(core.contains(&unknown));
    assert!((0..before.len() as u64).all(|number| accepts(&core, number)));
}

#[test]
fn a_doubling_that_fails_leaves_the_filter_as_it_was() {
    let of = || parameters(300, 12, 0.95, Overflow::Spill, 7);
    doublings_fail_without_harm(telescoping_core(of()));
    doublings_fail_without_harm(extension_core(of()));
    doublings_fail_without_harm(explicit_core(of()));
    doublings_fail_without_harm(extension_bins(of()));
}

/// A filter from a scan is the one that grew to the same size, but for its repairs.
fn scans_make_the_same_filter<F: Tested<Hasher = Xxh3>>(mut core: F) {
    core.let_grow();
    let (empty, mut remote) = (core.clone(), CountingRemote::new(MemoryRemote::new()));
    assert!(crate::homes::from_sorted(empty.clone(), &mut remote).unwrap() == empty);
    for n in [1, 50, 299, 300, 301, 1_000, 5_000] {
        for number in core.len() as u64..n {
            core.insert(&key(number), &mut remote).unwrap();
        }
        remote.take_accesses();
        let built = crate::homes::from_sorted(empty.clone(), &mut remote).unwrap();
        let accesses = remote.take_accesses();
        assert_eq!((accesses.reads, accesses.writes), (1 + u64::from(n > 300), 0));
        assert_eq!((built.len(), built.capacity()), (core.len(), core.capacity()));
        built.check(&mut remote.inner);
    }
    let mut fixed = empty.emptied().unwrap();
    fixed.clear(&mut MemoryRemote::new()).unwrap();
}

#[test]
fn a_filter_from_a_scan_is_as_large_as_one_that_has_grown() {
    let of = || parameters(300, 12, 0.95, Overflow::Spill, 7);
    scans_make_the_same_filter(telescoping_core(of()));
    scans_make_the_same_filter(extension_core(of()));
    scans_make_the_same_filter(explicit_core(of()));
    scans_make_the_same_filter(extension_bins(of()));
    let mut remote = MemoryRemote::new();
    let mut core = telescoping_core::<Xxh3>(of());
    (0..300).for_each(|number| assert!(core.insert(&key(number), &mut remote).unwrap()));
    let small = telescoping_core::<Xxh3>(parameters(299, 12, 0.95, Overflow::Spill, 7));
    let full = FullError { len: 300, capacity: 299 };
    assert_eq!(crate::homes::from_sorted(small, &mut remote).map(drop), Err(AdaptiveError::Full(full)));
}
