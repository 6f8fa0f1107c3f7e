//! Catches: stored keys that are rejected after requests failed before or after they acted, batches that are half done, an old
//! writer that goes on writing, futures that are dropped half-way.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;

use besom::testing::Random;
use besom::{BuildError, Seed, TelescopingFilter};
use besom_store::slate::slatedb::db_cache::moka::{MokaCache, MokaCacheOptions};
use besom_store::slate::slatedb::object_store::memory::InMemory;
use besom_store::slate::{SlateOptions, SlateStore};
use besom_store::{Batch, Durability, Options, StoreError};

use super::bucket::{Bucket, is_full, options, run, settings};

type Store = SlateStore<TelescopingFilter>;
type Model = BTreeMap<Vec<u8>, Vec<u8>>;

pub(crate) fn make(keys: usize, seed: Seed) -> Result<TelescopingFilter, BuildError> {
    let filter = TelescopingFilter::builder().capacity(keys.max(20)).growable().false_positive_rate(0.1);
    filter.seed(seed).build()
}

/// What the store holds.
async fn stored(store: &Store) -> Model {
    let (mut rows, mut stored) = (store.iter().await.unwrap(), Model::new());
    while let Some((key, value)) = rows.next().await.unwrap() {
        stored.insert(key.to_vec(), value.to_vec());
    }
    stored
}

fn random_batch(random: &mut Random, model: &Model) -> (Batch, Model) {
    let (mut batch, mut after) = (Batch::new(), model.clone());
    for _ in 0..1 + random.below(5) {
        let (key, value) = (random.below(200).to_le_bytes(), random.next().to_le_bytes());
        if random.one_in(3) {
            batch.remove(&key);
            after.remove(&key[..]);
        } else {
            batch.insert(&key, &value);
            after.insert(key.to_vec(), value.to_vec());
        }
    }
    (batch, after)
}

pub(crate) fn failing(retries: u32) -> SlateOptions {
    let mut settings = settings();
    settings.object_store_max_retries = Some(retries);
    options().settings(settings)
}

/// Writes until the store is closed by a failure, or the batches are over. The states that the database may be in.
async fn write_until_closed(store: &Store, model: Model, random: &mut Random) -> [Model; 2] {
    let mut states = [model.clone(), model];
    for _ in 0..40 {
        let (batch, after) = random_batch(random, &states[1]);
        match store.write(&batch).await {
            Ok(()) => states = [after.clone(), after],
            Err(StoreError::Engine(_) | StoreError::Closed { .. } | StoreError::RolledBack { .. }) => {
                // What is accepted must be what either state holds.
                for key in states[1].keys().filter(|key| after.contains_key(*key)) {
                    assert!(store.may_contain_key(key));
                }
                return [states[1].clone(), after];
            }
            Err(error) => panic!("{error}"),
        }
        for key in states[1].keys() {
            assert!(store.may_contain_key(key), "rejected");
        }
        for _ in 0..10 {
            let absent = random.next().to_be_bytes();
            if let Ok(found) = store.get(&absent).await {
                assert_eq!(found, None);
            }
        }
        if random.one_in(8) {
            // Published or not: the next opening must not care.
            let _ = store.publish().await;
        }
    }
    states
}

#[test]
fn a_bucket_that_fails_before_or_after_acting_loses_nothing() {
    run(async {
        let rounds = if is_full() { 200 } else { 20 };
        let bucket = Bucket::new(Arc::new(InMemory::new()));
        let (mut random, mut states) = (Random::new(3), [Model::new(), Model::new()]);
        let mut closed = 0;
        for round in 0..rounds {
            bucket.fail(0, 0);
            let store =
                Store::open("db", bucket.clone(), make, failing(u32::from(random.one_in(6)))).await.unwrap();
            let found = stored(&store).await;
            assert!(states.contains(&found), "neither what was acknowledged nor what was under way");
            store.verify().await.unwrap();
            assert_eq!(store.metrics().keys, found.len() as u64);
            bucket.fail(round, 3 + random.below(20));
            states = write_until_closed(&store, found, &mut random).await;
            closed += usize::from(states[0] != states[1]);
        }
        assert!(closed > 3, "failures must come through: {closed} of {rounds}");
    });
}

