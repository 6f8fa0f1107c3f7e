//! Catches: a transaction that is made in part or by half, a table that is adopted with a row too few or too many, snapshots that
//! are not taken by themselves, commits that should be durable and are not.

use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use besom::cuckoo::CuckooingFilter;
use besom::testing::Random;
use besom::{BuildError, Seed, TelescopingFilter};
use besom_store::redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use besom_store::{Durability, Layout, Opening, RedbStore, StoreError, StoreFilter};

use crate::common::{Directory, Model, check, key};

const OWN: TableDefinition<'_, u64, &str> = TableDefinition::new("my own");
pub(crate) const ROWS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("rows of old");

type Failure = Box<dyn std::error::Error>;

pub(crate) fn make(_: usize, seed: Seed) -> Result<TelescopingFilter, BuildError> {
    TelescopingFilter::builder().capacity(8).seed(seed).false_positive_rate(0.2).growable().build()
}

/// Some changes in one transaction, which is taken back in the end or not.
fn transact<F: StoreFilter>(store: &RedbStore<F>, model: &mut Model, random: &mut Random) {
    let (mut after, fails, number) = (model.clone(), random.one_in(3), random.next());
    let done = store.transact(|txn| {
        for _ in 0..random.below(12) {
            let (key, value) = (key(random.below(80)), random.next().to_le_bytes());
            assert_eq!(txn.get(&key)?, after.get(&key).cloned());
            match random.below(3) {
                0 => assert_eq!(txn.remove(&key)?, after.remove(&key)),
                _ => assert_eq!(txn.insert(&key, &value)?, after.insert(key.clone(), value.to_vec())),
            }
            // Nobody else sees it yet.
            assert_eq!(store.get(&key)?, model.get(&key).cloned());
        }
        txn.redb().open_table(OWN)?.insert(number, "mine")?;
        if fails { Err("taken back".into()) } else { Ok::<(), Failure>(()) }
    });
    assert_eq!(done.is_err(), fails, "{done:?}");
    if !fails {
        *model = after;
    }
    let own = |txn: &mut besom_store::Transaction<'_, F>| {
        Ok::<_, Failure>(txn.redb().open_table(OWN)?.get(number)?.is_some())
    };
    assert_eq!(store.transact(own).unwrap(), !fails, "both or none");
}

#[test]
fn own_tables_and_the_store_change_together_or_not_at_all() {
    fn play<F: StoreFilter>(layout: Layout, make: fn(usize, Seed) -> Result<F, BuildError>) {
        let directory = Directory::new();
        let store = RedbStore::builder().layout(layout).open(directory.file("store"), make).unwrap();
        let (mut model, mut random) = (Model::new(), Random::new(layout as u64));
        for round in 0..60 {
            transact(&store, &mut model, &mut random);
            if round % 10 == 0 {
                check(&store, &model);
            }
        }
        check(&store, &model);
    }
    for layout in [Layout::Hashed, Layout::Ordered] {
        play(layout, make);
        play(layout, |_, seed| CuckooingFilter::builder().capacity(100).seed(seed).build());
    }
}

/// What the filter has no room for is not committed, and neither are the tables beside it.
#[test]
fn a_transaction_that_does_not_fit_leaves_nothing_behind() {
    let directory = Directory::new();
    let make = |_, seed| TelescopingFilter::builder().capacity(4).seed(seed).build();
    let store = RedbStore::open(directory.file("store"), make).unwrap();
    let full = store.transact(|txn| {
        (0..5_u64).try_for_each(|key| txn.insert(&key.to_le_bytes(), b"").map(drop))?;
        let mut own = txn.redb().open_table(OWN).map_err(|error| StoreError::Engine(error.into()))?;
        own.insert(1, "mine").map(drop).map_err(|error| StoreError::Engine(error.into()))
    });
    assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
    check(&store, &Model::new());
    let gone = store.transact(|txn| Ok::<_, Failure>(txn.redb().open_table(OWN)?.get(1)?.is_none()));
    assert!(gone.unwrap());
    store.insert(b"one", b"fits").unwrap();
    check(&store, &Model::from([(b"one".to_vec(), b"fits".to_vec())]));
}

