//! Catches: a key that is rejected, a wrong answer, or a wait without end, while requests fail before and after they act, come late,
//! and futures are dropped, all the time, with a writer and two readers beside it.
//!
//! Five seconds; with `BESOM_FULL`, ten minutes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use besom::TelescopingFilter;
use besom::testing::Random;
use besom_store::slate::slatedb::object_store::memory::InMemory;
use besom_store::slate::{SlateReader, SlateStore};
use besom_store::{Batch, StoreError};

use super::bucket::{Bucket, is_full, options, run};
use super::failures::{failing, make, some_polls};

type Store = SlateStore<TelescopingFilter>;

const KEYS: u64 = 150;

/// No request of a store may take longer: it has few retries, and each of them a bound.
const BOUND: Duration = Duration::from_secs(60);

/// The values that a key may have: more than one after a failure.
type Possible = Vec<Option<[u8; 8]>>;

/// What happened.
#[derive(Debug, Default)]
struct Tally {
    writes: u64,
    failed: u64,
    dropped: u64,
    reopened: u64,
    answers: u64,
    slowest: Duration,
}

/// Waits, but not forever.
async fn bounded<T>(tally: &mut Tally, what: &str, future: impl Future<Output = T>) -> T {
    let start = Instant::now();
    let done = tokio::time::timeout(BOUND, future).await;
    tally.slowest = tally.slowest.max(start.elapsed());
    done.unwrap_or_else(|_| panic!("{what} hangs"))
}

