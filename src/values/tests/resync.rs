//! Catches: a way back that forgets repairs, keeps what does not belong, believes in too little, or cannot be repeated.

use super::*;
use crate::extension::testing::extension_core;
use crate::telescoping::testing::{explicit_core, telescoping_core};
use crate::testing::{Fault, Faults, Faulty};
use crate::{AdaptiveError, Change, FullError, Remote, Resync};

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

/// A filter with keys and repairs, and its remote.
fn filled<F: Tested<Hasher = Xxh3>>(core: &mut F, keys: u64) -> Faulty<MemoryRemote> {
    let mut remote = Faulty::new(MemoryRemote::new(), Faults::none());
    for number in 0..keys {
        core.insert(&key(number), &mut remote).unwrap();
    }
    for number in 10_000..20_000 {
        core.adapt(&key(number), &mut remote).unwrap();
    }
    remote
}

fn address_of<F: Tested<Hasher = Xxh3>>(core: &F, bytes: &[u8]) -> u64 {
    core.address_of(core.hasher().digest(bytes))
}

fn accepts<F: Tested<Hasher = Xxh3>>(core: &F, bytes: &[u8]) -> bool {
    core.contains(bytes)
}

/// The strangers of a range that the filter accepts.
fn accepted<F: Tested<Hasher = Xxh3>>(core: &F) -> Vec<u64> {
    (10_000..20_000).filter(|&number| accepts(core, &key(number))).collect()
}

fn all_ways_back<F: Tested<Hasher = Xxh3>>(mut core: F) {
    let mut remote = filled(&mut core, 60);
    let repairs = accepted(&core);
    // An insertion that was made and reported as failed; the key may be tried again, and pushed twice then.
    for number in 60..80 {
        remote.faults.light_fuse(0, Fault::FailAfter);
        if !accepts(&core, &key(number)) {
            assert!(core.insert(&key(number), &mut remote).is_err());
            if number % 2 == 0 {
                core.insert(&key(number), &mut remote).unwrap();
            }
        }
        remote.faults.put_out();
        let address = address_of(&core, &key(number));
        assert_eq!(core.resync(&[address], &mut remote).unwrap(), Resync::Agreed);
        assert_eq!(core.resync(&[address], &mut remote).unwrap(), Resync::Agreed);
        core.check(&mut remote.inner);
        assert!(accepts(&core, &key(number)) && remote.inner.iter().any(|(_, other)| other == key(number)));
    }
    assert_eq!(core.stats().resets, 0);
    let returned = accepted(&core).iter().filter(|number| !repairs.contains(number)).count();
    // Only new keys collide with what was repaired.
    assert!(returned < 400, "{returned}");
    // A removal that was made and reported as failed leaves a slot that no key explains.
    let mut questioned = 0;
    for number in 0..20 {
        remote.faults.light_fuse(1, Fault::FailAfter);
        assert!(core.remove(&key(number), &mut remote).is_err());
        let address = address_of(&core, &key(number));
        if core.resync(&[address], &mut remote).unwrap() == (Resync::InQuestion { slots: 1 }) {
            questioned += 1;
            assert!(accepts(&core, &key(number)));
            remote.inner.apply(&[Change::Push { address, key: &key(number) }]).unwrap();
            assert_eq!(core.resync(&[address], &mut remote).unwrap(), Resync::Agreed);
        }
        core.check(&mut remote.inner);
    }
    assert!(questioned > 15, "{questioned}");
}

#[test]
fn what_failed_half_way_is_taken_in_or_stays_in_question() {
    let of = || parameters(100, 8, 0.95, Overflow::Spill, 7);
    all_ways_back(telescoping_core(of()));
    all_ways_back(extension_core(of()));
    all_ways_back(explicit_core(of()));
    all_ways_back(extension_bins(of()));
}

/// Lists in any order, with keys of other addresses among them: repairs of known keys stay.
fn scrambled_lists<F: Tested<Hasher = Xxh3>>(mut core: F) {
    let mut remote = filled(&mut core, 95);
    let accepted_before = accepted(&core);
    let mut random = Random::new(3);
    let mut moved = 0;
    for _ in 0..300 {
        let entries: Vec<(u64, Vec<u8>)> =
            remote.inner.iter().map(|(address, key)| (address, key.to_vec())).collect();
        let (from, bytes) = entries[random.below(95) as usize].clone();
        let (to, _) = entries[random.below(95) as usize];
        let to = [from, to, 7 << 48 | 3][random.below(3) as usize];
        let list: Vec<&[u8]> =
            entries.iter().filter(|entry| entry.0 == from).map(|entry| &*entry.1).collect();
        let rank = list.iter().position(|other| *other == bytes).unwrap();
        remote
            .apply(&[
                Change::Remove { address: from, rank, key: &bytes },
                Change::Push { address: to, key: &bytes },
            ])
            .unwrap();
        moved += usize::from(core.verify_remote(&mut remote).is_err());
        // A key that is away from home leads there by itself.
        let addresses = if random.one_in(2) { vec![from, to] } else { vec![to] };
        assert_eq!(core.resync(&addresses, &mut remote).unwrap(), Resync::Agreed);
        core.check(&mut remote.inner);
    }
    assert!(moved > 100);
    if core.stats().resets == 0 {
        assert_eq!(accepted(&core), accepted_before, "a repair was forgotten");
    }
    assert!((0..95).all(|number| accepts(&core, &key(number))));
}

