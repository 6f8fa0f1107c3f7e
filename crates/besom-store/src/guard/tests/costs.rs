//! Catches: a false positive that costs more than a look-up and one range, a small write that copies the filter, a key without data
//! that nobody is told of, removed keys that stay in the filter.

use std::sync::atomic::{AtomicU64, Ordering};

use besom::cascade::AdaptiveBloomFilter;
use besom::cuckoo::CuckooingFilter;
use besom::{
    BroomFilter, BuildError, Digest, ExtensionFilter, Filter, HashKind, KeyHasher, Seed, TelescopingFilter,
    Xxh3,
};

use super::faulty::{Dice, Faulty};
use crate::engine::{Durability, Engine, Table, Write};
use crate::{
    Batch, Layout, MemoryEngine, Opening, Options, Store, StoreError, StoreFilter, VerifyError, wait,
};

fn make(_: usize, seed: Seed) -> Result<TelescopingFilter, BuildError> {
    TelescopingFilter::builder().capacity(200).false_positive_rate(0.2).seed(seed).build()
}

#[test]
fn a_false_positive_costs_one_look_up_and_one_range() {
    for layout in [Layout::Hashed, Layout::Ordered] {
        let dice = Dice::new(1);
        let engine = Faulty { inner: MemoryEngine::new(), dice: dice.clone() };
        let store = wait(Store::open(engine, make, Options::new().layout(layout))).unwrap();
        for number in 0..90_u64 {
            wait(store.insert(&number.to_le_bytes(), b"")).unwrap();
        }
        let before = store.metrics();
        dice.take_reads();
        for number in 1_000..3_000_u64 {
            assert!(wait(store.get(&number.to_le_bytes())).unwrap().is_none());
        }
        let after = store.metrics();
        let met = after.false_positives - before.false_positives;
        assert!(met > 50 && after.adaptations - before.adaptations == met, "{after:?}");
        assert_eq!(dice.take_reads(), [met, met], "{layout:?}");
        // A key that is there costs a look-up, and one that the filter rejects nothing.
        assert!(wait(store.get(&7_u64.to_le_bytes())).unwrap().is_some());
        assert_eq!(dice.take_reads(), [1, 0]);
        // A value that is lent costs the same, and whether there is one costs no value.
        assert_eq!(wait(store.get_with(&7_u64.to_le_bytes(), <[u8]>::len)).unwrap(), Some(0));
        assert_eq!((dice.take_reads(), dice.take_asked()), ([1, 0], 0));
        assert!(wait(store.contains_key(&7_u64.to_le_bytes())).unwrap());
        assert_eq!((dice.take_reads(), dice.take_asked()), ([0, 0], 1));
        // A new key costs no more than telling that it is new.
        let new = (5_000..6_000_u64).find(|number| !store.may_contain_key(&number.to_le_bytes())).unwrap();
        wait(store.insert(&new.to_le_bytes(), b"")).unwrap();
        assert_eq!(dice.take_reads(), [0, 0]);
        // Nor does what nobody asks for, until somebody counts: then each home is read once.
        for number in 0..40_u64 {
            wait(store.put(&number.to_le_bytes(), b"new")).unwrap();
            wait(store.delete(&(40 + number).to_le_bytes())).unwrap();
        }
        assert_eq!((dice.take_reads(), store.metrics().keys_in_doubt), ([0, 0], 80));
        assert_eq!(wait(store.len()).unwrap(), 51);
        let [_, ranges] = dice.take_reads();
        assert!(ranges <= 80 && store.metrics().keys_in_doubt == 0, "{ranges} ranges");
        wait(store.verify()).unwrap();
    }
}

/// Keys that leave together leave one by one: none stays behind for the sake of another, and nothing is built again.
#[test]
fn all_keys_of_a_batch_leave_the_filter() {
    fn play<F: StoreFilter>(layout: Layout, make: fn(usize, Seed) -> Result<F, BuildError>) {
        let store = wait(Store::open(MemoryEngine::new(), make, Options::new().layout(layout))).unwrap();
        for round in 0..30_u64 {
            let (mut enter, mut leave) = (Batch::new(), Batch::new());
            for number in 0..60_u64 {
                enter.insert(&(round << 8 | number).to_le_bytes(), b"");
                leave.remove(&(round << 8 | number).to_le_bytes());
            }
            wait(store.write(&enter)).unwrap();
            leave.insert(b"another", b"");
            wait(store.write(&leave)).unwrap();
            wait(store.remove(b"another")).unwrap();
        }
        wait(store.verify()).unwrap();
        let metrics = store.metrics();
        let left = (metrics.keys, metrics.failed_removals, metrics.settled, metrics.rebuilds);
        assert_eq!(left, (0, 0, 0, 0), "{layout:?}: {metrics:?}");
    }
    for layout in [Layout::Hashed, Layout::Ordered] {
        play(layout, make);
        play(layout, |_, seed| ExtensionFilter::builder().capacity(100).seed(seed).build());
        play(layout, |_, seed| AdaptiveBloomFilter::builder().capacity(100).seed(seed).build());
        play(layout, |_, seed| CuckooingFilter::builder().capacity(100).seed(seed).build());
        play(layout, |_, seed| BroomFilter::builder().capacity(100).seed(seed).build());
    }
}