#[test]
fn an_old_writer_is_fenced_and_spoils_nothing() {
    run(async {
        let bucket = Arc::new(InMemory::new());
        let old = Store::open("db", bucket.clone(), make, options()).await.unwrap();
        old.insert(b"both", b"old").await.unwrap();
        let unacknowledged = old.clone();
        let new = Store::open("db", bucket.clone(), make, options()).await.unwrap();
        let late = tokio::spawn(async move { unacknowledged.insert(b"late", b"old").await });
        new.insert(b"both", b"new").await.unwrap();
        let refused = old.insert(b"more", b"old").await.unwrap_err();
        assert!(matches!(refused, StoreError::Closed { fenced: true }), "{refused}");
        assert!(late.await.unwrap().is_err());
        // Before, it answered `Ok(None)` for keys that are there: whatever it is asked now, it says that it was fenced.
        for key in [&b"both"[..], b"new", b"absent"] {
            assert!(matches!(old.get(key).await, Err(StoreError::Closed { fenced: true })));
            assert!(matches!(old.remove(key).await, Err(StoreError::Closed { fenced: true })));
            assert!(old.may_contain_key(key), "nothing is certain any more");
        }
        assert!(old.len().await.is_err() && old.iter().await.is_err() && old.restore().await.is_err());
        assert!(old.publish().await.is_err() && old.close().await.is_err());
        new.verify().await.unwrap();
        let expected = Model::from([(b"both".to_vec(), b"new".to_vec())]);
        assert_eq!(stored(&new).await, expected);
        new.close().await.unwrap();
        assert!(matches!(new.get(b"both").await, Err(StoreError::Closed { fenced: false })));
        assert!(matches!(new.insert(b"both", b"").await, Err(StoreError::Closed { fenced: false })));
        let third = Store::open("db", bucket, make, options()).await.unwrap();
        assert_eq!(stored(&third).await, expected);
    });
}

