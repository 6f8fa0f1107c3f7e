//! Catches: a snapshot or a store that is not what it should be, and is used all the same, or ends in a panic.

use std::fs;
use std::path::{Path, PathBuf};

use besom::format::{Persist, ReadOptions, WriteOptions};
use besom::testing::Damage;
use besom::{BuildError, ExtensionFilter, Seed, TelescopingFilter};
use besom_store::{Batch, Layout, Opening, RedbStore, StoreError};

use crate::common::{Directory, Model, check, key};

fn make(keys: usize, _: Seed) -> Result<TelescopingFilter, BuildError> {
    TelescopingFilter::builder().capacity(keys.max(200)).seed(1_u64).growable().build()
}

/// A store of this many keys, with a snapshot, closed.
fn filled(path: &Path, keys: u64) -> Model {
    let store = RedbStore::open(path, make).unwrap();
    let model: Model = (0..keys).map(|number| (key(number), number.to_le_bytes().to_vec())).collect();
    model.iter().for_each(|(key, value)| drop(store.insert(key, value).unwrap()));
    store.snapshot().unwrap();
    model
}

fn snapshot_of(path: &Path) -> PathBuf {
    path.with_extension("redb.besom")
}

/// Opens the store. It must refuse its snapshot, and be right all the same. What it says.
fn refusal(path: &Path, model: &Model) -> String {
    let store = RedbStore::open(path, make).unwrap();
    check(&store, model);
    let Opening::Built { keys, refused: Some(refused), .. } = store.opening() else {
        panic!("{:?}", store.opening())
    };
    assert_eq!(*keys, model.len() as u64);
    refused.to_string()
}

#[test]
fn a_snapshot_that_matches_is_used() {
    let directory = Directory::new();
    let path = directory.file("store.redb");
    let model = filled(&path, 100);
    let store = RedbStore::open(&path, make).unwrap();
    assert!(matches!(store.opening(), Opening::Snapshot), "{:?}", store.opening());
    check(&store, &model);
    // A new value of an old key changes nothing for the filter.
    store.insert(&key(1), b"new").unwrap();
    drop(store);
    let store = RedbStore::open(&path, make).unwrap();
    assert!(matches!(store.opening(), Opening::CaughtUp { commits: 1 }), "{:?}", store.opening());
    assert_eq!(store.get(&key(1)).unwrap(), Some(b"new".to_vec()));
}

#[test]
fn a_damaged_snapshot_is_refused() {
    let directory = Directory::new();
    let path = directory.file("store.redb");
    let model = filled(&path, 100);
    let good = fs::read(snapshot_of(&path)).unwrap();
    let mut cut = good.clone();
    cut.truncate(good.len() / 2);
    let mut flipped = good.clone();
    flipped[good.len() - 5] ^= 4;
    let longer = [&good[..], b"more"].concat();
    for (bytes, message) in [(cut, "was cut off"), (flipped, "is damaged"), (longer, "cut the rest off")] {
        fs::write(snapshot_of(&path), bytes).unwrap();
        let text = refusal(&path, &model);
        assert!(text.contains(message) && text.contains("store.redb.besom"), "{text}");
        // The next snapshot takes its place.
        RedbStore::open(&path, make).unwrap().snapshot().unwrap();
        let store = RedbStore::open(&path, make).unwrap();
        assert!(matches!(store.opening(), Opening::Snapshot), "{:?}", store.opening());
    }
    fs::remove_file(snapshot_of(&path)).unwrap();
    fs::create_dir(snapshot_of(&path)).unwrap();
    assert!(refusal(&path, &model).contains("cannot be used"));
}

/// Before, opening a store removed whatever was at the path of its snapshot, were it the store itself.
#[test]
fn a_file_of_somebody_else_is_never_touched() {
    let directory = Directory::new();
    let path = directory.file("store.redb");
    let model = filled(&path, 20);
    // What a killed process left of a snapshot goes.
    let unfinished = directory.file(".store.redb.besom.17-0.new");
    fs::write(&unfinished, b"BESOM").unwrap();
    check(&RedbStore::open(&path, make).unwrap(), &model);
    assert!(!unfinished.exists());
    for bytes in [&b"text"[..], &[7; 500], b"", b"BESO"] {
        let mine = directory.file("mine");
        fs::write(&mine, bytes).unwrap();
        let store = RedbStore::builder().snapshot_path(&mine).open(&path, make).unwrap();
        let Opening::Built { refused: Some(refused), .. } = store.opening() else {
            panic!("{:?}", store.opening())
        };
        assert!(refused.to_string().contains("is left as it is"), "{refused}");
        let error = store.snapshot().unwrap_err();
        assert!(matches!(error, StoreError::NotASnapshot { .. }) && error.to_string().contains("mine"));
        check(&store, &model);
        assert_eq!(fs::read(&mine).unwrap(), bytes);
    }
    let same = [
        path.clone(),
        directory.file("./store.redb"),
        directory.file("../").join(path.parent().unwrap().file_name().unwrap()).join("store.redb"),
    ];
    for own in same {
        let error = RedbStore::builder().snapshot_path(own).open(&path, make).unwrap_err();
        assert!(matches!(error, StoreError::SnapshotIsStore { .. }), "{error}");
    }
    let new = directory.file("new.redb");
    let error = RedbStore::builder().snapshot_path(&new).open(&new, make).unwrap_err();
    assert!(matches!(error, StoreError::SnapshotIsStore { .. }) && !new.exists(), "{error}");
    check(&RedbStore::open(&path, make).unwrap(), &model);
}

