//! Catches: pairs of the remote that nobody notices, and a way back that believes too much, takes away what may be
//! stored, or changes something without need.

use crate::cuckoo::{AdaptiveCuckooFilter, Cuckooing, Cyclic};
use crate::testing::{CountingRemote, Fault, Faults, Faulty};
use crate::{
    Adaptive, AdaptiveError, Authority, Change, Filter, KeyHasher, MemoryRemote, Remote, RemoteCuckooFilter,
    Settled,
};

const PARTIAL: Authority = Authority::Partial;
const AUTHORITATIVE: Authority = Authority::Authoritative;
const ALL: std::ops::RangeInclusive<u64> = 0..=u64::MAX;

type Cuckoo = AdaptiveCuckooFilter<Cyclic<2>>;

fn filled(keys: u32) -> (Cuckoo, MemoryRemote) {
    let builder = Cuckoo::builder().capacity(100).slot_bits(10);
    let (mut filter, mut remote) = (builder.seed(3_u64).build().unwrap(), MemoryRemote::new());
    (0..keys).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
    (filter, remote)
}

/// The address of a stored key.
fn address_of(remote: &MemoryRemote, key: u32) -> u64 {
    remote.iter().find(|(_, stored)| *stored == key.to_le_bytes()).unwrap().0
}

fn put(remote: &mut MemoryRemote, address: u64, key: u32) {
    remote.apply(&[Change::Insert { address, key: &key.to_le_bytes() }]).unwrap();
}

fn take(remote: &mut MemoryRemote, address: u64, key: u32) {
    remote.apply(&[Change::Remove { address, key: &key.to_le_bytes() }]).unwrap();
}

#[test]
fn every_pair_of_the_remote_is_seen() {
    let (mut filter, remote) = filled(50);
    let slots = filter.stats().slots as u64;
    let vacant = (0..slots).find(|&slot| filter.table.is_vacant(slot as usize)).unwrap();
    // A vacant slot, one that is taken, and addresses without a slot.
    for address in [vacant, address_of(&remote, 7), slots, slots + 5, u64::MAX] {
        let mut remote = remote.clone();
        put(&mut remote, address, 1000);
        let error = filter.verify_remote(&mut remote).unwrap_err();
        assert_eq!(error, AdaptiveError::Inconsistent { address, expected: 0, found: 1 });
        // It is debris, and in nobody's way.
        assert!(!filter.clone().insert(&7_u32, &mut remote).unwrap());
        assert!(filter.clone().remove(&7_u32, &mut remote).unwrap());
    }
    // A key that is gone, and one that has another's place: its slot is in question, and stays.
    let address = address_of(&remote, 7);
    for other in [None, Some(1000)] {
        let mut remote = remote.clone();
        take(&mut remote, address, 7);
        other.into_iter().for_each(|key| put(&mut remote, address, key));
        let error = filter.verify_remote(&mut remote).unwrap_err();
        assert_eq!(error, AdaptiveError::Inconsistent { address, expected: 1, found: 0 });
        let before = filter.clone();
        // Its key may have moved to any slot: one address says nothing, whoever vouches for it.
        for (range, authority) in [(address..=address, AUTHORITATIVE), (ALL, PARTIAL)] {
            let mut filter = filter.clone();
            assert_eq!(
                filter.settle(range, authority, &mut remote.clone()),
                Ok(Settled::InQuestion { slots: 1 })
            );
            assert!(filter.contains(&7_u32));
            assert_eq!(filter == before, other.is_none());
        }
        let mut filter = filter.clone();
        assert_eq!(filter.settle(ALL, AUTHORITATIVE, &mut remote), Ok(Settled::Agreed));
        assert_eq!(filter.len(), 49 + usize::from(other.is_some()));
        filter.verify_remote(&mut remote).unwrap();
    }
    assert!(filter.contains(&7_u32));
    filter.clear(&mut remote.clone()).unwrap();
}

#[test]
fn a_key_in_two_slots_is_noticed() {
    let mut noticed = 0;
    for seed in 0..20_u64 {
        let builder = AdaptiveCuckooFilter::<Cuckooing>::builder().capacity(60).slot_bits(3);
        let (mut filter, mut remote) = (builder.seed(seed).build().unwrap(), MemoryRemote::new());
        (0..60_u32).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
        filter.verify_remote(&mut remote).unwrap();
        // One key is said to lie in the slot of another, too, whose bits it has.
        let hits = |key: u32| filter.table.hits(filter.place_of(filter.hasher.digest_key(&key)));
        let slot_of = |address| filter.addresses.slot(address).unwrap();
        let twice = (0..60).find_map(|key| {
            let own = slot_of(address_of(&remote, key));
            Some((key, own, hits(key).into_iter().find(|&slot| slot != own)?))
        });
        let Some((key, own, other)) = twice else { continue };
        let address = filter.addresses.of(other);
        let old = remote.iter().find(|entry| entry.0 == address).unwrap().1.to_vec();
        remote.apply(&[Change::Remove { address, key: &old }]).unwrap();
        put(&mut remote, address, key);
        assert!(matches!(filter.verify_remote(&mut remote), Err(AdaptiveError::Inconsistent { .. })));
        // A repair must not move both in the name of that key.
        let query = (100..).find(|&query| hits(query).contains(&own) && hits(query).contains(&other));
        let before = filter.clone();
        let error = filter.adapt(&query.unwrap(), &mut remote).unwrap_err();
        assert!(matches!(error, AdaptiveError::Inconsistent { .. }), "{error}");
        assert_eq!(filter, before);
        noticed += 1;
    }
    assert!(noticed > 10, "{noticed}");
}

