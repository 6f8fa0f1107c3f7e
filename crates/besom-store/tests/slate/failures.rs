//! Catches: stored keys that are rejected after requests failed before or after they acted, batches that are half done, an old
//! writer that goes on writing, futures that are dropped half-way.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use besom::testing::Random;
use besom::{Filter, TelescopingFilter};
use besom_store::slate::slatedb::object_store::memory::InMemory;
use besom_store::slate::{Durability, SlateBatch, SlateError, SlateOptions, SlateStore};

use super::bucket::{Bucket, is_full, options, run, settings};

type Store = SlateStore<TelescopingFilter>;
type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn template(seed: u64) -> TelescopingFilter {
    let filter = TelescopingFilter::builder().capacity(20).growable().false_positive_rate(0.1);
    filter.seed(seed).build().unwrap()
}

/// What the store holds.
async fn stored(store: &Store) -> Model {
    let (mut rows, mut stored) = (store.iter().await.unwrap(), Model::new());
    while let Some((key, value)) = rows.next().await.unwrap() {
        stored.insert(key.to_vec(), value.to_vec());
    }
    stored
}

fn random_batch(random: &mut Random, model: &Model) -> (SlateBatch, Model) {
    let (mut batch, mut after) = (SlateBatch::new(), model.clone());
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

fn failing(retries: u32) -> SlateOptions {
    let mut settings = settings();
    settings.object_store_max_retries = Some(retries);
    options().settings(settings)
}

/// Writes until the store is closed by a failure, or the batches are over. The states that the database may be in.
async fn write_until_closed(store: &Store, model: Model, random: &mut Random) -> [Model; 2] {
    let mut states = [model.clone(), model];
    for _ in 0..40 {
        let (batch, after) = random_batch(random, &states[1]);
        match store.write(batch).await {
            Ok(()) => states = [after.clone(), after],
            Err(SlateError::Engine(_)) => {
                // What is accepted must be what either state holds.
                for key in states[1].keys().filter(|key| after.contains_key(*key)) {
                    assert!(store.contains(key));
                }
                return [states[1].clone(), after];
            }
            Err(error) => panic!("{error}"),
        }
        for key in states[1].keys() {
            assert!(store.contains(key), "rejected");
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
                Store::open("db", bucket.clone(), template(round), failing(u32::from(random.one_in(6))))
                    .await
                    .unwrap();
            let found = stored(&store).await;
            assert!(states.contains(&found), "neither what was acknowledged nor what was under way");
            store.verify().await.unwrap();
            assert_eq!(store.metrics().keys, found.len());
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
        let old = Store::open("db", bucket.clone(), template(1), options()).await.unwrap();
        old.insert(b"both", b"old").await.unwrap();
        let unacknowledged = old.clone();
        let new = Store::open("db", bucket.clone(), template(2), options()).await.unwrap();
        let late = tokio::spawn(async move { unacknowledged.insert(b"late", b"old").await });
        new.insert(b"both", b"new").await.unwrap();
        let refused = old.insert(b"more", b"old").await.unwrap_err();
        assert!(refused.is_fenced() && refused.is_closed(), "{refused}");
        assert!(late.await.unwrap().is_err());
        assert!(old.publish().await.is_err() && old.close().await.is_err());
        new.verify().await.unwrap();
        let expected = Model::from([(b"both".to_vec(), b"new".to_vec())]);
        assert_eq!(stored(&new).await, expected);
        new.close().await.unwrap();
        let third = Store::open("db", bucket, template(3), options()).await.unwrap();
        assert_eq!(stored(&third).await, expected);
    });
}

/// Polls a future so many times at most, with time for others in between, and drops it.
async fn some_polls(polls: u64, future: impl Future) {
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
        let buffered = options().durability(Durability::Buffered);
        let store = Store::open("db", bucket, template(4), buffered).await.unwrap();
        let mut random = Random::new(4);
        for _ in 0..300 {
            let (batch, _) = random_batch(&mut random, &Model::new());
            some_polls(random.below(12), store.write(batch)).await;
            for key in stored(&store).await.keys() {
                assert!(store.contains(key), "a stored key is rejected");
            }
        }
        store.restore().await.unwrap();
        store.verify().await.unwrap();
        assert_eq!(store.metrics().keys, stored(&store).await.len());
    });
}

#[test]
fn a_filter_that_is_rebuilt_in_the_middle_of_a_batch_forgets_no_key_of_it() {
    run(async {
        let mut rebuilt = 0;
        for polls in 0..8 {
            let buffered = options().durability(Durability::Buffered);
            let filter = TelescopingFilter::builder().capacity(1000).seed(polls).build().unwrap();
            let room = filter.capacity() as u64;
            let store = Store::open("db", Arc::new(InMemory::new()), filter, buffered).await.unwrap();
            let insert = |keys: std::ops::Range<u64>| {
                let mut batch = SlateBatch::new();
                keys.for_each(|key| batch.insert(&key.to_le_bytes(), b"value"));
                store.write(batch)
            };
            insert(0..room - 8).await.unwrap();
            // What it is full of may be what this leaves behind, as far as the store knows.
            some_polls(polls, insert(room..room + 1)).await;
            // It may still be under way.
            store.flush().await.unwrap();
            let left = room - stored(&store).await.len() as u64;
            assert!(matches!(insert(2 * room..2 * room + left + 2).await, Err(SlateError::Full(_))));
            assert_eq!(store.metrics().keys as u64, room - left, "all that entered is out again");
            insert(3 * room..3 * room + left).await.unwrap();
            for key in stored(&store).await.keys() {
                assert!(store.contains(key), "a stored key is rejected after {polls} polls");
            }
            store.verify().await.unwrap();
            assert_eq!(store.metrics().keys as u64, room);
            // The opening counts as one.
            rebuilt += store.metrics().rebuilds - 1;
        }
        assert!(rebuilt > 0, "no write was dropped at the right moment");
    });
}
