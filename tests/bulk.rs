//! Catches: a filter from many keys at once that differs from one that they were inserted into, or that does not come back
//! from its remote.

use besom::bloom::{BlockedBloomFilter, BloomFilter};
use besom::cuckoo::CuckooFilter;
use besom::quotient::QuotientFilter;
use besom::telescoping::UncompressedTelescopingFilter;
use besom::testing::{Fault, Faults, Faulty, Random};
use besom::tinyset::TinySet;
use besom::{
    Adaptive, AdaptiveError, BinFilter, BulkError, Change, ExtensionFilter, Filter, Growable, Insert,
    KeyHasher, MemoryRemote, Overflow, Remote, SipHash, Table, TelescopingFilter,
};

const GROUNDS: [Table; 2] = [Table::Quotient, Table::Bins];

fn keys(count: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    (0..count).map(|_| random.next()).collect()
}

#[test]
fn quotient_filters_are_those_that_insertion_makes() {
    for (count, rate) in [(0, 0.01), (1, 0.4), (50, 0.1), (5_000, 1e-6), (70_000, 1.0 / 256.0)] {
        // Some of them twice: they count twice.
        let mut keys = keys(count, 7);
        keys.extend_from_within(..count / 10);
        let builder = QuotientFilter::builder().false_positive_rate(rate).seed(3_u64).hasher::<SipHash>();
        let bulk = builder.clone().from_keys(&keys).unwrap();
        let mut single = builder.capacity(keys.len().max(1)).build().unwrap();
        keys.iter().for_each(|key| assert!(single.insert(key).is_ok()));
        bulk.verify().unwrap();
        assert!(bulk == single && bulk.capacity() == keys.len().max(1), "{count} keys");
    }
    let larger =
        QuotientFilter::builder().capacity(1_000).growable_to(2_000).from_keys(&keys(10, 1)).unwrap();
    assert_eq!((larger.len(), larger.capacity()), (10, 1_000));
}

#[test]
fn bin_filters_are_those_that_insertion_makes() {
    for (count, rate) in [(0, 0.01), (1, 0.4), (50, 0.1), (5_000, 1e-4), (70_000, 1.0 / 256.0)] {
        // 70 000 keys are inserted by all threads.
        for load in [0.5, 0.9, 0.99] {
            let mut keys = keys(count, 7);
            keys.extend_from_within(..count / 10);
            let builder = BinFilter::builder().false_positive_rate(rate).max_load(load).seed(3_u64);
            let bulk = builder.clone().from_keys(&keys).unwrap();
            let mut single = builder.capacity(keys.len().max(1)).build().unwrap();
            keys.iter().for_each(|key| assert!(single.insert(key).is_ok()));
            bulk.verify().unwrap();
            assert!(bulk == single && bulk.capacity() == keys.len().max(1), "{count} keys at load {load}");
        }
    }
    let larger = BinFilter::builder().capacity(1_000).growable_to(2_000).from_keys(&keys(10, 1)).unwrap();
    assert_eq!((larger.len(), larger.capacity()), (10, 1_000));
    assert!(BinFilter::builder().false_positive_rate(0.9).from_keys(&[1_u64]).is_err());
}

/// Of sizes where keys do not wait, and where they do.
#[test]
fn extended_filters_are_those_that_insertion_makes() {
    fn agrees<F: Insert + Extend<u64> + PartialEq + Clone>(empty: &F, keys: &[u64]) {
        let (mut extended, mut inserting, mut single) = (empty.clone(), empty.clone(), empty.clone());
        extended.extend(keys.iter().copied());
        let mut inserter = inserting.inserter();
        keys.iter().for_each(|key| inserter.insert(key).unwrap());
        inserter.finish().unwrap();
        keys.iter().for_each(|key| assert!(single.insert(key).is_ok()));
        extended.verify().unwrap();
        assert!(extended == single && inserting == single, "{} keys", keys.len());
    }
    for count in [100, 140_000] {
        let keys = keys(count, 9);
        agrees(&BinFilter::builder().capacity(count).seed(1_u64).build().unwrap(), &keys);
        agrees(&QuotientFilter::builder().capacity(count).seed(1_u64).build().unwrap(), &keys);
        agrees(&BlockedBloomFilter::builder().capacity(count).seed(1_u64).build().unwrap(), &keys);
    }
}