/// Polls a future this many times at most, with time for others in between, and drops it.
pub(crate) async fn some_polls(polls: u64, future: impl Future) {
    let mut future = std::pin::pin!(future);
    for _ in 0..polls {
        let ready = poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await;
        if ready {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[test]
fn futures_that_are_dropped_half_way_leave_no_key_outside() {
    run(async {
        let bucket = Arc::new(InMemory::new());
        let buffered = options().store(Options::new().durability(Durability::Buffered));
        let store = Store::open("db", bucket, make, buffered).await.unwrap();
        let mut random = Random::new(4);
        for _ in 0..300 {
            let (batch, _) = random_batch(&mut random, &Model::new());
            some_polls(random.below(12), store.write(&batch)).await;
            for key in stored(&store).await.keys() {
                assert!(store.may_contain_key(key), "a stored key is rejected");
            }
        }
        store.restore().await.unwrap();
        store.verify().await.unwrap();
        assert_eq!(store.metrics().keys, stored(&store).await.len() as u64);
    });
}

/// Before, a bucket that failed was asked forever, and with a bound the store stayed dead when it was back.
#[test]
fn a_bucket_that_is_away_is_reported_and_the_store_comes_back_with_it() {
    run(async {
        let bucket = Bucket::new(Arc::new(InMemory::new()));
        let store = Store::open("db", bucket.clone(), make, failing(1)).await.unwrap();
        let mut model = Model::new();
        for key in 0..50_u64 {
            store.insert(&key.to_le_bytes(), b"before").await.unwrap();
            model.insert(key.to_le_bytes().to_vec(), b"before".to_vec());
        }
        bucket.fail(1, 1);
        let start = std::time::Instant::now();
        let failed = loop {
            match store.insert(b"away", b"").await {
                Err(error) => break error,
                Ok(_) => assert!(start.elapsed().as_secs() < 60, "the bucket is away and nobody notices"),
            }
        };
        assert!(start.elapsed().as_secs() < 60 && failed.to_string().contains("database failed"), "{failed}");
        for key in model.keys() {
            assert!(store.may_contain_key(key));
        }
        bucket.fail(0, 0);
        // What was not durable may be lost, and is told once.
        let mut back = store.restore().await;
        if let Err(StoreError::RolledBack { .. }) = back {
            back = store.restore().await;
        }
        back.unwrap();
        store.insert(b"back", b"again").await.unwrap();
        let mut found = stored(&store).await;
        found.remove(&b"away"[..]);
        model.insert(b"back".to_vec(), b"again".to_vec());
        assert_eq!(found, model);
        store.verify().await.unwrap();
        assert!(store.metrics().reopenings > 0);
    });
}

/// Before, overwrites and removals waited for a read under the writer's lock: one after the other.
#[test]
fn overwrites_read_before_they_lock_and_all_at_once() {
    run(async {
        let bucket = Bucket::new(Arc::new(InMemory::new()));
        // Without a cache, so that every look-up reads.
        let cache =
            Arc::new(MokaCache::new_with_opts(MokaCacheOptions { max_capacity: 0, ..Default::default() }));
        let open = || Store::open("db", bucket.clone(), make, options().cache(cache.clone(), 1));
        let store = open().await.unwrap();
        let mut batch = Batch::new();
        (0..64_u64).for_each(|key| {
            batch.insert(&key.to_le_bytes(), b"old");
        });
        store.write(&batch).await.unwrap();
        // In tables, not in the log, which opening reads into memory.
        store.publish().await.unwrap();
        store.close().await.unwrap();
        let store = open().await.unwrap();
        let (delay, before) = (std::time::Duration::from_millis(40), bucket.gets.load(Relaxed));
        bucket.delay_gets(delay);
        let start = std::time::Instant::now();
        let overwrites: Vec<_> = (0..64_u64)
            .map(|key| {
                let store = store.clone();
                tokio::spawn(async move { store.insert(&key.to_le_bytes(), b"new").await.unwrap().is_some() })
            })
            .collect();
        for overwrite in overwrites {
            assert!(overwrite.await.unwrap());
        }
        let (took, gets) = (start.elapsed(), bucket.gets.load(Relaxed) - before);
        assert!(gets >= 2 * 64, "{gets} GETs: the test shows nothing");
        assert!(took < delay * 32, "{took:?} for 64 overwrites, each of which reads for {delay:?}");
    });
}

/// What nobody asks for is not read: neither now nor, for the next thousand keys, later.
#[test]
fn puts_and_deletes_read_nothing() {
    run(async {
        let bucket = Bucket::new(Arc::new(InMemory::new()));
        let buffered = || options().store(Options::new().durability(Durability::Buffered));
        let open = || Store::open("db", bucket.clone(), make, buffered());
        let store = open().await.unwrap();
        let mut batch = Batch::new();
        for key in 0..400_u64 {
            batch.insert(&key.to_le_bytes(), b"old");
        }
        store.write(&batch).await.unwrap();
        store.close().await.unwrap();
        let store = open().await.unwrap();
        // The database reads its manifest now and then, and nothing else.
        bucket.delay_gets(std::time::Duration::from_secs(2));
        let start = std::time::Instant::now();
        for key in 0..100_u64 {
            store.put(&key.to_le_bytes(), b"new").await.unwrap();
            store.delete(&(100 + key).to_le_bytes()).await.unwrap();
        }
        assert_eq!(store.metrics().remote_reads, 0);
        assert!(start.elapsed().as_secs() < 20, "something was read: {:?}", start.elapsed());
        bucket.delay_gets(std::time::Duration::ZERO);
        assert!((0..100_u64).all(|key| store.may_contain_key(&key.to_le_bytes())));
        assert_eq!(store.len().await.unwrap(), 300);
        let metrics = store.metrics();
        assert_eq!((metrics.keys, metrics.keys_in_doubt), (300, 0));
        store.verify().await.unwrap();
        let new = stored(&store).await.into_values().filter(|value| value == b"new").count();
        assert_eq!(new, 100);
    });
}