/// Before, a copy that went on by itself believed the snapshot of its original: 50 of 50 stored keys were denied.
#[test]
fn the_snapshot_of_a_fork_is_refused() {
    let directory = Directory::new();
    let (one, two) = (directory.file("one.redb"), directory.file("two.redb"));
    let common = filled(&one, 50);
    fs::copy(&one, &two).unwrap();
    fs::copy(snapshot_of(&one), snapshot_of(&two)).unwrap();
    let go_on = |path: &Path, first: u64| {
        let store = RedbStore::open(path, make).unwrap();
        let mut model = common.clone();
        // As many commits and keys in both.
        for number in first..first + 50 {
            store.insert(&key(number), b"").unwrap();
            model.insert(key(number), Vec::new());
        }
        store.snapshot().unwrap();
        model
    };
    let models = [go_on(&one, 1000), go_on(&two, 2000)];
    let snapshots = [&one, &two].map(|path| fs::read(snapshot_of(path)).unwrap());
    fs::write(snapshot_of(&one), &snapshots[1]).unwrap();
    fs::write(snapshot_of(&two), &snapshots[0]).unwrap();
    for (path, model) in [&one, &two].into_iter().zip(&models) {
        assert!(refusal(path, model).contains("went another way"));
    }
}

/// The rows of a store are in the order of hashes: a filter with another seed cannot guard them.
#[test]
fn a_filter_with_another_seed_is_refused() {
    let directory = Directory::new();
    let path = directory.file("store.redb");
    let model = filled(&path, 20);
    let other = |keys: usize, _| TelescopingFilter::builder().capacity(keys.max(200)).seed(2_u64).build();
    let error = RedbStore::open(&path, other).unwrap_err();
    assert!(matches!(error, StoreError::OtherHash { .. }) && error.to_string().contains("seed"), "{error}");
    let sip = |keys: usize, seed| {
        TelescopingFilter::builder().hasher::<besom::SipHash>().capacity(keys.max(200)).seed(seed).build()
    };
    assert!(matches!(RedbStore::open(&path, sip), Err(StoreError::OtherHash { .. })));
    // A store remembers the seed that it was made with, and tells it.
    let random = directory.file("random.redb");
    let told = |keys: usize, seed| TelescopingFilter::builder().capacity(keys.max(200)).seed(seed).build();
    let store = RedbStore::open(&random, told).unwrap();
    store.insert(b"key", b"value").unwrap();
    drop(store);
    let store = RedbStore::open(&random, told).unwrap();
    assert_eq!(store.get(b"key").unwrap(), Some(b"value".to_vec()));
    check(&RedbStore::open(&path, make).unwrap(), &model);
}

#[test]
fn no_damage_whatever_is_taken_for_a_snapshot() {
    let directory = Directory::new();
    let path = directory.file("store.redb");
    let mut model = filled(&path, 60);
    let (mut damage, mut refused, mut taken) = (Damage::new(9), 0, 0);
    for round in 0..40_u64 {
        let store = RedbStore::open(&path, make).unwrap();
        store.snapshot().unwrap();
        store.insert(&key(1000 + round), b"").unwrap();
        model.insert(key(1000 + round), Vec::new());
        drop(store);
        let good = fs::read(snapshot_of(&path)).unwrap();
        fs::write(snapshot_of(&path), damage.file(&good, &good)).unwrap();
        let store = RedbStore::open(&path, make).unwrap();
        if matches!(store.opening(), Opening::Built { .. }) {
            refused += 1;
            check(&store, &model);
        } else {
            // Its checksums were made right, and what was damaged says nothing of keys, or it was put together from itself. If it
            // does say something, `verify` notices.
            taken += 1;
            let right = model.keys().all(|key| matches!(store.get(key), Ok(Some(_))));
            assert!(right || store.verify().is_err(), "keys are denied, and nobody is told");
        }
        drop(store);
        fs::write(snapshot_of(&path), &good).unwrap();
    }
    assert!(refused > 20 && taken < 20, "{refused} refused, {taken} taken");
}

