//! Catches: a way back that forgets repairs, keeps what does not belong, takes away what may be stored, or cannot be
//! repeated; "was there" answered by a row that the filter has never heard of.

use super::*;
use crate::extension::testing::extension_core;
use crate::telescoping::testing::{explicit_core, telescoping_core};
use crate::testing::{Fault, Faults, Faulty};
use crate::{AdaptiveError, Change, FullError, Remote};

const PARTIAL: Authority = Authority::Partial;
const AUTHORITATIVE: Authority = Authority::Authoritative;

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

/// The strangers of a range that the filter accepts.
fn accepted<F: Tested<Hasher = Xxh3>>(core: &F) -> Vec<u64> {
    (10_000..20_000).filter(|&number| core.contains(&key(number))).collect()
}

fn put<F: Tested<Hasher = Xxh3>, R: Remote>(core: &F, bytes: &[u8], remote: &mut R) {
    let address = core.hasher().digest(bytes).hi;
    remote.apply(&[Change::Insert { address, key: bytes }]).unwrap();
}

fn all_ways_back<F: Tested<Hasher = Xxh3>>(mut core: F) {
    let mut remote = filled(&mut core, 60);
    let repairs = accepted(&core);
    // An insertion that was made and reported as failed; the key may be tried again.
    for number in 60..80 {
        let bytes = key(number);
        remote.faults.light_fuse(0, Fault::FailAfter);
        if !core.contains(&bytes) {
            assert!(core.insert(&bytes, &mut remote).is_err());
            if number % 2 == 0 {
                assert!(core.insert(&bytes, &mut remote).unwrap());
            }
        }
        remote.faults.put_out();
        for authority in [PARTIAL, AUTHORITATIVE, PARTIAL] {
            assert_eq!(core.settle(core.addresses(&bytes), authority, &mut remote).unwrap(), Settled::Agreed);
        }
        core.check(&mut remote.inner);
        assert!(core.contains(&bytes));
    }
    assert_eq!(core.stats().resets, 0);
    let returned = accepted(&core).iter().filter(|number| !repairs.contains(number)).count();
    // Only new keys collide with what was repaired.
    assert!(returned < 400, "{returned}");
    // A removal that was made and reported as failed leaves an item that has no key.
    for number in 0..20 {
        let bytes = key(number);
        remote.faults.light_fuse(1, Fault::FailAfter);
        assert!(core.remove(&bytes, &mut remote).is_err());
        let in_question = core.settle(core.addresses(&bytes), PARTIAL, &mut remote).unwrap();
        assert_eq!(in_question, Settled::InQuestion { slots: 1 });
        assert!(core.contains(&bytes));
        if number % 2 == 0 {
            put(&core, &bytes, &mut remote);
            assert_eq!(core.settle(core.addresses(&bytes), PARTIAL, &mut remote).unwrap(), Settled::Agreed);
        }
        assert_eq!(core.settle(core.addresses(&bytes), AUTHORITATIVE, &mut remote).unwrap(), Settled::Agreed);
        core.check(&mut remote.inner);
    }
}

#[test]
fn what_failed_half_way_is_taken_in_or_stays_in_question() {
    let of = || parameters(100, 8, 0.95, Overflow::Spill, 7);
    all_ways_back(telescoping_core(of()));
    all_ways_back(extension_core(of()));
    all_ways_back(explicit_core(of()));
    all_ways_back(extension_bins(of()));
}

/// Many keys are written and removed behind the filter's back; one settling of everything makes it right, and keeps
/// repairs.
fn catching_up<F: Tested<Hasher = Xxh3>>(mut core: F) {
    core.let_grow();
    let mut remote = filled(&mut core, 3_000);
    let repaired: Vec<u64> = (10_000..20_000).filter(|&number| !core.contains(&key(number))).collect();
    for number in 0..500 {
        let address = core.hasher().digest(&key(number)).hi;
        remote.apply(&[Change::Remove { address, key: &key(number) }]).unwrap();
        put(&core, &key(5_000 + number), &mut remote);
    }
    let partial = core.settle(0..=u64::MAX, PARTIAL, &mut remote).unwrap();
    assert!(matches!(partial, Settled::InQuestion { slots: 400..=500 }), "{partial:?}");
    assert!((500..3_000).chain(5_000..5_500).all(|number| core.contains(&key(number))));
    assert_eq!(core.settle(0..=u64::MAX, AUTHORITATIVE, &mut remote).unwrap(), Settled::Agreed);
    core.check(&mut remote.inner);
    let returned = repaired.iter().filter(|&&number| core.contains(&key(number))).count();
    assert!(returned < 40, "{returned} of {} repairs are back", repaired.len());
}

