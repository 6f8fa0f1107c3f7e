//! Catches: an instruction set, a batch or a short cut by flags that answers otherwise than the plain walk over items
//! and extensions; extensions that are lost when items move between the levels; memory that is not given back; a filter
//! that has changed although there was no memory; repairs that write to the remote.

use std::collections::BTreeMap;

use super::*;
use crate::bits::Isa;
use crate::coding::Extension;
use crate::homes::Homed;
use crate::testing::{CountingRemote, Random};
use crate::{AdaptiveError, Digest, Filter, MemoryRemote, Seed, Xxh3};

use super::super::super::next::fault;
use super::super::super::values::Values;

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

fn filter(capacity: usize, rate: f64, load: f64, seed: u64) -> ExtendingBins<Xxh3> {
    BinParameters { capacity, rate, load, growable: false }.build(Some(Seed::from(seed))).unwrap()
}

/// A full filter with repairs, and its remote.
fn repaired(mut filter: ExtendingBins<Xxh3>, strangers: u64) -> (ExtendingBins<Xxh3>, MemoryRemote) {
    let (n, mut remote) = (filter.capacity() as u64, MemoryRemote::new());
    (0..n).for_each(|number| assert!(filter.insert(&key(number), &mut remote).unwrap()));
    for number in n..n + strangers {
        filter.adapt(&key(number), &mut remote).unwrap();
    }
    (filter, remote)
}

/// The answer by definition: an item of the same fingerprint, wherever it lies, whose extension is the key's.
fn plain_walk(filter: &ExtendingBins<Xxh3>, digest: Digest) -> bool {
    let ((bin, entry), key) = (filter.item_of(filter.homes().of(digest.hi)), filter.string(digest));
    let ranks = filter.table.items_of(bin).equal(entry);
    ranks.into_iter().any(|rank| filter.values.get(bin, rank).begins(&key, 0))
}

#[test]
fn every_machine_answers_like_the_plain_walk_one_by_one_and_in_batches() {
    for (rate, load) in [(1.0 / 80.0, 0.99), (1.0 / 256.0, 0.95), (1e-3, 0.95), (2e-3, 0.99), (1e-5, 0.95)] {
        for strangers in [0, 20_000] {
            let (filter, _) = repaired(filter(1_500, rate, load, 4), strangers);
            filter.verify().unwrap();
            assert!(filter.table.next.len() > 0);
            for isa in Isa::available() {
                let mut other = filter.clone();
                other.table = other.table.with_isa(isa);
                let keys: Vec<u64> = (0..1_500).chain(50_000..60_000).collect();
                let mut batched = Vec::new();
                other.contains_many(&keys, &mut batched);
                for (number, batched) in keys.into_iter().zip(batched) {
                    let digest = filter.hasher.digest(&key(number));
                    let expected = plain_walk(&filter, digest);
                    assert_eq!(other.contains_digest(digest), expected, "{isa:?} at {rate}");
                    assert_eq!(
                        other.contains_at(other.place(digest), || digest),
                        expected,
                        "{isa:?} at {rate}"
                    );
                    assert_eq!(batched, expected, "{isa:?} at {rate}, batched");
                }
            }
        }
    }
}

#[test]
fn every_machine_inserts_alike() {
    for rate in [1.0 / 80.0, 1.0 / 256.0, 1e-3, 2e-3, 1e-5] {
        let (expected, _) = repaired(filter(300, rate, 0.95, 5), 3_000);
        for isa in Isa::available() {
            let mut empty = filter(300, rate, 0.95, 5);
            empty.table = empty.table.with_isa(isa);
            assert!(repaired(empty, 3_000).0 == expected, "{isa:?} at {rate}");
        }
    }
}

#[test]
fn repairs_take_nothing_at_first_write_nothing_and_are_given_back() {
    let mut filter = filter(2_000, 1.0 / 256.0, 0.95, 6);
    let mut remote = CountingRemote::new(MemoryRemote::new());
    (0..2_000).for_each(|number| assert!(filter.insert(&key(number), &mut remote).unwrap()));
    let fresh = filter.stats();
    assert_eq!((fresh.adaptivity_bits, fresh.spills, fresh.adapted_slots), (0, 0, 0));
    assert_eq!(remote.take_accesses().changes, 2_000);
    for number in 2_000..40_000 {
        filter.adapt(&key(number), &mut remote).unwrap();
    }
    let (accesses, repaired) = (remote.take_accesses(), filter.stats());
    assert_eq!((accesses.writes, accesses.changes), (0, 0), "a repair has written");
    assert!(repaired.adaptations > 80 && repaired.spills > 30, "{repaired:?}");
    assert_eq!(repaired.bits, fresh.bits + repaired.adaptivity_bits);
    assert!((2_000..40_000).all(|number| !filter.contains(&key(number))));
    for number in 0..2_000 {
        assert!(filter.remove(&key(number), &mut remote).unwrap());
    }
    filter.verify().unwrap();
    let empty = filter.stats();
    assert_eq!((empty.adaptivity_bits, empty.spills, empty.adapted_slots, empty.items), (0, 0, 0, 0));
    assert!((0..filter.table.bins()).all(|bin| filter.table.flags(bin) == 0));
}

