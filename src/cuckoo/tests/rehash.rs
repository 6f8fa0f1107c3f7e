//! Catches: a rehash that keeps the old hash functions, holds all keys in memory, or loses some of them when the remote
//! fails half-way.

use std::convert::Infallible;
use std::ops::{ControlFlow, RangeInclusive};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::cuckoo::{
    AdaptiveCuckooFilter, AdaptiveCuckooFilterBuilder, AdaptiveVariant, Cuckooing, Cyclic, Swapping,
};
use crate::testing::{CountingRemote, Fault, Faults, Faulty};
use crate::{
    Adaptive, AdaptiveError, Authority, Change, Filter, KeyHasher, MemoryRemote, Remote, RemoteCuckooFilter,
    Settled, Visit,
};

fn filled<V: AdaptiveVariant>(
    builder: AdaptiveCuckooFilterBuilder<V>,
    keys: u32,
) -> (AdaptiveCuckooFilter<V>, MemoryRemote) {
    let mut filter = builder.capacity(keys as usize).seed(5_u64).build().unwrap();
    let mut remote = MemoryRemote::new();
    (0..keys).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
    (filter, remote)
}

#[test]
fn the_hash_functions_are_new_each_time() {
    let (mut filter, mut remote) = filled(RemoteCuckooFilter::builder(), 200);
    let digest = filter.digest(b"key");
    let mut places = vec![filter.place(digest)];
    for round in 1..=4 {
        assert!(filter.rehash(None, None, &mut remote).unwrap());
        assert_eq!(filter.stats().rebuilds, round);
        assert!(!places.contains(&filter.place(digest)), "round {round} has old hash functions");
        places.push(filter.place(digest));
        // The keys lie in the other half of the addresses now, and all of them.
        let half = (round % 2) * filter.stats().slots as u64;
        assert!(
            remote.iter().all(|(address, _)| (half..half + filter.stats().slots as u64).contains(&address))
        );
        assert_eq!(remote.len(), 200);
        filter.verify_remote(&mut remote).unwrap();
        assert!((0..200_u32).all(|key| filter.contains(&key)));
    }
    assert!(!places.contains(&filter.emptied().unwrap().place(digest)), "a rebuild has old hash functions");
}

/// New hash functions are of no use if the keys that found no room find none again.
#[test]
fn keys_that_do_not_fit_by_the_old_hash_functions_fit_by_new_ones() {
    let mut rehashes = 0;
    for seed in 0..300_u64 {
        let builder = AdaptiveCuckooFilter::<Cuckooing>::builder().shape(2, 1);
        let mut filter = builder.capacity(40).seed(seed).build().unwrap();
        let mut remote = MemoryRemote::new();
        (0..40_u32).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
        rehashes += filter.stats().rebuilds;
    }
    assert!(rehashes > 8, "{rehashes} rehashes");
}

#[test]
fn keys_are_moved_in_groups() {
    let keys = 2000;
    let (mut filter, remote) = filled(RemoteCuckooFilter::builder(), keys);
    let mut remote = CountingRemote::new(remote);
    assert!(filter.rehash(None, None, &mut remote).unwrap());
    let accesses = remote.accesses();
    let groups = u64::from(keys).div_ceil(256);
    // All keys at once for the digests, one by one for their bytes, and in groups what is removed.
    assert_eq!(
        (accesses.reads, accesses.pairs),
        (1 + u64::from(keys) + groups + 1, 3 * u64::from(keys) + groups - 1)
    );
    assert_eq!((accesses.writes, accesses.changes), (2 * groups, 2 * u64::from(keys)));
}

/// A remote that has another key for an address when it is read than it had when it was scanned.
struct Shifting {
    inner: MemoryRemote,
    address: u64,
    key: u32,
}

impl Remote for Shifting {
    type Error = Infallible;

