//! Catches: keys of the remote that are believed although they are not those of the slots.

use std::ops::ControlFlow;

use super::*;
use crate::extension::testing::extension_core;
use crate::telescoping::testing::{explicit_core, telescoping_core};
use crate::{AdaptiveError, Change, Remote};

/// A filter with keys, its remote, and a stranger that it accepts.
fn accepted_stranger<F: Tested<Hasher = Xxh3>>(core: &mut F, remote: &mut MemoryRemote) -> ([u8; 8], u64) {
    for number in 0..core.capacity() as u64 {
        core.insert(&number.to_le_bytes(), remote).unwrap();
    }
    let contains = |number: &u64| core.contains(&number.to_le_bytes());
    let stranger = (1_000_000..).find(contains).unwrap().to_le_bytes();
    (stranger, core.address_of(core.hasher().digest(&stranger)))
}

fn keys_at(remote: &mut MemoryRemote, address: u64) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    remote.read(address, &mut |key| keys.push(key.to_vec())).unwrap();
    keys
}

/// All that reads this list must refuse it, and change nothing.
fn is_refused<F: Tested<Hasher = Xxh3>>(core: &F, remote: &mut MemoryRemote, stranger: &[u8], address: u64) {
    let is_inconsistent = |result: Result<(), AdaptiveError<_>>| {
        let error = result.expect_err("the list was believed");
        assert!(matches!(error, AdaptiveError::Inconsistent { address: at, .. } if at == address), "{error}");
    };
    let mut filter = core.clone();
    is_inconsistent(filter.adapt(stranger, remote).map(drop));
    is_inconsistent(filter.remove(stranger, remote).map(drop));
    // A list that is empty is left to the others: an insertion needs nothing of it.
    if !keys_at(remote, address).is_empty() {
        is_inconsistent(filter.insert(stranger, remote).map(drop));
    }
    is_inconsistent(filter.grow(remote));
    is_inconsistent(filter.verify_remote(remote));
    assert!(filter == *core, "a refused operation has changed the filter");
}