/// A database with a table of this many rows.
pub(crate) fn with_table(path: &std::path::Path, rows: u64) -> Model {
    let model: Model = (0..rows).map(|number| (key(number), number.to_le_bytes().to_vec())).collect();
    let database = Database::create(path).unwrap();
    let transaction = database.begin_write().unwrap();
    let mut table = transaction.open_table(ROWS).unwrap();
    model.iter().for_each(|(key, value)| drop(table.insert(&key[..], &value[..]).unwrap()));
    drop(table);
    transaction.commit().unwrap();
    model
}

#[test]
fn a_table_becomes_a_store() {
    for layout in [Layout::Hashed, Layout::Ordered] {
        let directory = Directory::new();
        let path = directory.file("store");
        let model = with_table(&path, 10_000);
        assert!(matches!(RedbStore::open(&path, make), Err(StoreError::NotAStore { .. })));
        let told = Arc::new(Mutex::new(Vec::new()));
        let listener = told.clone();
        let builder = RedbStore::builder()
            .layout(layout)
            .on_progress(move |progress| listener.lock().unwrap().push((progress.keys, progress.total)));
        let store = builder.adopt(&path, ROWS, make).unwrap();
        check(&store, &model);
        assert_eq!(*told.lock().unwrap(), [(4096, 10_000), (8192, 10_000), (10_000, 10_000)]);
        drop(store);
        // Once is enough, and the table is gone.
        check(&RedbStore::builder().adopt(&path, ROWS, make).unwrap(), &model);
        check(&RedbStore::open(&path, make).unwrap(), &model);
        let tables = Database::open(&path).unwrap().begin_read().unwrap().list_tables().unwrap().count();
        assert_eq!(tables, 3);
    }
}

/// The adoption ends after its first transaction, as if the process were killed.
#[test]
fn a_half_adopted_table_is_refused_and_adopted_to_its_end() {
    let directory = Directory::new();
    let path = directory.file("store");
    let model = with_table(&path, 9_000);
    let stop = std::panic::catch_unwind(|| {
        let builder =
            RedbStore::builder().on_progress(|progress| assert!(progress.keys > 4096, "made to panic"));
        builder.adopt(&path, ROWS, make).map(drop)
    });
    assert!(stop.is_err());
    let error = RedbStore::open(&path, make).unwrap_err();
    assert!(matches!(&error, StoreError::HalfAdopted { table, .. } if table == "rows of old"), "{error}");
    let other: TableDefinition<'_, u64, u64> = TableDefinition::new("another");
    let error = RedbStore::builder().adopt(&path, other, make).unwrap_err();
    assert!(matches!(error, StoreError::HalfAdopted { .. }), "{error}");
    check(&RedbStore::builder().adopt(&path, ROWS, make).unwrap(), &model);
    check(&RedbStore::open(&path, make).unwrap(), &model);
    assert!(RedbStore::builder().adopt(directory.file("none"), ROWS, make).is_err());
}