async fn open(bucket: &Arc<Bucket>, tally: &mut Tally) -> Store {
    loop {
        match bounded(tally, "opening", Store::open("db", bucket.clone(), make, failing(2))).await {
            Ok(store) => return store,
            Err(StoreError::Engine(_) | StoreError::Open { .. } | StoreError::Closed { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn is_closed(store: &Store) -> bool {
    // Everything is a maybe, and nothing else can be had of it.
    (0..20_u64).all(|number| store.may_contain_key(format!("never {number}").as_bytes()))
}

async fn write(bucket: &Arc<Bucket>, stop: &AtomicBool) -> Tally {
    let (mut tally, mut random) = (Tally::default(), Random::new(1));
    let mut model: BTreeMap<u64, Possible> = (0..KEYS).map(|key| (key, vec![None])).collect();
    let mut store = open(bucket, &mut tally).await;
    while !stop.load(Relaxed) {
        let mut batch = Batch::new();
        let mut changes = BTreeMap::new();
        for _ in 0..1 + random.below(4) {
            let (key, value) = (random.below(KEYS), random.next().to_le_bytes());
            let value = (!random.one_in(3)).then_some(value);
            match value {
                Some(value) => batch.insert(&key.to_le_bytes(), &value),
                None => batch.remove(&key.to_le_bytes()),
            };
            changes.insert(key, value);
        }
        let done = if random.one_in(5) {
            tally.dropped += 1;
            some_polls(random.below(12), store.write(&batch)).await;
            false
        } else {
            tally.writes += 1;
            match bounded(&mut tally, "a write", store.write(&batch)).await {
                Ok(()) => true,
                Err(error) => {
                    let told = matches!(
                        error,
                        StoreError::Engine(_) | StoreError::Closed { .. } | StoreError::RolledBack { .. }
                    );
                    assert!(told, "{error}");
                    tally.failed += 1;
                    false
                }
            }
        };
        for (key, value) in changes {
            let possible = model.get_mut(&key).unwrap();
            if done {
                possible.clear();
            }
            possible.push(value);
        }
        for _ in 0..4 {
            let key = random.below(2 * KEYS);
            let nothing = vec![None];
            let possible = model.get(&key).unwrap_or(&nothing);
            let accepted = store.may_contain_key(&key.to_le_bytes());
            assert!(accepted || possible.contains(&None), "key {key} is rejected");
            if let Ok(found) = bounded(&mut tally, "a query", store.get(&key.to_le_bytes())).await {
                let found = found.map(|value| value[..].try_into().unwrap());
                assert!(possible.contains(&found), "key {key}: {found:?}, and not one of {possible:?}");
                tally.answers += 1;
            }
        }
        if random.one_in(50) {
            let _ = bounded(&mut tally, "a snapshot", store.publish()).await;
        }
        if is_closed(&store) || random.one_in(300) {
            store = open(bucket, &mut tally).await;
            tally.reopened += 1;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Once it is over, everything agrees.
    bucket.fail(0, 0);
    store = open(bucket, &mut tally).await;
    store.verify().await.unwrap();
    for (key, possible) in &model {
        let found = store.get(&key.to_le_bytes()).await.unwrap();
        assert!(possible.contains(&found.map(|value| value[..].try_into().unwrap())), "key {key}");
    }
    tally
}

/// A reader asks for what it sees. How many views it had, and how many keys in them.
async fn read(bucket: Arc<Bucket>, stop: &AtomicBool, seed: u64) -> (u64, u64, Tally) {
    let (mut tally, mut random, mut views, mut held) = (Tally::default(), Random::new(seed), 0, 0);
    let reader = loop {
        let opened = SlateReader::<TelescopingFilter>::open("db", bucket.clone(), options());
        match bounded(&mut tally, "opening a reader", opened).await {
            Ok(reader) => break reader,
            Err(_) if stop.load(Relaxed) => return (views, held, tally),
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    while !stop.load(Relaxed) {
        let newer = bounded(&mut tally, "a refresh", reader.refresh()).await;
        views += u64::from(newer.unwrap_or(false));
        let rows = async {
            let (mut rows, mut held) = (reader.iter().await.ok()?, Vec::new());
            while let Some((key, value)) = rows.next().await.ok()? {
                held.push((key, value));
            }
            Some(held)
        };
        let Some(rows) = bounded(&mut tally, "a scan", rows).await else { continue };
        for (key, value) in &rows {
            assert!(reader.may_contain_key(key), "a key of the view is rejected");
            if let Ok(found) = bounded(&mut tally, "a reader's query", reader.get(key)).await {
                assert_eq!(found.as_ref(), Some(value));
                held += 1;
            }
        }
        for _ in 0..50 {
            let absent = random.next().to_be_bytes();
            if let Ok(found) = bounded(&mut tally, "a reader's query", reader.get(&absent)).await {
                assert_eq!(found, None);
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    (views, held, tally)
}

#[test]
fn a_writer_and_two_readers_live_with_a_bucket_that_fails_all_the_time() {
    run(async {
        let bucket = Bucket::new(Arc::new(InMemory::new()));
        drop(Store::open("db", bucket.clone(), make, options()).await.unwrap());
        let stop = AtomicBool::new(false);
        let timer = async {
            // Now and then so much fails that no retry helps.
            for round in 0..if is_full() { 1_200 } else { 10 } {
                bucket.fail(round, [25, 3, 8][round as usize % 3]);
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            stop.store(true, Relaxed);
        };
        let (tally, one, two, ()) = tokio::join!(
            write(&bucket, &stop),
            read(bucket.clone(), &stop, 1),
            read(bucket.clone(), &stop, 2),
            timer
        );
        let faults = bucket.drawn.each_ref().map(|count| count.load(Relaxed));
        println!("{tally:?}; {faults:?} requests failed before, after, came late");
        for (views, held, tally) in [one, two] {
            println!("a reader: {views} views, {held} keys, {tally:?}");
            // Five seconds may be over before there is a second view on a machine that does other things.
            assert!(!is_full() || views > 0 && held > 0);
        }
        assert!(faults.iter().all(|&count| count > 0) && tally.writes > 0, "{tally:?}, {faults:?}");
        assert!(!is_full() || tally.failed > 0 && tally.reopened > 0, "{tally:?}");
    });
}
