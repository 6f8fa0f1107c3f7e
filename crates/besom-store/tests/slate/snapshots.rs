//! Catches: a snapshot that is believed although it is damaged, foreign or of another state; a reader that rejects what its view
//! holds, or that answers `None` when its tables are gone.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use besom::cuckoo::CuckooingFilter;
use besom::format::Persist;
use besom::{BuildError, ExtensionFilter, Filter, Seed, TelescopingFilter};
use besom_store::slate::slatedb::Db;
use besom_store::slate::slatedb::admin::AdminBuilder;
use besom_store::slate::slatedb::config::{GarbageCollectorDirectoryOptions, GarbageCollectorOptions};
use besom_store::slate::slatedb::object_store::memory::InMemory;
use besom_store::slate::slatedb::object_store::path::Path;
use besom_store::slate::slatedb::object_store::{ObjectStore, ObjectStoreExt};
use besom_store::slate::{SlateFailure, SlateOptions, SlateReader, SlateStore};
use besom_store::{Batch, Durability, Opening, Options, SnapshotRefused, StoreError, StoreFilter};

use super::bucket::{Bucket, options, run};

type Reader = SlateReader<TelescopingFilter>;
type Damage<'d> = &'d dyn Fn(&mut Vec<u8>);

fn make(keys: usize, seed: Seed) -> Result<TelescopingFilter, BuildError> {
    TelescopingFilter::builder().capacity(keys.max(100)).growable().seed(seed).build()
}

fn buffered() -> SlateOptions {
    options().store(Options::new().durability(Durability::Buffered))
}

async fn open(bucket: &Arc<InMemory>) -> SlateStore<TelescopingFilter> {
    SlateStore::open("db", bucket.clone(), make, buffered()).await.unwrap()
}

async fn fill(store: &SlateStore<TelescopingFilter>, keys: std::ops::Range<u32>) {
    for key in keys {
        store.insert(&key.to_le_bytes(), b"value").await.unwrap();
    }
}

async fn holds<F: StoreFilter>(store: &SlateStore<F>, keys: u32) {
    for key in 0..keys {
        assert!(store.get(&key.to_le_bytes()).await.unwrap().is_some(), "{key}");
    }
    store.verify().await.unwrap();
}

async fn snapshots(bucket: &InMemory) -> Vec<Path> {
    let listed = bucket.list_with_delimiter(Some(&Path::from("db/filter"))).await.unwrap();
    listed.objects.into_iter().map(|object| object.location).collect()
}

/// A store of 300 keys, closed with a snapshot. Where that is.
async fn closed(bucket: &Arc<InMemory>) -> Path {
    let store = open(bucket).await;
    fill(&store, 0..300).await;
    store.close().await.unwrap();
    snapshots(bucket).await.pop().unwrap()
}

#[test]
fn a_matching_snapshot_is_loaded_with_its_repairs() {
    run(async {
        let bucket = Arc::new(InMemory::new());
        let store = open(&bucket).await;
        fill(&store, 0..300).await;
        let passed: Vec<u32> =
            (1000..9000).filter(|key: &u32| store.may_contain_key(&key.to_le_bytes())).collect();
        assert!(passed.len() > 5);
        for key in &passed {
            assert_eq!(store.get(&key.to_le_bytes()).await.unwrap(), None);
        }
        store.close().await.unwrap();
        let store = open(&bucket).await;
        assert!(matches!(store.opening(), Opening::Snapshot), "{:?}", store.opening());
        let again = passed.iter().filter(|key| store.may_contain_key(&key.to_le_bytes())).count();
        assert!(again <= passed.len() / 5, "{again} of {} false positives came back", passed.len());
        holds(&store, 300).await;
    });
}

#[test]
fn a_snapshot_of_an_earlier_state_is_caught_up() {
    run(async {
        let bucket = Arc::new(InMemory::new());
        closed(&bucket).await;
        let store = open(&bucket).await;
        fill(&store, 300..310).await;
        store.flush().await.unwrap();
        drop(store);
        let store = open(&bucket).await;
        assert!(matches!(store.opening(), Opening::CaughtUp { .. }), "{:?}", store.opening());
        assert!(store.take_fault().is_none());
        holds(&store, 310).await;
    });
}