#[test]
fn keys_are_brought_home_and_keep_their_repairs() {
    for (bits, overflow) in [(8, Overflow::Spill), (4, Overflow::Spill), (3, Overflow::Reset)] {
        let of = || parameters(100, bits, 0.95, overflow, 7);
        scrambled_lists(telescoping_core(of()));
        scrambled_lists(extension_core(of()));
        scrambled_lists(explicit_core(of()));
        if overflow == Overflow::Spill {
            scrambled_lists(extension_bins(of()));
        }
    }
}

fn ways_back_that_fail<F: Tested<Hasher = Xxh3>>(of: impl Fn(Parameters) -> F) {
    for fault in Fault::HONEST.into_iter().filter(|fault| !format!("{fault:?}").starts_with("Panic")) {
        let mut core = of(parameters(100, 8, 0.95, Overflow::Spill, 7));
        let mut remote = filled(&mut core, 90);
        let (home, bytes) = remote.inner.iter().last().map(|(at, key)| (at, key.to_vec())).unwrap();
        let rank = remote.inner.iter().filter(|entry| entry.0 == home).count() - 1;
        let away = home - 1;
        // The key is away from home, and one more is there twice.
        let changes = [
            Change::Remove { address: home, rank, key: &bytes },
            Change::Push { address: away, key: &bytes },
            Change::Push { address: away, key: &bytes },
        ];
        remote.apply(&changes).unwrap();
        let before = core.clone();
        remote.faults.light_fuse(2, fault);
        assert!(matches!(core.resync(&[away], &mut remote), Err(AdaptiveError::Remote(_))), "{fault:?}");
        assert!(core == before);
        assert_eq!(core.resync(&[away, home], &mut remote).unwrap(), Resync::Agreed);
        core.check(&mut remote.inner);
    }
}

#[test]
fn a_way_back_that_fails_can_be_taken_again() {
    ways_back_that_fail(telescoping_core);
    ways_back_that_fail(extension_bins);
}

/// Codes that are full to the brim overflow when keys are taken in, one way or the other, and the blocks that are reset
/// have keys of other lists too. Returns how often that happened on either way.
fn reset_on_the_way<F: Tested<Hasher = Xxh3>>(mut core: F) -> [u64; 2] {
    let mut remote = filled(&mut core, 150);
    let mut resets = [0; 2];
    for number in 150..280 {
        let (bytes, address) = (key(number), address_of(&core, &key(number)));
        let (before, way) = (core.stats().resets, number as usize % 2);
        if way == 0 {
            remote.apply(&[Change::Push { address, key: &bytes }]).unwrap();
            assert_eq!(core.resync(&[address], &mut remote).unwrap(), Resync::Agreed);
        } else {
            core.insert(&bytes, &mut remote).unwrap();
        }
        resets[way] += core.stats().resets - before;
        core.check(&mut remote.inner);
        for stranger in 0..100 {
            core.adapt(&key(1_000 * number + stranger), &mut remote).unwrap();
        }
    }
    assert!((0..280).all(|number| accepts(&core, &key(number))));
    resets
}

#[test]
fn blocks_that_are_reset_on_the_way_have_the_remainders_of_their_keys() {
    let mut resets = [0; 2];
    for seed in 0..20 {
        let of = |bits| parameters(300, bits, 0.95, Overflow::Reset, seed);
        for bits in [2, 3] {
            let more = reset_on_the_way(telescoping_core(of(bits)));
            resets = [resets[0] + more[0], resets[1] + more[1]];
        }
        reset_on_the_way(extension_core(of(3)));
        reset_on_the_way(explicit_core(of(3)));
    }
    assert!(resets[0] > 3 && resets[1] > 3, "{resets:?}");
}

fn a_full_filter<F: Tested<Hasher = Xxh3>>(mut core: F) {
    let mut remote = filled(&mut core, 50);
    let address = address_of(&core, &key(777));
    remote.apply(&[Change::Push { address, key: &key(777) }]).unwrap();
    let full = FullError { len: 50, capacity: 50 };
    assert_eq!(core.resync(&[address], &mut remote), Err(AdaptiveError::Full(full)));
    assert_eq!(core.len(), 50);
    core.let_grow();
    assert_eq!(core.resync(&[address], &mut remote), Ok(Resync::Agreed));
    assert_eq!(core.len(), 51);
    core.insert(&key(778), &mut remote).unwrap();
    assert_eq!(core.capacity(), 100);
    core.check(&mut remote.inner);
}

#[test]
fn a_full_filter_takes_no_key_in_unless_it_grows() {
    a_full_filter(extension_core(parameters(50, 8, 0.95, Overflow::Spill, 7)));
    a_full_filter(extension_bins(parameters(50, 8, 0.95, Overflow::Spill, 7)));
}