/// A hash function that tells how often its filter was copied.
#[derive(Debug, PartialEq)]
struct Telling(Xxh3);

static COPIES: AtomicU64 = AtomicU64::new(0);

impl Clone for Telling {
    fn clone(&self) -> Self {
        COPIES.fetch_add(1, Ordering::Relaxed);
        Self(self.0.clone())
    }
}

impl KeyHasher for Telling {
    const KIND: HashKind = HashKind::Xxh3;

    fn with_seed(seed: Seed) -> Self {
        Self(Xxh3::with_seed(seed))
    }

    fn seed(&self) -> Seed {
        self.0.seed()
    }

    fn digest(&self, bytes: &[u8]) -> Digest {
        self.0.digest(bytes)
    }

    fn rehash(&self, digest: Digest, counter: u64) -> Digest {
        self.0.rehash(digest, counter)
    }
}

#[test]
fn writes_copy_the_filter_when_it_grows_and_never_else() {
    let make = |_, seed| {
        TelescopingFilter::builder().hasher::<Telling>().capacity(100).seed(seed).growable().build()
    };
    let store = wait(Store::open(MemoryEngine::new(), make, Options::new())).unwrap();
    let pairs = |from: u64, to: u64| {
        for number in from..to {
            let (one, two) = ((2 * number).to_le_bytes(), (2 * number + 1).to_le_bytes());
            wait(store.write(Batch::new().insert(&one, b"").insert(&two, b""))).unwrap();
        }
    };
    let before = COPIES.load(Ordering::Relaxed);
    pairs(0, 40);
    wait(store.write(Batch::new().remove(&1_u64.to_le_bytes()).insert(&2_u64.to_le_bytes(), b"2"))).unwrap();
    assert_eq!(COPIES.load(Ordering::Relaxed), before);
    pairs(40, 200);
    assert!(COPIES.load(Ordering::Relaxed) > before, "it has grown: the test shows nothing");
}

#[test]
fn a_key_without_data_is_counted_and_told() {
    let engine = MemoryEngine::new();
    let store = wait(Store::open(engine.clone(), make, Options::new().layout(Layout::Ordered))).unwrap();
    for number in 0..50_u64 {
        wait(store.insert(&number.to_le_bytes(), b"")).unwrap();
    }
    let gone = 7_u64.to_le_bytes();
    let write = Write { table: Table::Data, key: gone.to_vec(), value: None };
    wait(engine.write(vec![write], Durability::Durable)).unwrap();
    assert!(wait(store.get(&gone)).unwrap().is_none());
    assert_eq!(store.metrics().denied, 1);
    let fault = store.take_fault();
    assert!(matches!(&fault, Some(StoreError::NoData { key }) if **key == gone), "{fault:?}");
    assert!(wait(store.verify()).is_err());
}

/// Deletes the rows of a key behind the store's back.
fn lose(engine: &MemoryEngine, store: &Store<TelescopingFilter, MemoryEngine>, key: &[u8]) {
    let hashed = crate::rows::row(store.with_filter(|filter| filter.hasher().digest(key)).hi, key);
    let rows = match store.layout() {
        Layout::Hashed => vec![(Table::Data, hashed)],
        Layout::Ordered => vec![(Table::Data, key.to_vec()), (Table::Index, hashed)],
    };
    let write = |(table, key)| Write { table, key, value: None };
    wait(engine.write(rows.into_iter().map(write).collect(), Durability::Durable)).unwrap();
}

/// A filter that is built from what is there agrees with it, whatever is gone.
#[test]
fn verify_counts_and_does_not_begin_by_building() {
    for layout in [Layout::Hashed, Layout::Ordered] {
        let engine = MemoryEngine::new();
        let open = || wait(Store::open(engine.clone(), make, Options::new().layout(layout))).unwrap();
        let store = open();
        for number in 0..50_u64 {
            wait(store.insert(&number.to_le_bytes(), b"")).unwrap();
        }
        wait(store.verify()).unwrap();
        lose(&engine, &store, &7_u64.to_le_bytes());
        // As if a repair had found that filter and index disagree: the next write would build.
        drop(store.disagreed(StoreError::Inconsistent { address: 0 }));
        assert!(wait(store.verify()).is_err(), "{layout:?}");
        assert_eq!(store.metrics().rebuilds, 0, "it is built from what is to be judged");
        drop(store);
        let store = open();
        assert!(matches!(store.opening(), Opening::Built { keys: 49, .. }), "{:?}", store.opening());
        for _ in 0..2 {
            let error = wait(store.verify()).unwrap_err();
            assert!(matches!(error, VerifyError::Data { .. }), "{layout:?}: {error}");
            wait(store.insert(b"another", b"")).unwrap();
        }
        wait(store.insert(&7_u64.to_le_bytes(), b"")).unwrap();
        assert_eq!(wait(store.len()).unwrap(), 51);
    }
}