#[test]
fn snapshots_are_taken_by_themselves() {
    let directory = Directory::new();
    let path = directory.file("store");
    let open = || {
        let every = NonZeroU64::new(50).unwrap();
        RedbStore::builder().durability(Durability::Buffered).snapshot_every(every).open(&path, make).unwrap()
    };
    let store = open();
    // Growth is a reason, and so are many commits.
    for number in 0..20_u64 {
        store.insert(&number.to_le_bytes(), b"").unwrap();
    }
    let until = |count: u64| {
        let start = std::time::Instant::now();
        while store.metrics().snapshots < count {
            assert!(start.elapsed() < Duration::from_secs(30), "no snapshot is taken");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    until(1);
    let before = store.metrics().snapshots;
    (0..60_u64).for_each(|_| drop(store.insert(b"again", b"and again").unwrap()));
    until(before + 1);
    drop(store);
    // The last one was taken when the store was closed.
    let store = open();
    assert!(matches!(store.opening(), Opening::Snapshot), "{:?}", store.opening());
    let taken = store.metrics().snapshots;
    drop(store);
    assert_eq!(taken, 0, "nothing was written");
    // One that cannot be taken fails nobody.
    std::fs::remove_file(directory.file("store.besom")).unwrap();
    std::fs::create_dir(directory.file("store.besom")).unwrap();
    let store = open();
    (0..60_u64).for_each(|_| drop(store.insert(b"again", b"and again").unwrap()));
    drop(store);
    assert!(matches!(open().opening(), Opening::Built { .. }));
}

/// The commits that an I/O error can take back are few, if that was asked for: by count, or by time.
#[test]
fn buffered_commits_are_made_durable_by_count_and_by_time() {
    let lost = |builder: besom_store::RedbStoreBuilder| {
        let directory = Directory::new();
        let path = directory.file("store");
        let store = builder.durability(Durability::Buffered).open(&path, make).unwrap();
        (0..25_u64).for_each(|key| drop(store.insert(&key.to_le_bytes(), b"").unwrap()));
        // What is in the file while it is open is what a crash would leave.
        let copy = directory.file("copy");
        std::fs::copy(&path, &copy).unwrap();
        25 - RedbStore::open(&copy, make).unwrap().len().unwrap()
    };
    assert_eq!(lost(RedbStore::builder()), 25);
    assert_eq!(lost(RedbStore::builder().durable_every(NonZeroU64::new(10).unwrap())), 5);
    assert_eq!(lost(RedbStore::builder().durable_within(Duration::ZERO)), 0);
    assert_eq!(lost(RedbStore::builder().durable_within(Duration::from_secs(3600))), 25);
}

/// A copy that is made while others write has one state, and what is no copy is refused.
#[test]
fn a_backup_is_one_state_of_a_store_in_use() {
    for layout in [Layout::Hashed, Layout::Ordered] {
        let directory = Directory::new();
        let store = RedbStore::builder().layout(layout).durability(Durability::Buffered);
        let store = store.open(directory.file("store"), make).unwrap();
        let batch = |value: u64| {
            let mut batch = besom_store::Batch::new();
            for number in 0..5_000_u64 {
                batch.insert(&key(number), &value.to_le_bytes());
            }
            batch
        };
        store.write(&batch(0)).unwrap();
        let copied = std::thread::scope(|scope| {
            let copy = scope.spawn(|| store.backup(directory.file("copy")));
            (1..4).for_each(|value| store.write(&batch(value)).unwrap());
            copy.join().unwrap()
        });
        copied.unwrap();
        let copy = RedbStore::open(directory.file("copy"), make).unwrap();
        copy.verify().unwrap();
        let values: std::collections::BTreeSet<Vec<u8>> =
            copy.iter().unwrap().map(|entry| entry.unwrap().1).collect();
        assert_eq!((values.len(), copy.len().unwrap()), (1, store.len().unwrap()), "{layout:?}");
        drop(copy);
        assert!(matches!(store.backup(directory.file("copy")), Err(StoreError::NotAStore { .. })));
        check(&store, &(0..5_000).map(|number| (key(number), 3_u64.to_le_bytes().to_vec())).collect());
    }
}

/// Before, the store's tables were made first, and an adoption that could not end left a store that could not be opened.
#[test]
fn a_table_that_cannot_be_adopted_is_left_as_it_is() {
    const BYTES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("data");
    const LONG: TableDefinition<'_, &str, u64> = TableDefinition::new("long");
    const OTHER: TableDefinition<'_, u64, u64> = TableDefinition::new("long");
    let directory = Directory::new();
    let path = directory.file("mine");
    let mine = Database::create(&path).unwrap();
    let transaction = mine.begin_write().unwrap();
    transaction.open_table(BYTES).unwrap().insert(&b"key"[..], &b"value"[..]).unwrap();
    transaction.open_table(LONG).unwrap().insert(&*"a".repeat(65_600), 1).unwrap();
    transaction.open_table(LONG).unwrap().insert("short", 2).unwrap();
    transaction.commit().unwrap();
    drop(mine);
    let own = RedbStore::builder().adopt(&path, BYTES, make).unwrap_err();
    assert!(matches!(&own, StoreError::OwnTable { table } if table == "data"), "{own}");
    let long = RedbStore::builder().adopt(&path, LONG, make).unwrap_err();
    assert!(matches!(long, StoreError::KeyTooLong { len: 65_600, .. }), "{long}");
    let other = RedbStore::builder().adopt(&path, OTHER, make).unwrap_err();
    assert!(
        matches!(other, StoreError::Engine(besom_store::redb::Error::TableTypeMismatch { .. })),
        "{other}"
    );
    let mine = Database::open(&path).unwrap();
    let names = mine.begin_read().unwrap().list_tables().unwrap().count();
    assert_eq!(names, 2, "nothing was made");
}