/// Keys come and go where bins are full, so that items with extensions move to the second level and back all the time.
#[test]
fn keys_and_repairs_survive_replacements_at_high_load() {
    for (load, rate) in [(0.90, 1.0 / 256.0), (0.95, 1.0 / 80.0), (0.99, 1e-3)] {
        let (mut filter, mut remote) = repaired(filter(1_000, rate, load, 8), 30_000);
        let (mut random, mut members) = (Random::new(9), (0..1_000).collect::<Vec<u64>>());
        let (first, bits) = (filter.table.next.len(), filter.stats().bits);
        for step in 0..20_000 {
            let member = random.below(1_000) as usize;
            assert!(filter.remove(&key(members[member]), &mut remote).unwrap(), "a key was lost");
            members[member] = random.next();
            assert!(filter.insert(&key(members[member]), &mut remote).unwrap());
            let stranger = key(random.next());
            if filter.contains(&stranger) {
                filter.adapt(&stranger, &mut remote).unwrap();
                assert!(!filter.contains(&stranger));
            }
            if step % 2_000 == 0 {
                filter.check(&mut remote);
                assert!(members.iter().all(|&number| filter.contains(&key(number))), "a key was lost");
            }
        }
        let (last, end) = (filter.table.next.len(), filter.stats().bits);
        assert!(
            last < 2 * first + 60 && end < bits + bits / 2,
            "{first} to {last} beyond, {bits} to {end} bits"
        );
    }
}

#[test]
fn without_memory_for_the_second_level_filter_and_remote_stay_as_they_are() {
    let (mut filter, mut remote) = repaired(filter(300, 1.0 / 256.0, 0.99, 7), 10_000);
    assert!(filter.values.adapted() > 0);
    filter.capacity = 1_000;
    let (mut refused, mut before) = (0, filter.clone());
    for number in 100_000..100_400 {
        fault::after(Some(0));
        let inserted = filter.insert(&key(number), &mut remote);
        fault::after(None);
        match inserted {
            Err(AdaptiveError::OutOfMemory { .. }) => {
                refused += 1;
                assert!(filter == before, "a refused insertion has changed the filter");
            }
            inserted => {
                assert!(inserted.unwrap());
                before = filter.clone();
            }
        }
        assert_eq!(remote.len(), filter.len());
    }
    assert!(refused > 50, "{refused}");
    filter.check(&mut remote);
}

#[test]
fn verification_sees_flags_and_extensions_that_are_wrong() {
    let (filter, _) = repaired(filter(3_000, 1.0 / 256.0, 0.95, 7), 3_000);
    let table = &filter.table;
    let some_flags = |&bin: &u64| table.has_flags(bin) && table.flags(bin) != table.flags_of(u64::MAX);
    let bin = (0..table.bins()).find(some_flags).unwrap();
    let mut unflagged = filter.clone();
    unflagged.table.set_flags(bin, 0);
    let mut flagged = filter.clone();
    flagged.table.set_flags(bin, u64::MAX);
    let mut beyond = filter.clone();
    let items = filter.table.items_of(bin).len();
    beyond.values.set(bin, filter.table.bins(), &[(items, Extension::new(1, 1))]);
    for damaged in [unflagged, flagged, beyond] {
        assert!(damaged.verify().is_err() && filter.verify().is_ok());
    }
}

#[test]
fn extensions_are_what_was_stored_last_at_any_rank() {
    let mut random = Random::new(3);
    for slots in [20, 42, 50, 53] {
        let (mut values, mut model) = (Values::new(slots), BTreeMap::<(u64, usize), Extension>::new());
        for _ in 0..3_000 {
            let (bin, items) = (random.below(40), random.below(150) as usize);
            let rate = 1 + random.below(30);
            let mut any = || {
                let len = if random.one_in(rate) { 1 + random.below(62) as u32 } else { 0 };
                Extension::new(random.next() & ((1 << len) - 1), len)
            };
            let new: Vec<Extension> = (0..items).map(|_| any()).collect();
            values.store(bin, 40, &new);
            model.retain(|&(other, _), _| other != bin);
            let stored = new.iter().enumerate().filter(|(_, value)| value.len() > 0);
            model.extend(stored.map(|(rank, &value)| ((bin, rank), value)));
            assert_eq!(values.load(bin, items), new);
            let from = random.below(150) as usize;
            let first = model.range((bin, from)..(bin + 1, 0)).next().map(|(&(_, rank), _)| rank);
            assert_eq!(values.first_from(bin, from), first);
            for rank in 0..150 {
                assert_eq!(values.get(bin, rank), model.get(&(bin, rank)).copied().unwrap_or_default());
            }
            assert_eq!(values.adapted(), model.len());
        }
        assert!(values.iter().eq(model.iter().map(|(&(bin, rank), &value)| (bin, rank, value))));
        (0..40).for_each(|bin| values.store(bin, 40, &[]));
        assert_eq!((values.memory_bits(), values.adapted(), values.bins()), (0, 0, 0));
    }
}

#[test]
fn builders_say_what_bins_cannot_do_and_how_large_they_are() {
    use crate::{BuildError, ExtensionFilter, Overflow, Table};

    let builder = ExtensionFilter::builder().capacity(1_000).table(Table::Bins);
    let conflict = BuildError::Conflict { first: "table(Bins)", second: "overflow(Reset)" };
    assert_eq!(builder.clone().overflow(Overflow::Reset).build().unwrap_err(), conflict);
    assert!(matches!(
        builder.clone().false_positive_rate(1e-9).build(),
        Err(BuildError::RateOutOfRange { .. })
    ));
    assert!(matches!(builder.clone().max_load(1.0).build(), Err(BuildError::OutOfRange { .. })));
    for capacity in [1, 46, 1_000, 99_991] {
        for rate in [0.5, 0.01, 1.0 / 256.0, 1e-3, 1e-4] {
            let builder = builder.clone().capacity(capacity).false_positive_rate(rate);
            let size = builder.size_in_bits().unwrap();
            let filter = builder.build().unwrap();
            assert_eq!((filter.stats().bits, filter.table()), (size, Table::Bins), "{capacity} {rate}");
        }
    }
}
