//! Catches: entries of the remote that nobody notices, and a way back that believes too much or changes something without
//! need.

use crate::cuckoo::{AdaptiveCuckooFilter, Cuckooing, Cyclic};
use crate::testing::{CountingRemote, Fault, Faults, Faulty};
use crate::{Adaptive, AdaptiveError, Change, CuckooFilter, Filter, KeyHasher, MemoryRemote, Remote, Resync};

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

fn push(remote: &mut MemoryRemote, address: u64, key: u32) {
    remote.apply(&[Change::Push { address, key: &key.to_le_bytes() }]).unwrap();
}

fn inconsistent(filter: &Cuckoo, remote: &mut MemoryRemote) -> (u64, usize, usize) {
    match filter.verify_remote(remote).unwrap_err() {
        AdaptiveError::Inconsistent { address, expected, found } => (address, expected, found),
        error => panic!("{error}"),
    }
}

#[test]
fn every_key_of_the_remote_is_seen() {
    let (mut filter, remote) = filled(50);
    let slots = filter.stats().slots as u64;
    let vacant = (0..slots).find(|&slot| filter.table.is_vacant(slot as usize)).unwrap();
    for (address, expected, found) in [
        (vacant, 0, 1),
        (address_of(&remote, 7), 1, 2),
        // Addresses without a slot.
        (slots, 0, 1),
        (slots + 5, 0, 1),
        (u64::MAX, 0, 1),
    ] {
        let mut remote = remote.clone();
        push(&mut remote, address, 1000);
        assert_eq!(inconsistent(&filter, &mut remote), (address, expected, found));
    }
    // A key that is gone, and one that has another's place.
    let address = address_of(&remote, 7);
    let key = &7_u32.to_le_bytes()[..];
    for change in [
        Change::Remove { address, rank: 0, key },
        Change::Replace { address, rank: 0, old: key, key: &1000_u32.to_le_bytes() },
    ] {
        let mut remote = remote.clone();
        remote.apply(&[change]).unwrap();
        assert_eq!(inconsistent(&filter, &mut remote), (address, 1, 0));
        // Nothing explains the slot: nothing changes, and the key is accepted as before.
        let before = filter.clone();
        assert_eq!(filter.resync(&[address], &mut remote).unwrap(), Resync::InQuestion { slots: 1 });
        assert_eq!(filter, before);
        assert!(filter.contains(&7_u32));
    }
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
        let change = Change::Replace { address, rank: 0, old: &old, key: &key.to_le_bytes() };
        remote.apply(&[change]).unwrap();
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
fn what_the_filter_cannot_have_put_there_is_dropped_and_what_it_may_have_is_taken_in() {
    let (mut filter, mut remote) = filled(50);
    let slots = filter.stats().slots as u64;
    let vacancy =
        |filter: &Cuckoo, key: u32| filter.table.look(filter.place(filter.hasher.digest_key(&key))).vacancy;
    let home = vacancy(&filter, 1000).unwrap() as u64;
    let foreign = (0..slots).find(|&slot| {
        let place = filter.place(filter.hasher.digest_key(&2000_u32));
        filter.table.is_vacant(slot as usize)
            && slot != home
            && !filter.table.is_candidate(slot as usize, place)
    });
    let (foreign, doubled) = (foreign.unwrap(), address_of(&remote, 9));
    push(&mut remote, home, 1000); // an insertion that was reported to have failed
    push(&mut remote, foreign, 2000);
    push(&mut remote, doubled, 9);
    push(&mut remote, slots + 3, 9);
    assert!(!filter.contains(&1000_u32));
    let mut remote = CountingRemote::new(remote);
    let addresses = [slots + 3, foreign, doubled, home, home];
    assert_eq!(filter.resync(&addresses, &mut remote).unwrap(), Resync::Agreed);
    assert_eq!(remote.accesses().writes, 1);
    filter.verify_remote(&mut remote.inner).unwrap();
    assert!(filter.contains(&1000_u32));
    assert_eq!((filter.len(), remote.inner.len()), (51, 51));
    // Once more: there is nothing to do.
    remote.take_accesses();
    let before = filter.clone();
    assert_eq!(filter.resync(&addresses, &mut remote).unwrap(), Resync::Agreed);
    assert_eq!((remote.accesses().writes, filter), (0, before));
}

#[test]
fn a_repair_survives_the_way_back() {
    let (mut filter, mut remote) = filled(100);
    let query = (1000_u32..).find(|query| filter.contains(query)).unwrap();
    assert!(filter.adapt(&query, &mut remote).unwrap().is_fixed());
    let addresses: Vec<u64> = remote.iter().map(|(address, _)| address).collect();
    let (first, second) = (addresses[0], addresses[1]);
    let key =
        |remote: &MemoryRemote, address| remote.iter().find(|entry| entry.0 == address).unwrap().1.to_vec();
    let (a, b) = (key(&remote, first), key(&remote, second));
    let before = filter.clone();
    remote
        .apply(&[
            Change::Replace { address: first, rank: 0, old: &a, key: &b },
            Change::Replace { address: second, rank: 0, old: &b, key: &a },
        ])
        .unwrap();
    assert_eq!(filter.resync(&addresses, &mut remote).unwrap(), Resync::Agreed);
    assert_eq!(filter, before);
    assert_eq!((key(&remote, first), key(&remote, second)), (a, b));
    assert!(!filter.contains(&query));
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
    push(&mut remote, vacant, key);
    let before = (filter.clone(), remote.len());
    assert!(matches!(filter.resync(&[vacant], &mut remote), Err(AdaptiveError::Full(_))));
    assert_eq!((filter, remote.len()), before);
}

#[test]
fn a_failed_way_back_can_be_repeated() {
    let mut remote = Faulty::new(MemoryRemote::new(), Faults::none());
    let mut filter = CuckooFilter::builder().capacity(100).seed(1_u64).build().unwrap();
    remote.faults.light_fuse(0, Fault::FailAfter);
    assert!(filter.insert("key", &mut remote).is_err());
    assert!(filter.is_empty() && remote.inner.len() == 1);
    let address = remote.inner.iter().next().unwrap().0;
    remote.faults.light_fuse(0, Fault::FailBefore);
    assert!(filter.resync(&[address], &mut remote).is_err());
    assert_eq!(filter.resync(&[address], &mut remote).unwrap(), Resync::Agreed);
    assert!(filter.contains("key") && filter.len() == 1);
    assert!(!filter.insert("key", &mut remote).unwrap(), "it is there already");
    filter.verify_remote(&mut remote).unwrap();
}

#[test]
fn a_key_that_lies_in_another_slot_is_not_taken_in_again() {
    let (mut filter, mut remote) = filled(50);
    let place = |key: u32| filter.place(filter.hasher.digest_key(&key));
    let (address, key) = (0..50)
        .find_map(|key| {
            let slot = filter.table.look(place(key)).vacancy?;
            Some((slot as u64, key))
        })
        .unwrap();
    push(&mut remote, address, key);
    let before = filter.clone();
    assert_eq!(filter.resync(&[address], &mut remote).unwrap(), Resync::Agreed);
    assert_eq!((filter, remote.len()), (before, 50));
}

/// The slot could be that of either key: the one that its list has, and one that lies where no slot has it. To drop the
/// second might be to drop the one that the filter held.
#[test]
fn a_key_that_a_slot_in_question_may_have_held_is_kept() {
    let (mut filter, mut remote) = filled(50);
    let slots = filter.stats().slots as u64;
    let address = address_of(&remote, 7);
    let fits = |key: &u32| {
        filter.table.holds(address as usize, filter.place(filter.hasher.digest_key(key)))
            && filter.table.hits(filter.place(filter.hasher.digest_key(key))).len() == 1
    };
    let other = (1000..).find(fits).unwrap();
    let (old, key) = (&7_u32.to_le_bytes(), &other.to_le_bytes());
    remote.apply(&[Change::Replace { address, rank: 0, old, key }]).unwrap();
    push(&mut remote, slots + 3, 7);
    assert_eq!(filter.resync(&[address, slots + 3], &mut remote).unwrap(), Resync::Agreed);
    filter.verify_remote(&mut remote).unwrap();
    assert_eq!((filter.len(), remote.len()), (51, 51));
    assert!(filter.remove(&other, &mut remote).unwrap() && filter.contains(&7_u32));
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
            let entries =
                |remote: &MemoryRemote| remote.iter().map(|(a, k)| (a, k.to_vec())).collect::<Vec<_>>();
            let (old, new) = (entries(&remote), entries(&counting.inner));
            let changed = new.iter().filter(|entry| !old.contains(entry)).map(|entry| entry.0);
            let changed: Vec<u64> = changed.collect();
            let mut faulty = Faulty::new(remote, Faults::none());
            if accesses.writes == 1 && changed.len() > 1 {
                faulty.faults.light_fuse(accesses.reads, Fault::FailAfter);
                assert!(filter.insert(&key, &mut faulty).is_err() && faulty.inner.len() == key as usize + 1);
                assert_eq!(filter.resync(&changed, &mut faulty).unwrap(), Resync::Agreed);
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