/// Before, a copy of a database that went on by itself could be taken for its original.
#[test]
fn the_snapshot_of_a_fork_is_refused() {
    run(async {
        let original = Arc::new(InMemory::new());
        closed(&original).await;
        let copy = Arc::new(original.fork());
        for (bucket, keys) in [(&original, 1000..1050), (&copy, 2000..2050)] {
            let store = open(bucket).await;
            fill(&store, keys).await;
            store.close().await.unwrap();
        }
        for path in snapshots(&original).await {
            original.delete(&path).await.unwrap();
        }
        // The newest one; those from before the fork belong to both.
        let path = snapshots(&copy).await.pop().unwrap();
        let bytes = copy.get(&path).await.unwrap().bytes().await.unwrap();
        original.put(&path, bytes.into()).await.unwrap();
        let store = open(&original).await;
        let Opening::Built { keys: 350, refused: Some(SnapshotRefused::Foreign), .. } = store.opening()
        else {
            panic!("{:?}", store.opening())
        };
        holds(&store, 300).await;
        for key in 1000..1050_u32 {
            assert!(store.get(&key.to_le_bytes()).await.unwrap().is_some(), "{key}");
        }
    });
}

#[test]
fn a_snapshot_that_cannot_be_read_is_told_and_the_filter_is_rebuilt() {
    run(async {
        let other = ExtensionFilter::with_capacity(10).unwrap().to_bytes(&Default::default()).unwrap();
        let damages: [(&str, Damage<'_>); 6] = [
            ("a bit flipped", &|bytes| *bytes.last_mut().unwrap() ^= 1),
            ("cut", &|bytes| bytes.truncate(bytes.len() / 2)),
            ("empty", &|bytes| bytes.clear()),
            ("of another filter", &|bytes| bytes.clone_from(&other)),
            ("of a newer version", &|bytes| bytes[8] = 99),
            ("of another generation", &|bytes| {
                let filter = make(0, Seed::from(5_u64)).unwrap();
                *bytes = filter.to_bytes(&besom::format::WriteOptions::new().generation(1)).unwrap();
            }),
        ];
        for (what, damage) in damages {
            let bucket = Arc::new(InMemory::new());
            let path = closed(&bucket).await;
            let mut bytes = bucket.get(&path).await.unwrap().bytes().await.unwrap().to_vec();
            damage(&mut bytes);
            bucket.put(&path, bytes.into()).await.unwrap();
            let refused = Reader::open("db", bucket.clone(), buffered()).await.unwrap_err();
            assert!(
                matches!(
                    refused,
                    StoreError::Snapshot { .. } | StoreError::Engine(SlateFailure::Foreign { .. })
                ),
                "{what}: {refused}"
            );
            let store = open(&bucket).await;
            let Opening::Built { keys: 300, refused: Some(refused), .. } = store.opening() else {
                panic!("{what}: {:?}", store.opening())
            };
            assert!(refused.to_string().contains("snapshot"), "{what}: {refused}");
            holds(&store, 300).await;
        }
    });
}

#[test]
fn a_snapshot_under_another_checkpoint_s_name_is_refused() {
    run(async {
        let bucket = Arc::new(InMemory::new());
        let store = open(&bucket).await;
        fill(&store, 0..10).await;
        let old = store.publish().await.unwrap().name;
        fill(&store, 10..20).await;
        let new = store.publish().await.unwrap().name;
        // The filter and position of the old one with the checkpoint of the new one, as the newest of all.
        let (old_path, checkpoint) = (Path::from(format!("db/filter/{old}")), &new[new.len() - 38..]);
        let forged = format!("ffff{}{checkpoint}", &old[4..old.len() - 38]);
        let bytes = bucket.get(&old_path).await.unwrap().bytes().await.unwrap();
        bucket.put(&Path::from(format!("db/filter/{forged}")), bytes.into()).await.unwrap();
        let refused = Reader::open("db", bucket.clone(), buffered()).await.unwrap_err();
        let StoreError::Engine(SlateFailure::Foreign { name }) = refused else { panic!("{refused}") };
        assert_eq!(name, forged);
    });
}

#[test]
fn what_is_no_store_is_refused_and_left_alone() {
    run(async {
        let bucket = Arc::new(InMemory::new());
        let db = Db::open("db", bucket.clone()).await.unwrap();
        db.put(b"somebody's", b"data").await.unwrap();
        db.close().await.unwrap();
        let refused = SlateStore::open("db", bucket.clone(), make, buffered()).await.unwrap_err();
        assert!(matches!(refused, StoreError::NotAStore { .. }), "{refused}");
        let refused = Reader::open("db", bucket.clone(), buffered()).await.unwrap_err();
        assert!(refused.to_string().contains("have the writer publish"), "{refused}");
        let db = Db::open("db", bucket.clone()).await.unwrap();
        assert_eq!(db.get(b"somebody's").await.unwrap().unwrap(), &b"data"[..]);
        // A layout of the future.
        db.put(b"s", b"besom store\0\x09\0 and more").await.unwrap();
        db.close().await.unwrap();
        let refused = SlateStore::open("db", bucket.clone(), make, buffered()).await.unwrap_err();
        assert!(matches!(refused, StoreError::OtherFormat { found: 9, known: 2, .. }), "{refused}");
    });
}

#[test]
fn another_kind_of_filter_takes_over() {
    run(async {
        let bucket = Arc::new(InMemory::new());
        closed(&bucket).await;
        let make = |_, seed| CuckooingFilter::builder().capacity(400).seed(seed).build();
        let store = SlateStore::open("db", bucket.clone(), make, buffered()).await.unwrap();
        assert!(matches!(store.opening(), Opening::Built { keys: 300, .. }), "{:?}", store.opening());
        holds(&store, 300).await;
        // Its repairs are written. Readers cannot do that, but go on.
        store.publish().await.unwrap();
        let reader = SlateReader::<CuckooingFilter>::open("db", bucket.clone(), buffered()).await.unwrap();
        for key in 1000..9000_u32 {
            assert_eq!(store.get(&key.to_le_bytes()).await.unwrap(), None);
            assert_eq!(reader.get(&key.to_le_bytes()).await.unwrap(), None);
        }
        for key in 0..300_u32 {
            assert!(reader.get(&key.to_le_bytes()).await.unwrap().is_some());
        }
        assert!(store.metrics().adaptations > 0 && reader.metrics().failed_adaptations > 0);
        holds(&store, 300).await;
    });
}

#[test]
fn too_many_keys_and_too_long_ones_change_nothing() {
    run(async {
        let bucket = Arc::new(InMemory::new());
        let make = |_, seed| TelescopingFilter::builder().capacity(50).seed(seed).build();
        let room = make(0, Seed::from(1_u64)).unwrap().capacity();
        let store = SlateStore::open("db", bucket.clone(), make, buffered()).await.unwrap();
        fill(&store, 0..room as u32 - 3).await;
        let mut batch = Batch::new();
        (1000..1010_u32).for_each(|key| {
            batch.insert(&key.to_le_bytes(), b"x");
        });
        batch.remove(&0_u32.to_le_bytes());
        assert!(matches!(store.write(&batch).await, Err(StoreError::Full(_))));
        batch.insert(&vec![0; 1 << 16], b"x");
        assert!(matches!(store.write(&batch).await, Err(StoreError::KeyTooLong { len: 65536, .. })));
        store.restore().await.unwrap();
        holds(&store, room as u32 - 3).await;
        assert_eq!(store.metrics().keys, room as u64 - 3, "all that entered is out again");
        let stats = store.metrics();
        assert_eq!((stats.keys_in_doubt, stats.rebuilds), (0, 0), "{stats:?}");
    });
}

#[test]
fn a_reader_repairs_without_writing_and_follows() {
    run(async {
        let bucket = Arc::new(InMemory::new());
        let store = open(&bucket).await;
        fill(&store, 0..300).await;
        assert!(matches!(
            Reader::open("db", bucket.clone(), buffered()).await,
            Err(StoreError::Engine(SlateFailure::NoSnapshot { .. }))
        ));
        store.publish().await.unwrap();
        let counted = Bucket::new(bucket.clone());
        let reader = Reader::open("db", counted.clone(), buffered()).await.unwrap();
        // What the writer does from now on is another view.
        fill(&store, 300..400).await;
        store.remove(&0_u32.to_le_bytes()).await.unwrap();
        let puts = counted.puts.load(std::sync::atomic::Ordering::Relaxed);
        let passed: Vec<u32> =
            (1000..9000).filter(|key: &u32| reader.may_contain_key(&key.to_le_bytes())).collect();
        for key in &passed {
            assert_eq!(reader.get(&key.to_le_bytes()).await.unwrap(), None);
        }
        let again = passed.iter().filter(|key| reader.may_contain_key(&key.to_le_bytes())).count();
        assert!(passed.len() > 5 && again <= passed.len() / 5, "{again} of {} came back", passed.len());
        for key in 0..300_u32 {
            assert!(reader.get(&key.to_le_bytes()).await.unwrap().is_some(), "{key}");
        }
        assert_eq!(counted.puts.load(std::sync::atomic::Ordering::Relaxed), puts, "a reader has written");
        assert!(!reader.refresh().await.unwrap());
        let published = store.publish().await.unwrap();
        assert!(reader.refresh().await.unwrap());
        assert_eq!(reader.position(), published.position);
        assert_eq!(reader.get(&0_u32.to_le_bytes()).await.unwrap(), None);
        for key in 1..400_u32 {
            assert!(reader.get(&key.to_le_bytes()).await.unwrap().is_some(), "{key}");
        }
    });
}

#[test]
fn a_reader_whose_tables_were_collected_says_so_and_moves_on() {
    run(async {
        let bucket = Arc::new(InMemory::new());
        let keeping_one = buffered().keep(NonZeroUsize::MIN);
        let store = SlateStore::open("db", bucket.clone(), make, keeping_one).await.unwrap();
        fill(&store, 0..300).await;
        store.publish().await.unwrap();
        let reader = Reader::open("db", bucket.clone(), buffered()).await.unwrap();
        // Everything is written again, so that the old tables are of no use to anybody else.
        for _ in 0..4 {
            fill(&store, 0..300).await;
            store.publish().await.unwrap();
        }
        assert_eq!(snapshots(&bucket).await.len(), 1);
        let now = Some(GarbageCollectorDirectoryOptions {
            min_age: Duration::ZERO,
            interval: None,
            ..Default::default()
        });
        let collecting = GarbageCollectorOptions {
            manifest_options: now,
            wal_options: now,
            compacted_options: now,
            boundary_files_enabled: false,
            ..GarbageCollectorOptions::default()
        };
        let admin = AdminBuilder::new("db", bucket.clone() as Arc<dyn ObjectStore>).build();
        for _ in 0..20 {
            admin.run_gc_once(collecting.clone()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for key in 0..300_u32 {
            // The value, or an error, but never "absent".
            if let Ok(found) = reader.get(&key.to_le_bytes()).await {
                assert!(found.is_some(), "{key} was denied");
            }
        }
        assert!(reader.refresh().await.unwrap());
        for key in 0..300_u32 {
            assert!(reader.get(&key.to_le_bytes()).await.unwrap().is_some());
        }
    });
}

/// A copy is one state, of a store that goes on; and what is there already is neither overwritten nor fenced.
#[test]
fn a_backup_is_made_of_a_store_in_use_and_in_an_empty_place_alone() {
    run(async {
        let bucket = Arc::new(InMemory::new());
        let store = open(&bucket).await;
        fill(&store, 0..300).await;
        let writer = store.clone();
        let goes_on = tokio::spawn(async move { fill(&writer, 300..600).await });
        store.backup("copy", bucket.clone()).await.unwrap();
        goes_on.await.unwrap();
        for taken in ["db", "copy"] {
            let refused = store.backup(taken, bucket.clone()).await;
            assert!(matches!(refused, Err(StoreError::NotAStore { .. })), "{refused:?}");
        }
        fill(&store, 600..610).await;
        holds(&store, 610).await;
        store.snapshot().await.unwrap();
        let copy = SlateStore::open("copy", bucket.clone(), make, buffered()).await.unwrap();
        holds(&copy, 300).await;
        let keys = copy.len().await.unwrap() as u32;
        assert!((300..=600).contains(&keys));
        holds(&copy, keys).await;
    });
}

/// All who write to one store are told of what is lost, each once.
#[test]
fn every_clone_hears_of_commits_that_the_bucket_has_lost() {
    run(async {
        let bucket = Bucket::new(Arc::new(InMemory::new()));
        let options = buffered().max_retries(1);
        let store = SlateStore::open("db", bucket.clone(), make, options).await.unwrap();
        fill(&store, 0..10).await;
        store.flush().await.unwrap();
        let clones = [store.clone(), store.clone()];
        // From here on nothing reaches the bucket.
        bucket.fail(1, 1);
        let mut lost = 10;
        while store.insert(&u32::to_le_bytes(lost), b"lost").await.is_ok() {
            lost += 1;
            assert!(lost < 1_000_000, "the bucket is away and nobody notices");
        }
        bucket.fail(0, 0);
        let mut told = [0; 3];
        for (told, store) in told.iter_mut().zip([&clones[0], &store, &clones[1]]) {
            for _ in 0..3 {
                match store.get(b"absent").await {
                    Err(StoreError::RolledBack { commits }) => *told += commits,
                    other => assert!(other.unwrap().is_none()),
                }
            }
        }
        assert!(told[0] > 0 && told.iter().all(|&commits| commits == told[0]), "{told:?}");
        holds(&store, 10).await;
    });
}
