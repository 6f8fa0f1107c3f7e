//! Catches: keys of the remote that are believed although they are not those of the items.

use super::*;
use crate::extension::testing::extension_core;
use crate::telescoping::testing::{explicit_core, telescoping_core};
use crate::{AdaptiveError, Change, Remote, Visit};

/// A filter with keys, its remote, and a stranger that it accepts.
fn accepted_stranger<F: Tested<Hasher = Xxh3>>(core: &mut F, remote: &mut MemoryRemote) -> [u8; 8] {
    for number in 0..core.capacity() as u64 {
        core.insert(&key(number), remote).unwrap();
    }
    let contains = |number: &u64| core.contains(&key(*number));
    (1_000_000..).find(contains).unwrap().to_le_bytes()
}

fn is_inconsistent<T, E: std::fmt::Debug>(result: Result<T, AdaptiveError<E>>) {
    let Err(error) = result else { panic!("the remote was believed") };
    assert!(matches!(error, AdaptiveError::Inconsistent { .. }), "{error:?}");
}

/// A key at an address that is not its own: all that reads it must refuse it, and change nothing.
fn false_addresses_are_refused<F: Tested<Hasher = Xxh3>>(mut core: F) {
    let mut honest = MemoryRemote::new();
    let stranger = accepted_stranger(&mut core, &mut honest);
    let address = *core.addresses(&stranger).start();
    let before = core.clone();
    for lie in [&key(3_000_000)[..], b"", &stranger] {
        let mut remote = honest.clone();
        let lied = address + u64::from(core.hasher().digest(lie).hi == address);
        remote.apply(&[Change::Insert { address: lied, key: lie }]).unwrap();
        is_inconsistent(core.adapt(&stranger, &mut remote));
        is_inconsistent(core.remove(&stranger, &mut remote));
        is_inconsistent(core.insert(&stranger, &mut remote));
        is_inconsistent(core.grow(&mut remote));
        is_inconsistent(core.verify_remote(&mut remote));
        for authority in [Authority::Partial, Authority::Authoritative] {
            is_inconsistent(core.settle(core.addresses(&stranger), authority, &mut remote));
            is_inconsistent(core.settle(0..=u64::MAX, authority, &mut remote));
        }
        assert!(core == before, "a refused operation has changed the filter");
    }
    core.check(&mut honest);
}

#[test]
fn a_key_at_an_address_that_is_not_its_own_is_refused() {
    let of = || parameters(200, 8, 0.95, Overflow::Spill, 7);
    false_addresses_are_refused(telescoping_core(of()));
    false_addresses_are_refused(extension_core(of()));
    false_addresses_are_refused(explicit_core(of()));
    false_addresses_are_refused(extension_bins(of()));
}

/// An item without a key is in question: repairs and doublings refuse it, and it stays.
fn missing_keys_are_noticed<F: Tested<Hasher = Xxh3>>(mut core: F) {
    let mut remote = MemoryRemote::new();
    let stranger = accepted_stranger(&mut core, &mut remote);
    let (start, end) = core.addresses(&stranger).into_inner();
    let pairs: Vec<(u64, Vec<u8>)> = remote.iter().map(|(address, key)| (address, key.to_vec())).collect();
    let own = pairs.into_iter().filter(|&(address, _)| start <= address && address <= end);
    let before = core.clone();
    for (address, stored) in own {
        remote.apply(&[Change::Remove { address, key: &stored }]).unwrap();
        is_inconsistent(core.adapt(&stranger, &mut remote));
        is_inconsistent(core.grow(&mut remote));
        is_inconsistent(core.verify_remote(&mut remote));
        let settled = core.settle(start..=end, Authority::Partial, &mut remote).unwrap();
        assert_eq!(settled, Settled::InQuestion { slots: 1 });
        assert!(core == before, "a refused operation has changed the filter");
        remote.apply(&[Change::Insert { address, key: &stored }]).unwrap();
    }
    core.check(&mut remote);
}