#[test]
fn an_older_snapshot_is_caught_up_or_refused() {
    let directory = Directory::new();
    let path = directory.file("store.redb");
    let mut model = filled(&path, 100);
    let old = fs::read(snapshot_of(&path)).unwrap();
    let store = RedbStore::open(&path, make).unwrap();
    store.insert(b"one more", b"1").unwrap();
    store.remove(&key(3)).unwrap();
    drop(store);
    model.insert(b"one more".to_vec(), b"1".to_vec());
    model.remove(&key(3));
    let store = RedbStore::open(&path, make).unwrap();
    assert!(matches!(store.opening(), Opening::CaughtUp { commits: 2 }), "{:?}", store.opening());
    check(&store, &model);
    // What was written down is cut off behind the next snapshot: the one before cannot be caught up any more.
    store.snapshot().unwrap();
    store.insert(b"another one", b"2").unwrap();
    model.insert(b"another one".to_vec(), b"2".to_vec());
    drop(store);
    fs::write(snapshot_of(&path), old).unwrap();
    assert!(refusal(&path, &model).contains("went another way"));
}

#[test]
fn a_newer_snapshot_is_refused_for_ever() {
    let directory = Directory::new();
    let path = directory.file("store.redb");
    let model = filled(&path, 50);
    let backup = fs::read(&path).unwrap();
    let store = RedbStore::open(&path, make).unwrap();
    store.insert(b"lost", b"").unwrap();
    for _ in 0..3 {
        store
            .write(
                Batch::new()
                    .insert(b"lost too", b"")
                    .remove(b"lost")
                    .insert(b"lost", b"")
                    .remove(b"lost too"),
            )
            .unwrap();
    }
    store.snapshot().unwrap();
    drop(store);
    let newer = fs::read(snapshot_of(&path)).unwrap();
    fs::write(&path, backup).unwrap();
    let text = refusal(&path, &model);
    assert!(text.contains("backup of this one went another way"), "{text}");
    // As many keys and commits as in the history that is gone, were they counted on: the old snapshot must not match.
    for step in 0..4 {
        let store = RedbStore::open(&path, make).unwrap();
        match step {
            0 => drop(store.insert(b"found", b"").unwrap()),
            _ => store
                .write(
                    Batch::new()
                        .insert(b"other", b"")
                        .remove(b"found")
                        .insert(b"found", b"")
                        .remove(b"other"),
                )
                .unwrap(),
        }
        store.snapshot().unwrap();
        drop(store);
        let copy = directory.file("copy.redb");
        fs::copy(&path, &copy).unwrap();
        fs::write(snapshot_of(&copy), &newer).unwrap();
        assert!(RedbStore::open(&copy, make).unwrap().contains_key(b"found").unwrap(), "{step}");
    }
}

#[test]
fn a_foreign_snapshot_is_refused() {
    let directory = Directory::new();
    let (path, other) = (directory.file("store.redb"), directory.file("other.redb"));
    let model = filled(&path, 50);
    filled(&other, 50);
    fs::copy(snapshot_of(&other), snapshot_of(&path)).unwrap();
    assert!(refusal(&path, &model).contains("is another store's"));
    // Of another kind.
    let store = RedbStore::open(&path, make).unwrap();
    store.snapshot().unwrap();
    drop(store);
    let generation =
        besom::format::inspect(&mut fs::File::open(snapshot_of(&path)).unwrap()).unwrap().generation;
    let extension = ExtensionFilter::with_capacity(100).unwrap();
    extension.save(snapshot_of(&path), &WriteOptions::new().generation(generation)).unwrap();
    assert!(refusal(&path, &model).contains("holds a filter of kind extension"));
    // The right number, on a filter of other keys: only their number is left to tell.
    let store = RedbStore::open(&path, make).unwrap();
    store.snapshot().unwrap();
    drop(store);
    let (_, header) =
        TelescopingFilter::<besom::Xxh3>::load(snapshot_of(&path), &ReadOptions::new()).unwrap();
    make(1, Seed::from(1_u64))
        .unwrap()
        .save(snapshot_of(&path), &WriteOptions::new().generation(header.generation))
        .unwrap();
    assert!(refusal(&path, &model).contains("0 keys and the store 50"));
}