/// Whether two filters hold the same keys, wherever they stand in their runs.
fn same_answers<F: Filter>(one: &F, two: &F, keys: &[u64]) -> bool {
    let agree = |key: &u64| one.contains(key) == two.contains(key);
    one.len() == two.len()
        && keys.iter().all(|key| one.contains(key) && two.contains(key))
        && (0..10_000).all(|key| agree(&key))
}

/// Builds filters of one kind in every way and compares them, and their remotes.
macro_rules! agree {
    ($($test:ident: $filter:ident $(, $call:ident($value:expr))*;)*) => {$(
        #[test]
        fn $test() {
            for (count, rate) in [(1, 0.4), (50, 0.1), (5_000, 1e-4), (70_000, 1.0 / 256.0)] {
                let mut keys = keys(count, 7);
                let builder = $filter::builder()$(.$call($value))*.false_positive_rate(rate).seed(3_u64);
                // A key that comes again is the same key.
                keys.extend_from_within(..count / 10);
                keys.extend(std::iter::repeat_n(keys[0], 40));
                let mut single = builder.clone().capacity(keys.len()).build().unwrap();
                let mut remote = MemoryRemote::new();
                let fresh = keys.iter().filter(|key| single.insert(*key, &mut remote).unwrap()).count();
                assert_eq!(fresh, count);
                let mut bulk_remote = MemoryRemote::new();
                bulk_remote.apply(&[Change::Insert { address: 5, key: b"left over" }]).unwrap();
                let bulk = builder.clone().from_keys(&keys, &mut bulk_remote).unwrap();
                bulk.verify().unwrap();
                bulk.verify_remote(&mut bulk_remote).unwrap();
                assert!(same_answers(&bulk, &single, &keys) && remote.iter().eq(bulk_remote.iter()), "{count} keys");
                assert_eq!((bulk.len(), bulk.capacity()), (count, keys.len()));
                let back = builder.clone().capacity(keys.len()).from_sorted(&mut bulk_remote);
                assert!(same_answers(&back.unwrap(), &bulk, &keys), "{count} keys");
            }
        }
    )*};
}

agree! {
    telescoping_filters_agree: TelescopingFilter;
    telescoping_filters_that_forget_agree: TelescopingFilter, overflow(Overflow::Reset);
    uncompressed_telescoping_filters_agree: UncompressedTelescopingFilter;
    extension_filters_agree: ExtensionFilter;
    extension_filters_on_quotients_agree: ExtensionFilter, table(Table::Quotient);
    extension_filters_on_bins_agree: ExtensionFilter, table(Table::Bins);
}

/// Keys of 8 bytes are sorted themselves, others by their numbers.
#[test]
fn keys_of_every_length_come_into_filter_and_remote_once() {
    let lengths: [fn(usize) -> usize; 3] =
        [|_| 8, |number| number % 20, |number| if number < 900 { 8 } else { 9 }];
    for (length, table) in lengths.into_iter().zip([Table::Quotient, Table::Bins, Table::Quotient]) {
        let name = |number: usize| format!("{number:0>8}{number:->20}")[..length(number).max(4)].to_owned();
        let keys: Vec<String> = (0..3_000).map(|number| name(number % 1_000)).collect();
        let unique: std::collections::BTreeSet<&[u8]> = keys.iter().map(String::as_bytes).collect();
        let mut remote = MemoryRemote::new();
        let builder = ExtensionFilter::builder().table(table).seed(5_u64);
        let filter = builder.from_keys(&keys, &mut remote).unwrap();
        filter.verify_remote(&mut remote).unwrap();
        assert!(filter.len() == unique.len() && keys.iter().all(|key| filter.contains(key)));
        let stored: std::collections::BTreeSet<&[u8]> = remote.iter().map(|(_, key)| key).collect();
        assert_eq!(stored, unique);
    }
}

#[test]
fn filters_come_back_from_their_remotes_however_often_they_grew() {
    GROUNDS.into_iter().for_each(comes_back);
}