#[test]
fn keys_without_an_item_get_one_and_debris_goes() {
    let (mut filter, mut remote) = filled(50);
    let slots = filter.stats().slots as u64;
    let place = |filter: &Cuckoo, key: u32| filter.place(filter.hasher.digest_key(&key));
    let home = filter.table.look(place(&filter, 1000)).vacancy.unwrap() as u64;
    let foreign = (0..slots).find(|&slot| {
        let vacant = filter.table.is_vacant(slot as usize) && slot != home;
        vacant && !filter.table.is_candidate(slot as usize, place(&filter, 2000))
    });
    let foreign = foreign.unwrap();
    put(&mut remote, home, 1000); // an insertion that was reported to have failed
    put(&mut remote, foreign, 2000); // one that no filter makes
    put(&mut remote, foreign, 9); // a copy
    put(&mut remote, slots + 3, 9);
    for authority in [PARTIAL, AUTHORITATIVE] {
        let (mut filter, mut remote) = (filter.clone(), CountingRemote::new(remote.clone()));
        assert_eq!(filter.settle(ALL, authority, &mut remote), Ok(Settled::Agreed));
        assert!(filter.contains(&1000_u32) && filter.contains(&2000_u32) && filter.len() == 52);
        let stored = |key: u32| filter.clone().remove(&key, &mut remote.inner.clone()).unwrap();
        assert!((0..50).chain([1000, 2000]).all(stored));
        if authority == AUTHORITATIVE {
            remote.take_accesses();
            let before = filter.clone();
            // Once more: there is nothing to do.
            assert_eq!(filter.settle(ALL, authority, &mut remote), Ok(Settled::Agreed));
            assert_eq!((remote.accesses().writes, filter), (0, before));
        }
    }
    filter.settle(ALL, AUTHORITATIVE, &mut remote).map(drop).unwrap();
    // Nothing sweeps what is beyond all halves but a rehash or a failed one.
    take(&mut remote, slots + 3, 9);
    filter.verify_remote(&mut remote).unwrap();
}

#[test]
fn a_key_without_room_is_refused_and_nothing_changes() {
    let (mut filter, mut remote) = filled(100);
    let slots = filter.stats().slots;
    let (vacant, key) = (0..slots)
        .filter(|&slot| filter.table.is_vacant(slot))
        .find_map(|slot| {
            let fits =
                |key: &u32| filter.table.is_candidate(slot, filter.place(filter.hasher.digest_key(key)));
            Some((slot as u64, (1000..9000_u32).find(fits)?))
        })
        .unwrap();
    put(&mut remote, vacant, key);
    let before = (filter.clone(), remote.len());
    assert!(matches!(filter.settle(vacant..=vacant, PARTIAL, &mut remote), Err(AdaptiveError::Full(_))));
    assert_eq!((filter, remote.len()), before);
}

#[test]
fn a_failed_way_back_can_be_repeated() {
    let mut remote = Faulty::new(MemoryRemote::new(), Faults::none());
    let mut filter = RemoteCuckooFilter::builder().capacity(100).seed(1_u64).build().unwrap();
    remote.faults.light_fuse(0, Fault::FailAfter);
    assert!(filter.insert("key", &mut remote).is_err());
    assert!(filter.is_empty() && remote.inner.len() == 1);
    remote.faults.light_fuse(0, Fault::FailBefore);
    assert!(filter.settle(ALL, AUTHORITATIVE, &mut remote).is_err());
    assert_eq!(filter.settle(ALL, AUTHORITATIVE, &mut remote), Ok(Settled::Agreed));
    assert!(filter.contains("key") && filter.len() == 1);
    assert!(!filter.insert("key", &mut remote).unwrap(), "it is there already");
    filter.verify_remote(&mut remote).unwrap();
}

/// An insertion that moved other keys, and was reported to have failed, is completed without a rebuild.
#[test]
fn a_chain_that_was_made_in_the_remote_is_taken_over() {
    let mut taken_over = 0;
    for seed in 0..30_u64 {
        let builder = AdaptiveCuckooFilter::<Cuckooing>::builder().capacity(60).seed(seed);
        let (mut filter, mut remote) = (builder.build().unwrap(), MemoryRemote::new());
        (0..50_u32).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
        for key in 50..60_u32 {
            let mut counting = CountingRemote::new(remote.clone());
            filter.clone().insert(&key, &mut counting).unwrap();
            let accesses = counting.accesses();
            let mut faulty = Faulty::new(remote, Faults::none());
            if accesses.writes == 1 && accesses.changes > 1 {
                faulty.faults.light_fuse(accesses.reads, Fault::FailAfter);
                assert!(filter.insert(&key, &mut faulty).is_err() && faulty.inner.len() == key as usize + 1);
                assert!((0..key).all(|key| filter.contains(&key)));
                // One address at a time, in any order: no key is lost on the way.
                for address in 0..filter.stats().slots as u64 {
                    let settled = filter.settle(address..=address, AUTHORITATIVE, &mut faulty);
                    // Without room, or without a chain but one that would move an item in question.
                    let refused =
                        matches!(settled, Err(AdaptiveError::Full(_) | AdaptiveError::Inconsistent { .. }));
                    assert!(settled.is_ok() || refused, "{settled:?}");
                    assert!((0..key).all(|key| filter.contains(&key)));
                }
                assert_eq!(filter.settle(ALL, AUTHORITATIVE, &mut faulty), Ok(Settled::Agreed));
                taken_over += 1;
            } else {
                filter.insert(&key, &mut faulty).unwrap();
            }
            remote = faulty.inner;
            filter.verify_remote(&mut remote).unwrap();
            assert!((0..=key).all(|key| filter.contains(&key)) && filter.len() == key as usize + 1);
        }
    }
    assert!(taken_over > 20, "{taken_over} chains");
}