#[test]
fn a_store_that_cannot_be_opened_says_why() {
    let directory = Directory::new();
    let path = directory.file("store.redb");
    let message =
        |result: Result<RedbStore<TelescopingFilter>, _>| StoreError::to_string(&result.unwrap_err());
    let text = message(RedbStore::builder().create(false).open(&path, make));
    assert!(text.contains("store.redb") && text.contains("there is no such file"), "{text}");
    let store = RedbStore::open(&path, make).unwrap();
    store.insert(b"key", b"value").unwrap();
    let text = message(RedbStore::open(&path, make));
    assert!(text.contains("has it open"), "{text}");
    drop(store);
    let text = message(RedbStore::builder().layout(Layout::Ordered).open(&path, make));
    assert!(text.contains("with the layout Hashed, not Ordered"), "{text}");
    fs::write(directory.file("text"), b"this is no database, and longer than a few bytes").unwrap();
    let text = message(RedbStore::open(directory.file("text"), make));
    assert!(text.contains("no redb database"), "{text}");
    let text = message(RedbStore::open(directory.file("no/such/directory"), make));
    assert!(text.contains("no such file"), "{text}");
    let store = RedbStore::open(&path, make).unwrap();
    assert_eq!(store.get(b"key").unwrap(), Some(b"value".to_vec()));
}

#[test]
fn the_database_of_somebody_else_is_left_alone() {
    let directory = Directory::new();
    let path = directory.file("other.redb");
    let table: redb::TableDefinition<'_, u64, u64> = redb::TableDefinition::new("mine");
    let database = redb::Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(table).unwrap().insert(1, 2).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let before = fs::read(&path).unwrap();
    assert!(matches!(RedbStore::open(&path, make), Err(StoreError::NotAStore { .. })));
    assert_eq!(fs::read(&path).unwrap().len(), before.len());
}

#[test]
#[cfg(unix)]
fn a_read_only_store_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let directory = Directory::new();
    let path = directory.file("store.redb");
    let model = filled(&path, 5);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    match RedbStore::open(&path, make) {
        // Anyone who runs this as root is not refused.
        Ok(store) => check(&store, &model),
        Err(error) => assert!(error.to_string().contains("make it writable"), "{error}"),
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    check(&RedbStore::open(&path, make).unwrap(), &model);
}

#[test]
fn a_hashed_store_has_no_ranges() {
    let directory = Directory::new();
    let store = RedbStore::open(directory.file("store.redb"), make).unwrap();
    assert!(matches!(store.range(..), Err(StoreError::NotOrdered)));
    let long = vec![0; 1 << 16];
    assert!(matches!(store.insert(&long, b""), Err(StoreError::KeyTooLong { len: 65_536, .. })));
}

#[test]
fn a_full_filter_changes_nothing() {
    let directory = Directory::new();
    let make = |_, seed| TelescopingFilter::builder().capacity(10).seed(seed).build();
    let store = RedbStore::open(directory.file("store.redb"), make).unwrap();
    let mut model = Model::new();
    for number in 0..10 {
        store.insert(&key(number), b"").unwrap();
        model.insert(key(number), Vec::new());
    }
    let full = store.insert(b"one too many", b"").unwrap_err();
    assert!(matches!(full, StoreError::Full(_)), "{full}");
    let mut batch = besom_store::Batch::new();
    batch.remove(&key(1)).insert(b"one", b"").insert(b"one too many", b"");
    assert!(matches!(store.write(&batch), Err(StoreError::Full(_))));
    check(&store, &model);
    assert_eq!(store.insert(&key(2), b"new").unwrap(), Some(Vec::new()));
}

#[test]
fn ranges_are_in_order_and_survive_what_comes_later() {
    let directory = Directory::new();
    let path = directory.file("store.redb");
    let store = RedbStore::builder().layout(Layout::Ordered).open(&path, make).unwrap();
    let model: Model = (0..100).map(|number| (key(number), number.to_le_bytes().to_vec())).collect();
    model.iter().for_each(|(key, value)| drop(store.insert(key, value).unwrap()));
    let from = key(50);
    let range = store.range(&from[..]..).unwrap();
    store.insert(b"zzz", b"").unwrap();
    assert!(store.compact().is_err(), "somebody is reading");
    let found: Vec<_> = range.map(Result::unwrap).collect();
    assert!(found.into_iter().eq(model.range(from..).map(|(key, value)| (key.clone(), value.clone()))));
    store.compact().unwrap();
    assert!(store.contains_key(b"zzz").unwrap());
    assert_eq!(store.range(..).unwrap().count(), 101);
}