#[test]
fn an_item_without_a_key_is_in_question_and_stays() {
    let of = || parameters(200, 8, 0.95, Overflow::Spill, 7);
    missing_keys_are_noticed(telescoping_core(of()));
    missing_keys_are_noticed(extension_core(of()));
    missing_keys_are_noticed(explicit_core(of()));
    missing_keys_are_noticed(extension_bins(of()));
}

fn a_value_of_another_key<F: Tested<Hasher = Xxh3>>(mut core: F) {
    let mut remote = MemoryRemote::new();
    core.insert(b"key", &mut remote).unwrap();
    let twin = (0..).map(key).find(|bytes| core.contains(bytes)).unwrap();
    assert!(core.adapt(&twin, &mut remote).unwrap().is_fixed());
    let [own, other] = [&b"key"[..], &twin].map(|key| core.hasher().digest(key).hi);
    remote.apply(&[Change::Remove { address: own, key: b"key" }]).unwrap();
    remote.apply(&[Change::Insert { address: other, key: &twin }]).unwrap();
    is_inconsistent(core.verify_remote(&mut remote));
    // A view with as many keys as items, and others: nothing goes, and the key that came gets an item.
    let settled = core.settle(core.addresses(&twin), Authority::Partial, &mut remote).unwrap();
    assert_eq!((settled, core.len()), (Settled::InQuestion { slots: 1 }, 2));
    assert!(core.contains(b"key") && core.contains(&twin));
    let settled = core.settle(core.addresses(&twin), Authority::Authoritative, &mut remote).unwrap();
    assert_eq!((settled, core.len()), (Settled::Agreed, 1));
    core.check(&mut remote);
}

/// The item of one key does not fit another, although the fingerprint is the same.
#[test]
fn an_item_whose_value_is_another_keys_is_noticed() {
    a_value_of_another_key(telescoping_core(parameters(10, 2, 0.95, Overflow::Spill, 7)));
    a_value_of_another_key(extension_core(parameters(10, 2, 0.95, Overflow::Spill, 7)));
    a_value_of_another_key(extension_bins(parameters(10, 2, 0.95, Overflow::Spill, 7)));
}

/// A remote whose ranges go backwards, or hand out the first pair again at the end.
struct Disordered {
    pairs: MemoryRemote,
    backwards: bool,
}

impl Remote for Disordered {
    type Error = std::convert::Infallible;

    fn range(&mut self, addresses: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), Self::Error> {
        let mut pairs: Vec<(u64, &[u8])> =
            self.pairs.iter().filter(|(address, _)| addresses.contains(address)).collect();
        if self.backwards {
            pairs.reverse();
        } else {
            pairs.extend(pairs.first().copied());
        }
        let _ = pairs.into_iter().try_for_each(|(address, key)| visit(address, key));
        Ok(())
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Self::Error> {
        self.pairs.apply(changes)
    }
}

fn disorder_is_refused<F: Tested<Hasher = Xxh3>>(mut core: F) {
    let mut remote = Disordered { pairs: MemoryRemote::new(), backwards: true };
    for number in 0..50 {
        core.insert(&key(number), &mut remote).unwrap();
    }
    let before = core.clone();
    for backwards in [true, false] {
        remote.backwards = backwards;
        is_inconsistent(core.grow(&mut remote));
        is_inconsistent(core.verify_remote(&mut remote));
        is_inconsistent(core.settle(0..=u64::MAX, Authority::Authoritative, &mut remote));
    }
    assert!(core == before);
    core.check(&mut remote.pairs);
}

#[test]
fn a_scan_in_another_order_is_refused() {
    disorder_is_refused(telescoping_core(parameters(100, 8, 0.95, Overflow::Spill, 7)));
    disorder_is_refused(extension_core(parameters(100, 8, 0.95, Overflow::Spill, 7)));
    disorder_is_refused(extension_bins(parameters(100, 8, 0.95, Overflow::Spill, 7)));
}