fn every_lie_is_noticed<F: Tested<Hasher = Xxh3>>(mut core: F) {
    let mut honest = MemoryRemote::new();
    let (stranger, address) = accepted_stranger(&mut core, &mut honest);
    let keys = keys_at(&mut honest, address);
    let (last, key) = (keys.len() - 1, &keys[keys.len() - 1]);
    // A key of the same list that the filter does not take for a stored one.
    let neighbour = (2_000_000_u64..).map(u64::to_le_bytes).find(|other| {
        let home = core.address_of(core.hasher().digest(other));
        home == address && !core.contains(other)
    });
    let neighbour = neighbour.unwrap();
    let elsewhere = 3_000_000_u64.to_le_bytes();
    let lies: [&[Change<'_>]; 6] = [
        &[Change::Replace { address, rank: last, old: key, key: &neighbour }],
        &[Change::Replace { address, rank: last, old: key, key: &elsewhere }],
        &[Change::Remove { address, rank: last, key }],
        &[Change::Push { address, key: &elsewhere }],
        &[Change::Push { address, key: &neighbour }],
        &[Change::Push { address, key }],
    ];
    for lie in lies {
        let mut remote = honest.clone();
        remote.apply(lie).unwrap();
        is_refused(&core, &mut remote, &stranger, address);
    }
    core.check(&mut honest);
}

#[test]
fn a_list_with_another_key_is_refused() {
    let of = || parameters(200, 8, 0.95, Overflow::Spill, 7);
    every_lie_is_noticed(telescoping_core(of()));
    every_lie_is_noticed(extension_core(of()));
    every_lie_is_noticed(explicit_core(of()));
    every_lie_is_noticed(extension_bins(of()));
}

#[test]
fn a_key_that_stands_twice_is_refused_even_if_there_is_a_slot_for_it() {
    let mut core = extension_core::<Xxh3>(parameters(10, 8, 0.95, Overflow::Spill, 7));
    let mut remote = MemoryRemote::new();
    core.insert(b"key", &mut remote).unwrap();
    let (quotient, _) = core.locate(core.hasher.digest(b"key"));
    let slot = core.table.run(quotient).unwrap().first;
    core.table.insert(quotient, core.table.remainder(slot)).unwrap();
    remote.apply(&[Change::Push { address: core.addresses.of(quotient), key: b"key" }]).unwrap();
    assert!(matches!(core.verify_remote(&mut remote), Err(AdaptiveError::Inconsistent { .. })));
}

fn a_value_of_another_key<F: Tested<Hasher = Xxh3>>(mut core: F) {
    let mut remote = MemoryRemote::new();
    core.insert(b"key", &mut remote).unwrap();
    let twin = (0_u64..).map(u64::to_le_bytes).find(|bytes| core.contains(bytes)).unwrap();
    assert!(core.adapt(&twin, &mut remote).unwrap().is_fixed());
    let address = core.address_of(core.hasher().digest(b"key"));
    remote.apply(&[Change::Replace { address, rank: 0, old: b"key", key: &twin }]).unwrap();
    assert!(matches!(core.verify_remote(&mut remote), Err(AdaptiveError::Inconsistent { .. })));
}

/// An extension that is not the key's, although the fingerprint is.
#[test]
fn an_item_whose_value_is_another_keys_is_noticed() {
    a_value_of_another_key(extension_core(parameters(10, 2, 0.95, Overflow::Spill, 7)));
    a_value_of_another_key(extension_bins(parameters(10, 2, 0.95, Overflow::Spill, 7)));
}

/// A key under an address without a run, which only a scan can see.
fn stored_keys_without_a_slot_are_seen<F: Tested<Hasher = Xxh3>>(mut core: F) {
    let mut remote = MemoryRemote::new();
    for number in 0..50_u64 {
        core.insert(&number.to_le_bytes(), &mut remote).unwrap();
    }
    core.check(&mut remote);
    let addresses = core.addresses();
    let address_of = |number: u64| core.address_of(core.hasher().digest(&number.to_le_bytes()));
    let lost = (100..).find(|&number| !addresses.contains(&address_of(number))).unwrap();
    let (lost, address) = (lost.to_le_bytes(), address_of(lost));
    for address in [address, 1 << 40, 3 << 48, u64::MAX] {
        let mut remote = remote.clone();
        remote.apply(&[Change::Push { address, key: &lost }]).unwrap();
        let error = core.verify_remote(&mut remote).unwrap_err();
        assert_eq!(error, AdaptiveError::Inconsistent { address, expected: 0, found: 1 });
    }
    // And a slot without a key.
    let (address, key) = remote.iter().last().map(|(address, key)| (address, key.to_vec())).unwrap();
    let rank = keys_at(&mut remote, address).len() - 1;
    remote.apply(&[Change::Remove { address, rank, key: &key }]).unwrap();
    assert!(matches!(core.verify_remote(&mut remote), Err(AdaptiveError::Inconsistent { .. })));
}

#[test]
fn verification_sees_all_keys_and_all_slots() {
    let of = || parameters(100, 8, 0.95, Overflow::Spill, 7);
    stored_keys_without_a_slot_are_seen(telescoping_core(of()));
    stored_keys_without_a_slot_are_seen(extension_core(of()));
    stored_keys_without_a_slot_are_seen(explicit_core(of()));
    stored_keys_without_a_slot_are_seen(extension_bins(of()));
}

/// A remote whose scans go backwards.
struct Backwards(MemoryRemote);

impl Remote for Backwards {
    type Error = crate::MissingEntry;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), Self::Error> {
        self.0.read(address, visit)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Self::Error> {
        self.0.apply(changes)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), Self::Error> {
        let mut lists: Vec<u64> = self.0.iter().map(|(address, _)| address).collect();
        lists.dedup();
        for address in lists.into_iter().rev() {
            let keys = keys_at(&mut self.0, address);
            if keys.iter().try_for_each(|key| visit(address, key)).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// A remote whose scans hand out the first list twice.
struct Repeating(MemoryRemote);

impl Remote for Repeating {
    type Error = crate::MissingEntry;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), Self::Error> {
        self.0.read(address, visit)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Self::Error> {
        self.0.apply(changes)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), Self::Error> {
        self.0.scan(visit)?;
        let (first, _) = self.0.iter().next().unwrap();
        let _ = keys_at(&mut self.0, first).iter().try_for_each(|key| visit(first, key));
        Ok(())
    }
}

fn a_scan_that_repeats<F: Tested<Hasher = Xxh3>>(mut core: F) {
    let mut remote = Repeating(MemoryRemote::new());
    for number in 0..50_u64 {
        core.insert(&number.to_le_bytes(), &mut remote).unwrap();
    }
    assert!(matches!(core.grow(&mut remote), Err(AdaptiveError::Inconsistent { .. })));
    assert!(matches!(core.verify_remote(&mut remote), Err(AdaptiveError::Inconsistent { .. })));
    core.check(&mut remote.0);
}

#[test]
fn a_scan_that_comes_to_a_list_twice_is_refused() {
    a_scan_that_repeats(extension_core(parameters(100, 8, 0.95, Overflow::Spill, 7)));
    a_scan_that_repeats(extension_bins(parameters(100, 8, 0.95, Overflow::Spill, 7)));
}

fn a_scan_that_goes_backwards<F: Tested<Hasher = Xxh3>>(mut core: F) {
    let mut remote = Backwards(MemoryRemote::new());
    for number in 0..50_u64 {
        core.insert(&number.to_le_bytes(), &mut remote).unwrap();
    }
    let before = core.clone();
    assert!(matches!(core.grow(&mut remote), Err(AdaptiveError::Inconsistent { .. })));
    assert!(matches!(core.verify_remote(&mut remote), Err(AdaptiveError::Inconsistent { .. })));
    assert!(core == before);
    core.check(&mut remote.0);
}

#[test]
fn a_scan_in_another_order_is_refused() {
    a_scan_that_goes_backwards(telescoping_core(parameters(100, 8, 0.95, Overflow::Spill, 7)));
    a_scan_that_goes_backwards(extension_bins(parameters(100, 8, 0.95, Overflow::Spill, 7)));
}
