//! Catches: a snapshot that is believed although it is damaged, foreign or of another state; a reader that rejects what its view
//! holds, or that answers `None` when its tables are gone.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use besom::format::Persist;
use besom::{CuckooingFilter, ExtensionFilter, Filter, TelescopingFilter};
use besom_store::slate::slatedb::admin::AdminBuilder;
use besom_store::slate::slatedb::config::{GarbageCollectorDirectoryOptions, GarbageCollectorOptions};
use besom_store::slate::slatedb::object_store::memory::InMemory;
use besom_store::slate::slatedb::object_store::path::Path;
use besom_store::slate::slatedb::object_store::{ObjectStore, ObjectStoreExt};
use besom_store::slate::slatedb::{Db, MergeOperator};
use besom_store::slate::{Durability, Origin, SlateError, SlateOptions, SlateReader, SlateStore};

use super::bucket::{Bucket, options, run};

type Reader = SlateReader<TelescopingFilter>;
type Damage<'d> = &'d dyn Fn(&mut Vec<u8>);

fn template() -> TelescopingFilter {
    TelescopingFilter::builder().capacity(100).growable().seed(5_u64).build().unwrap()
}

fn buffered() -> SlateOptions {
    options().durability(Durability::Buffered)
}

async fn open(bucket: &Arc<InMemory>) -> SlateStore<TelescopingFilter> {
    SlateStore::open("db", bucket.clone(), template(), buffered()).await.unwrap()
}

async fn fill(store: &SlateStore<TelescopingFilter>, keys: std::ops::Range<u32>) {
    for key in keys {
        store.insert(&key.to_le_bytes(), b"value").await.unwrap();
    }
}

async fn holds<F: besom_store::slate::SlateFilter>(store: &SlateStore<F>, keys: u32) {
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
        let passed: Vec<u32> = (1000..9000).filter(|key: &u32| store.contains(&key.to_le_bytes())).collect();
        assert!(passed.len() > 5);
        for key in &passed {
            assert_eq!(store.get(&key.to_le_bytes()).await.unwrap(), None);
        }
        store.close().await.unwrap();
        let store = open(&bucket).await;
        assert_eq!(store.origin(), Origin::Snapshot);
        let again = passed.iter().filter(|key| store.contains(&key.to_le_bytes())).count();
        assert!(again <= passed.len() / 5, "{again} of {} false positives came back", passed.len());
        holds(&store, 300).await;
    });
}

#[test]
fn a_snapshot_of_an_earlier_state_is_not_believed() {
    run(async {
        let bucket = Arc::new(InMemory::new());
        closed(&bucket).await;
        let store = open(&bucket).await;
        fill(&store, 300..301).await;
        store.flush().await.unwrap();
        drop(store);
        let store = open(&bucket).await;
        assert!(matches!(store.origin(), Origin::Scan { keys: 301, .. }), "{:?}", store.origin());
        assert!(store.take_fault().is_none());
        holds(&store, 301).await;
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
                *bytes = template().to_bytes(&besom::format::WriteOptions::new().generation(1)).unwrap();
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
                matches!(refused, SlateError::Snapshot { .. } | SlateError::Foreign { .. }),
                "{what}: {refused}"
            );
            let store = open(&bucket).await;
            assert!(matches!(store.origin(), Origin::Scan { keys: 300, .. }), "{what}: {:?}", store.origin());
            let fault = store.take_fault().expect(what).to_string();
            assert!(fault.contains("snapshot"), "{what}: {fault}");
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
        assert!(matches!(&refused, SlateError::Foreign { name } if *name == forged), "{refused}");
    });
}

#[test]
fn what_is_no_store_is_refused_and_left_alone() {
    run(async {
        let bucket = Arc::new(InMemory::new());
        let db = Db::open("db", bucket.clone()).await.unwrap();
        db.put(b"somebody's", b"data").await.unwrap();
        db.close().await.unwrap();
        let refused = SlateStore::open("db", bucket.clone(), template(), buffered()).await.unwrap_err();
        assert!(refused.to_string().contains("is this path a besom store"), "{refused}");
        let refused = Reader::open("db", bucket.clone(), buffered()).await.unwrap_err();
        assert!(refused.to_string().contains("have the writer publish"), "{refused}");
        let db = Db::open("db", bucket.clone()).await.unwrap();
        assert_eq!(db.get(b"somebody's").await.unwrap().unwrap(), &b"data"[..]);
        // A layout of the future.
        db.put(b"s", b"\x09\0 and more").await.unwrap();
        db.close().await.unwrap();
        let refused = SlateStore::open("db", bucket.clone(), template(), buffered()).await.unwrap_err();
        assert!(matches!(refused, SlateError::OtherVersion { found: 9, supported: 1 }), "{refused}");
    });
}

