//! Catches: growth that writes what it need not, forgets repairs, resets without counting, or leaves filter and lists
//! apart when it fails.

use super::traps::{Literal, literal};
use super::*;
use crate::extension::testing::extension_core;
use crate::ground::MAX_KEPT;
use crate::telescoping::testing::{explicit_core, telescoping_core};
use crate::testing::{CountingRemote, Fault, Faults, Faulty};
use crate::{AdaptiveError, Remote, Resync};

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

fn accepts<F: Tested<Hasher = Xxh3>>(core: &F, number: u64) -> bool {
    core.contains(&key(number))
}

/// Fills a filter and adapts it to so many strangers.
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
    for doubling in 1..=2 * (MAX_KEPT + 1) {
        remote.take_accesses();
        core.grow(&mut remote).unwrap();
        let accesses = remote.take_accesses();
        if doubling % (MAX_KEPT + 1) == 0 {
            // Each key is written once and removed once, in groups.
            assert_eq!(accesses.changes, 2 * n);
            assert!(accesses.writes <= 2 * (n / 256 + 1) && accesses.reads <= 2 * n, "{accesses:?}");
        } else {
            assert_eq!((accesses.reads, accesses.writes, accesses.scans), (0, 0, 1));
        }
        core.check(&mut remote.inner);
        assert!((0..n).all(|number| accepts(&core, number)));
        // Lists of several quotients serve every operation.
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
fn a_doubling_writes_nothing_until_lists_are_renewed() {
    for overflow in [Overflow::Reset, Overflow::Spill] {
        doublings_write_nothing(telescoping_core(parameters(300, 12, 0.95, overflow, 7)));
        doublings_write_nothing(extension_core(parameters(300, 12, 0.95, overflow, 7)));
    }
    doublings_write_nothing(explicit_core(parameters(300, 12, 0.95, Overflow::Spill, 7)));
    for bits in [8, 12] {
        doublings_write_nothing(extension_bins(parameters(300, bits, 0.95, Overflow::Spill, 7)));
    }
}

/// A renewal that fails at any of its accesses leaves the filter and its lists, and what it left behind is removed.
fn renewals_fail_without_harm<F: Tested<Hasher = Xxh3>>(of: impl Fn() -> F, fault: Fault) {
    let mut core = of();
    let mut remote = Faulty::new(MemoryRemote::new(), Faults::none());
    let n = core.capacity() as u64;
    (0..n).for_each(|number| assert!(core.insert(&key(number), &mut remote).unwrap()));
    (0..MAX_KEPT).for_each(|_| core.grow(&mut remote).unwrap());
    let (mut fuse, mut leftovers) = (0, 0);
    loop {
        let (mut filter, mut remote) = (core.clone(), remote.clone());
        remote.faults.light_fuse(fuse, fault);
        let grown = filter.grow(&mut remote);
        remote.faults.put_out();
        let clean = filter.verify_remote(&mut remote).is_ok();
        leftovers += usize::from(!clean);
        match &grown {
            Ok(()) => assert_eq!(filter.capacity(), 2 * core.capacity()),
            Err(error) => {
                assert!(matches!(error, AdaptiveError::Remote(_)), "{error}");
                assert!(filter == core);
            }
        }
        // All operations go on beside what was left behind.
        assert!((0..n).all(|number| !filter.insert(&key(number), &mut remote).unwrap()));
        assert!(filter.remove(&key(0), &mut remote).unwrap());
        let stale: Vec<u64> = remote.inner.iter().map(|(address, _)| address).collect();
        if !clean && fuse % 2 == 0 {
            assert_eq!(filter.resync(&stale, &mut remote).unwrap(), Resync::Agreed);
            assert_eq!(filter.len() as u64, n - 1, "a removed key came back");
        } else {
            while filter.kept() != 0 || !clean && filter.verify_remote(&mut remote).is_err() {
                filter.grow(&mut remote).unwrap();
            }
        }
        filter.check(&mut remote.inner);
        assert!((1..n).all(|number| accepts(&filter, number)));
        if grown.is_ok() && clean {
            break;
        }
        fuse += 1;
    }
    assert!(fuse > 20 && (leftovers > 0 || fault == Fault::FailBefore), "{fuse} accesses, {leftovers}");
}

#[test]
fn a_renewal_that_fails_leaves_filter_and_lists_intact() {
    for fault in [Fault::FailBefore, Fault::FailAfter, Fault::FailMiddle] {
        let of = || parameters(300, 12, 0.95, Overflow::Spill, 7);
        renewals_fail_without_harm(|| telescoping_core(of()), fault);
        renewals_fail_without_harm(|| extension_core(of()), fault);
        renewals_fail_without_harm(|| extension_bins(of()), fault);
    }
}