#[test]
fn a_filter_catches_up_with_its_store() {
    let of = || parameters(3_600, 8, 0.95, Overflow::Spill, 7);
    catching_up(telescoping_core(of()));
    catching_up(extension_core(of()));
    catching_up(explicit_core(of()));
    catching_up(extension_bins(of()));
}

fn a_way_back_that_fails<F: Tested<Hasher = Xxh3>>(of: impl Fn(Parameters) -> F) {
    for fault in [Fault::FailBefore, Fault::FailAfter] {
        let mut core = of(parameters(100, 8, 0.95, Overflow::Spill, 7));
        let mut remote = filled(&mut core, 90);
        put(&core, &key(95), &mut remote);
        let before = core.clone();
        remote.faults.light_fuse(0, fault);
        let addresses = core.addresses(&key(95));
        let failed = core.settle(addresses.clone(), AUTHORITATIVE, &mut remote);
        assert!(matches!(failed, Err(AdaptiveError::Remote(_))), "{fault:?}");
        assert!(core == before);
        assert_eq!(core.settle(addresses, AUTHORITATIVE, &mut remote).unwrap(), Settled::Agreed);
        core.check(&mut remote.inner);
    }
}

#[test]
fn a_way_back_that_fails_can_be_taken_again() {
    a_way_back_that_fails(telescoping_core);
    a_way_back_that_fails(extension_core);
    a_way_back_that_fails(extension_bins);
}

/// Codes that are full to the brim overflow when keys are taken in, one way or the other, and the blocks that are reset
/// have keys of other homes too. Returns how often that happened on either way.
fn reset_on_the_way<F: Tested<Hasher = Xxh3>>(mut core: F) -> [u64; 2] {
    let mut remote = filled(&mut core, 150);
    let mut resets = [0; 2];
    for number in 150..280 {
        let bytes = key(number);
        let (before, way) = (core.stats().resets, number as usize % 2);
        if way == 0 {
            put(&core, &bytes, &mut remote);
            assert_eq!(core.settle(core.addresses(&bytes), PARTIAL, &mut remote).unwrap(), Settled::Agreed);
        } else {
            core.insert(&bytes, &mut remote).unwrap();
        }
        resets[way] += core.stats().resets - before;
        core.check(&mut remote.inner);
        for stranger in 0..100 {
            core.adapt(&key(1_000 * number + stranger), &mut remote).unwrap();
        }
    }
    assert!((0..280).all(|number| core.contains(&key(number))));
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
    put(&core, &key(777), &mut remote);
    let full = FullError { len: 50, capacity: 50 };
    let addresses = core.addresses(&key(777));
    assert_eq!(core.settle(addresses.clone(), PARTIAL, &mut remote), Err(AdaptiveError::Full(full)));
    assert_eq!(core.len(), 50);
    core.let_grow();
    assert_eq!(core.settle(addresses, PARTIAL, &mut remote), Ok(Settled::Agreed));
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

/// A row that was committed before the filter learnt of the key, where another key's item accepts it: it gets its own,
/// or the other key's removal would take it along.
fn rows_before_keys<F: Tested<Hasher = Xxh3>>(mut core: F) {
    let mut remote = MemoryRemote::new();
    core.insert(b"key", &mut remote).unwrap();
    let twin = (0..).map(key).find(|bytes| core.contains(bytes)).unwrap();
    put(&core, &twin, &mut remote);
    assert!(core.insert(&twin, &mut remote).unwrap(), "its row was taken for its item");
    assert!(!core.insert(&twin, &mut remote).unwrap());
    assert_eq!(core.len(), 2);
    core.check(&mut remote);
    assert!(core.remove(b"key", &mut remote).unwrap());
    assert!(core.contains(&twin), "two keys shared an item");
    // The other way round: the row of a key that the filter has never heard of is removed, and nothing else.
    let other = (1 << 30..).map(key).find(|bytes| core.contains(bytes)).unwrap();
    put(&core, &other, &mut remote);
    assert!(!core.remove(&other, &mut remote).unwrap());
    assert_eq!((core.len(), remote.len()), (1, 1));
    core.check(&mut remote);
    // A repair next to a row that the filter has never heard of gives that key an item first.
    put(&core, &other, &mut remote);
    let third = (1 << 40..).map(key).find(|bytes| core.contains(bytes)).unwrap();
    assert!(core.adapt(&third, &mut remote).unwrap().is_fixed());
    assert!(core.contains(&twin) && core.contains(&other) && !core.contains(&third));
}

#[test]
fn a_row_that_was_written_before_is_no_item() {
    for seed in 0..50 {
        let of = || parameters(10, 2, 0.95, Overflow::Spill, seed);
        rows_before_keys(telescoping_core(of()));
        rows_before_keys(extension_core(of()));
        rows_before_keys(explicit_core(of()));
        rows_before_keys(extension_bins(of()));
    }
}