#[test]
fn another_kind_of_filter_takes_over() {
    run(async {
        let bucket = Arc::new(InMemory::new());
        closed(&bucket).await;
        let filter = CuckooingFilter::builder().capacity(400).seed(9_u64).build().unwrap();
        let store = SlateStore::open("db", bucket.clone(), filter, buffered()).await.unwrap();
        assert!(matches!(store.origin(), Origin::Scan { keys: 300, .. }));
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
        let filter = TelescopingFilter::builder().capacity(50).seed(1_u64).build().unwrap();
        let room = filter.capacity();
        let store = SlateStore::open("db", bucket.clone(), filter, buffered()).await.unwrap();
        fill(&store, 0..room as u32 - 3).await;
        let mut batch = besom_store::slate::SlateBatch::new();
        (1000..1010_u32).for_each(|key| batch.insert(&key.to_le_bytes(), b"x"));
        batch.remove(&0_u32.to_le_bytes());
        assert!(matches!(store.write(batch.clone()).await, Err(SlateError::Full(_))));
        batch.insert(&vec![0; 1 << 16], b"x");
        assert!(matches!(store.write(batch).await, Err(SlateError::TooLong { len: 65536, max: 65535, .. })));
        holds(&store, room as u32 - 3).await;
        assert_eq!(store.metrics().keys, room - 3);
        assert_eq!((1000..1010_u32).filter(|key| store.contains(&key.to_le_bytes())).count(), 0);
        let stats = store.metrics();
        assert_eq!((stats.slots_in_question, stats.rebuilds), (0, 1), "the opening counts as one: {stats:?}");
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
            Err(SlateError::NoSnapshot { .. })
        ));
        store.publish().await.unwrap();
        let counted = Bucket::new(bucket.clone());
        let reader = Reader::open("db", counted.clone(), buffered()).await.unwrap();
        // What the writer does from now on is another view.
        fill(&store, 300..400).await;
        store.remove(&0_u32.to_le_bytes()).await.unwrap();
        let puts = counted.puts.load(std::sync::atomic::Ordering::Relaxed);
        let passed: Vec<u32> = (1000..9000).filter(|key: &u32| reader.contains(&key.to_le_bytes())).collect();
        for key in &passed {
            assert_eq!(reader.get(&key.to_le_bytes()).await.unwrap(), None);
        }
        let again = passed.iter().filter(|key| reader.contains(&key.to_le_bytes())).count();
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
        let store = SlateStore::open("db", bucket.clone(), template(), keeping_one).await.unwrap();
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

/// What a database of this crate needs, for those who look into it with other tools.
struct Append;

impl MergeOperator for Append {
    fn merge(
        &self,
        _: &besom_store::slate::slatedb::bytes::Bytes,
        existing: Option<besom_store::slate::slatedb::bytes::Bytes>,
        value: besom_store::slate::slatedb::bytes::Bytes,
    ) -> Result<besom_store::slate::slatedb::bytes::Bytes, besom_store::slate::slatedb::MergeOperatorError>
    {
        Ok([existing.unwrap_or_default(), value].concat().into())
    }
}

#[test]
fn lists_of_a_rebuilding_that_was_broken_off_are_swept_away() {
    run(async {
        let bucket = Arc::new(InMemory::new());
        closed(&bucket).await;
        let open_raw = || Db::builder("db", bucket.clone()).with_merge_operator(Arc::new(Append)).build();
        let count = async |db: &Db| {
            let mut lists = db.scan(b"r".to_vec()..b"s".to_vec()).await.unwrap();
            let mut count = 0;
            while lists.next().await.unwrap().is_some() {
                count += 1;
            }
            count
        };
        let db = open_raw().await.unwrap();
        let before = count(&db).await;
        // Behind the generation that counts, and before it.
        for generation in [0_u64, 77] {
            let row = [&b"r"[..], &generation.to_be_bytes(), &5_u64.to_be_bytes()].concat();
            db.put(row, b"\x01\0\0\0x").await.unwrap();
        }
        db.close().await.unwrap();
        let store = open(&bucket).await;
        holds(&store, 300).await;
        store.close().await.unwrap();
        let db = open_raw().await.unwrap();
        assert_eq!(count(&db).await, before);
        db.close().await.unwrap();
    });
}