    fn range(&mut self, addresses: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), Infallible> {
        if addresses == (self.address..=self.address) {
            let _ = visit(self.address, &self.key.to_le_bytes());
            return Ok(());
        }
        self.inner.range(addresses, visit)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Infallible> {
        self.inner.apply(changes)
    }
}

#[test]
fn a_key_that_changes_under_way_is_noticed() {
    let (mut filter, inner) = filled(RemoteCuckooFilter::builder().slot_bits(3), 50);
    let address = inner.iter().next().unwrap().0;
    let fits = |key: &u32| filter.table.holds(address as usize, filter.place(filter.hasher.digest_key(key)));
    let key = (1000..).find(fits).unwrap();
    let before = filter.clone();
    let mut remote = Shifting { inner, address, key };
    let error = filter.rehash(None, None, &mut remote).unwrap_err();
    assert_eq!(error, AdaptiveError::Inconsistent { address, expected: 1, found: 0 });
    assert_eq!(filter, before);
    assert_eq!(remote.inner.len(), 50, "copies are left over");
}

/// Of what a rebuild has written before it failed, nothing may pass for a key of the old filter's slots: it would be
/// moved in the name of another, which is lost then.
#[test]
fn a_rebuild_that_failed_deceives_nobody() {
    for keys in 290..310_u32 {
        let (mut filter, remote) = filled(AdaptiveCuckooFilter::<Cuckooing>::builder().slot_bits(2), keys);
        let mut remote = Faulty::new(remote, Faults::none());
        // Insertions read when they collide, and half of them do: this is in the midst of the keys.
        remote.faults.light_fuse(150, Fault::FailBefore);
        let visit_all = |visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>| {
            let _ = (0..keys).try_for_each(|key| visit(&key.to_le_bytes()));
            Ok::<_, std::io::Error>(())
        };
        let before = filter.clone();
        assert!(filter.rebuild(visit_all, &mut remote).is_err());
        assert_eq!(filter, before);
        let remote = &mut remote.inner;
        assert!(!remote.is_empty(), "the rebuild had begun to write");
        let mut occupied = (0..filter.stats().slots).filter(|&slot| !filter.table.is_vacant(slot));
        assert!(occupied.all(|slot| filter.read_slot(slot, remote, |_, _| ()).is_err()));
        // Once more, and all is well.
        filter.rebuild(visit_all, remote).unwrap();
        filter.verify_remote(remote).unwrap();
    }
}

/// Every access in turn goes wrong in every way.
fn fail_everywhere<V: AdaptiveVariant>(builder: AdaptiveCuckooFilterBuilder<V>) {
    let (filter, remote) = filled(builder, 20);
    let (mut before_switch, mut after_switch, mut littered) = (0, 0, 0);
    for fault in Fault::HONEST {
        for access in 0.. {
            let mut filter = filter.clone();
            let mut remote = Faulty::new(remote.clone(), Faults::none());
            remote.faults.light_fuse(access, fault);
            let outcome = catch_unwind(AssertUnwindSafe(|| filter.rehash(None, None, &mut remote)));
            if matches!(outcome, Ok(Ok(true))) && remote.faults.total() == 0 {
                break;
            }
            if filter.stats().rebuilds == 0 {
                before_switch += 1;
            } else {
                after_switch += 1;
            }
            assert!((0..20_u32).all(|key| filter.contains(&key)), "a key is lost");
            filter.verify().unwrap();
            let remote = &mut remote.inner;
            match filter.verify_remote(remote) {
                Ok(()) => {}
                Err(AdaptiveError::Inconsistent { expected: 0, .. }) => littered += 1,
                Err(error) => panic!("{error}"),
            }
            // Copies that are left over are in nobody's way: a second rehash puts the keys where they are.
            let (mut again, mut other) = (filter.clone(), remote.clone());
            assert!(again.rehash(None, None, &mut other).unwrap());
            again.verify_remote(&mut other).unwrap();
            // And they are gone after the way back.
            let key = remote.len() as u32;
            assert!(
                filter.remove(&3_u32, remote).unwrap() && filter.insert(&3_u32, remote).unwrap(),
                "{key}"
            );
            assert_eq!(filter.settle(0..=0, Authority::Partial, remote), Ok(Settled::Agreed));
            filter.verify_remote(remote).unwrap();
            assert_eq!(remote.len(), 20);
        }
    }
    assert!(
        before_switch > 50 && after_switch > 10 && littered > 5,
        "{before_switch} {after_switch} {littered}"
    );
}

#[test]
fn a_failure_at_any_access_loses_nothing() {
    fail_everywhere(RemoteCuckooFilter::builder());
    fail_everywhere(AdaptiveCuckooFilter::<Cyclic<2>>::builder());
    fail_everywhere(AdaptiveCuckooFilter::<Swapping>::builder());
}