fn comes_back(table: Table) {
    let builder = ExtensionFilter::builder().capacity(50).table(table).seed(1_u64).growable();
    let (mut filter, mut remote) = (builder.clone().build().unwrap(), MemoryRemote::new());
    assert_eq!(builder.clone().from_sorted(&mut remote).unwrap().len(), 0);
    for key in 0..20_000_u64 {
        filter.insert(&key, &mut remote).unwrap();
        if key.is_power_of_two() || key % 997 == 0 {
            let back = builder
                .clone()
                .from_sorted(&mut remote)
                .unwrap_or_else(|error| panic!("{key} keys: {error}"));
            back.verify_remote(&mut remote).unwrap();
            assert_eq!((back.len(), back.capacity()), (filter.len(), filter.capacity()), "after {key} keys");
        }
    }
    let fixed = ExtensionFilter::builder().capacity(50).table(table).seed(1_u64);
    let fixed = fixed.from_sorted(&mut remote).map(drop);
    assert!(matches!(fixed, Err(BulkError::Filter(AdaptiveError::Full(_)))), "{fixed:?}");
    let other = builder.clone().seed(2_u64).from_sorted(&mut remote).map(drop);
    assert!(matches!(other, Err(BulkError::Filter(AdaptiveError::Inconsistent { .. }))), "{other:?}");
    filter.grow(&mut remote).unwrap();
}

#[test]
fn keys_at_addresses_that_are_not_theirs_are_refused() {
    let keys = keys(500, 3);
    for table in GROUNDS {
        let builder = ExtensionFilter::builder().capacity(600).table(table).seed(1_u64);
        let mut remote = MemoryRemote::new();
        let filter = builder.clone().from_keys(&keys, &mut remote).unwrap();
        let own = filter.hasher().digest(b"key").hi;
        for address in [0, own - 1, own + 1, own >> 16, u64::MAX] {
            let mut remote = remote.clone();
            remote.apply(&[Change::Insert { address, key: b"key" }]).unwrap();
            let refused = builder.clone().from_sorted(&mut remote).map(drop);
            let inconsistent = matches!(refused, Err(BulkError::Filter(AdaptiveError::Inconsistent { address: at, .. })) if at == address);
            assert!(inconsistent, "{table:?}, {address}: {refused:?}");
        }
        remote.apply(&[Change::Insert { address: own, key: b"key" }]).unwrap();
        assert_eq!(builder.from_sorted(&mut remote).unwrap().len(), 501);
    }
}

#[test]
fn remotes_that_fail_are_reported() {
    let keys = keys(5_000, 3);
    let builder = TelescopingFilter::builder().seed(1_u64);
    let mut accesses = 0;
    loop {
        let mut remote = Faulty::new(MemoryRemote::new(), Faults::none());
        remote.faults.light_fuse(accesses, Fault::FailBefore);
        match builder.clone().from_keys(&keys, &mut remote) {
            Ok(_) => break,
            Err(error) => assert!(matches!(error, BulkError::Filter(AdaptiveError::Remote(_))), "{error}"),
        }
        accesses += 1;
    }
    assert!(accesses > 3, "{accesses}");
    let zero = builder.capacity(usize::MAX / 2).from_keys(&keys, &mut MemoryRemote::new()).map(drop);
    assert!(matches!(zero, Err(BulkError::Build(_))), "{zero:?}");
}

/// Many keys at once are the same keys one after the other.
fn insert_many_agrees<F: Insert>(build: impl Fn() -> F, same: impl Fn(&F, &F) -> bool) {
    let keys = keys(30_000, 5);
    let (mut single, mut many) = (build(), build());
    let mut fresh = 0;
    for part in [0..10, 10..11, 11..11, 11..9_000, 9_000..30_000] {
        let new = keys[part.clone()].iter().filter(|key| single.insert(*key).unwrap()).count();
        assert_eq!(many.insert_many(&keys[part]).unwrap(), new);
        fresh += new;
        many.verify().unwrap();
        assert!(same(&single, &many));
    }
    assert!(fresh > 20_000 && keys.iter().all(|key| many.contains(key)));
}

#[test]
fn many_insertions_are_the_same_as_one_after_the_other() {
    let same_answers = |one: &dyn Fn(&u64) -> bool, two: &dyn Fn(&u64) -> bool| {
        (0..10_000).all(|key| one(&key) == two(&key))
    };
    let (n, seed) = (30_000, 1_u64);
    insert_many_agrees(
        || QuotientFilter::builder().capacity(n).seed(seed).build().unwrap(),
        |one, two| one == two,
    );
    insert_many_agrees(
        || QuotientFilter::builder().capacity(100).growable_to(n).seed(seed).build().unwrap(),
        |one, two| one == two,
    );
    insert_many_agrees(
        || BinFilter::builder().capacity(n).seed(seed).build().unwrap(),
        |one, two| one == two,
    );
    insert_many_agrees(
        || BinFilter::builder().capacity(n / 8).growable_to(n).seed(seed).build().unwrap(),
        |one, two| one == two,
    );
    insert_many_agrees(
        || BloomFilter::builder().capacity(n).seed(seed).build().unwrap(),
        |one, two| same_answers(&|key| one.contains(key), &|key| two.contains(key)),
    );
    insert_many_agrees(
        || BlockedBloomFilter::builder().capacity(n).seed(seed).build().unwrap(),
        |one, two| same_answers(&|key| one.contains(key), &|key| two.contains(key)),
    );
    insert_many_agrees(
        || TinySet::builder().capacity(n).seed(seed).build().unwrap(),
        |one, two| same_answers(&|key| one.contains(key), &|key| two.contains(key)),
    );
    insert_many_agrees(
        || CuckooFilter::builder().capacity(n).seed(seed).build().unwrap(),
        |one, two| same_answers(&|key| one.contains(key), &|key| two.contains(key)),
    );
}

#[test]
fn many_keys_fill_an_empty_filter_as_they_would_one_after_the_other() {
    for count in [200, 256, 5_000, 30_000] {
        let mut keys = keys(count, 5);
        keys.extend_from_within(..count / 10);
        // Remainders of a few bits: some keys are the same item.
        let builder = QuotientFilter::builder().capacity(keys.len()).false_positive_rate(0.1).seed(1_u64);
        let (mut single, mut many) = (builder.clone().build().unwrap(), builder.build().unwrap());
        let fresh = keys.iter().filter(|key| single.insert(*key).unwrap()).count();
        assert_eq!(many.insert_many(&keys).unwrap(), fresh);
        many.verify().unwrap();
        assert!(single == many && fresh < count, "{count} keys, {fresh} of them fresh");
        assert!(many.insert_many(&keys).is_err() && many.len() == keys.len());
    }
}

#[test]
fn a_filter_that_is_full_says_how_many_keys_are_in() {
    let keys = keys(1_000, 5);
    for capacity in [1, 10, 999] {
        let mut filter = QuotientFilter::builder().capacity(capacity).seed(1_u64).build().unwrap();
        let error = filter.insert_many(&keys).unwrap_err();
        assert_eq!((error.inserted, filter.len(), error.full.len), (capacity, capacity, capacity));
        assert!(keys[..capacity].iter().all(|key| filter.contains(key)));
        let mut model = QuotientFilter::builder().capacity(capacity).seed(1_u64).build().unwrap();
        keys[..capacity].iter().for_each(|key| assert!(model.insert(key).is_ok()));
        assert!(model == filter && error.to_string().contains(&format!("first {capacity} keys")));
    }
    let mut bins = BinFilter::builder().capacity(100).growable_to(300).seed(1_u64).build().unwrap();
    let error = bins.insert_many(&keys).unwrap_err();
    assert_eq!((error.inserted, error.full.capacity), (bins.len(), bins.capacity()));
    assert!(bins.len() >= 300 && keys[..error.inserted].iter().all(|key| bins.contains(key)));
    let mut small = CuckooFilter::builder().capacity(500).seed(1_u64).build().unwrap();
    let error = small.insert_many(&keys).unwrap_err();
    assert_eq!(error.inserted, small.len());
    assert!(keys[..error.inserted].iter().all(|key| small.contains(key)));
}

/// Beyond this many keys, filters let keys wait for their memory.
const LARGE: usize = 200_000;

fn keeps_what_came_before_a_panic<F: Filter + Extend<u64>>(mut filter: F) {
    let keys = (0..100).chain(std::iter::once_with(|| panic!("the source of keys has failed")));
    let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| filter.extend(keys)));
    assert!(died.is_err() && filter.len() == 100 && (0..100_u64).all(|key| filter.contains(&key)));
    filter.verify().unwrap();
}

#[test]
fn keys_that_came_before_their_iterator_panicked_are_in() {
    for capacity in [1_000, LARGE] {
        keeps_what_came_before_a_panic(BinFilter::with_capacity(capacity).unwrap());
        keeps_what_came_before_a_panic(QuotientFilter::with_capacity(capacity).unwrap());
        keeps_what_came_before_a_panic(BlockedBloomFilter::with_capacity(capacity).unwrap());
    }
}
