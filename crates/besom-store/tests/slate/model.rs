//! Catches: a store that differs from a map, filters that lose keys when they grow, lists that disagree with the data after
//! any sequence of operations, snapshots and restarts.

use std::collections::BTreeMap;
use std::sync::Arc;

use besom::testing::Random;
use besom::{BroomFilter, ExtensionFilter, TelescopingFilter};
use besom_store::slate::slatedb::object_store::memory::InMemory;
use besom_store::slate::{Durability, Origin, SlateBatch, SlateFilter, SlateOptions, SlateStore};

use super::bucket::{options, run};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Few keys, so that each is inserted and removed many times.
const KEYS: u64 = 300;

fn key(random: &mut Random) -> Vec<u8> {
    format!("key {}", random.below(KEYS)).into_bytes()
}

fn buffered() -> SlateOptions {
    options().durability(Durability::Buffered)
}

/// One random operation on both.
async fn step<F: SlateFilter>(store: &SlateStore<F>, model: &mut Model, random: &mut Random) {
    let (key, value) = (key(random), random.next().to_le_bytes().to_vec());
    match random.below(10) {
        0..3 => {
            let old = store.insert(&key, &value).await.unwrap();
            assert_eq!(old.map(|old| old.to_vec()), model.insert(key, value));
        }
        3..5 => assert_eq!(store.remove(&key).await.unwrap().map(|old| old.to_vec()), model.remove(&key)),
        5 => {
            let mut batch = SlateBatch::new();
            for _ in 0..random.below(8) {
                let key = self::key(random);
                if random.one_in(2) {
                    batch.insert(&key, &value);
                    model.insert(key, value.clone());
                } else {
                    batch.remove(&key);
                    model.remove(&key);
                }
            }
            store.write(batch).await.unwrap();
        }
        6 => {
            // Absent keys, many of which a small filter lets pass.
            for _ in 0..20 {
                assert_eq!(store.get(&random.next().to_le_bytes()).await.unwrap(), None);
            }
        }
        _ => assert_eq!(store.get(&key).await.unwrap().as_deref(), model.get(&key).map(Vec::as_slice)),
    }
}

async fn check<F: SlateFilter>(store: &SlateStore<F>, model: &Model) {
    store.verify().await.unwrap();
    let mut rows = store.iter().await.unwrap();
    let mut stored = Model::new();
    while let Some((key, value)) = rows.next().await.unwrap() {
        stored.insert(key.to_vec(), value.to_vec());
    }
    assert_eq!(&stored, model);
    assert_eq!(store.metrics().keys, model.len(), "lists and filter have a key for every row");
}

async fn play<F: SlateFilter>(template: F, seed: u64, steps: usize) {
    let bucket = Arc::new(InMemory::new());
    let (mut model, mut random) = (Model::new(), Random::new(seed));
    for round in 0..3 {
        let store = SlateStore::open("db", bucket.clone(), template.clone(), buffered()).await.unwrap();
        match store.origin() {
            Origin::Snapshot => assert_eq!(round, 2, "only the second round was closed"),
            Origin::Scan { keys, .. } => assert_eq!(keys, model.len() as u64),
            origin => panic!("{origin:?}"),
        }
        check(&store, &model).await;
        for _ in 0..steps {
            step(&store, &mut model, &mut random).await;
        }
        check(&store, &model).await;
        assert!(store.take_fault().is_none());
        let stats = store.metrics();
        assert!(stats.false_positives > 0 && stats.adaptations > 0, "{stats:?}");
        assert_eq!((stats.failed_adaptations, stats.failed_removals, stats.resyncs), (0, 0, 0), "{stats:?}");
        if round == 1 {
            store.close().await.unwrap();
        } else {
            // All of it is there, but no snapshot is.
            store.flush().await.unwrap();
        }
    }
}

#[test]
fn a_store_is_a_map_with_a_telescoping_filter_that_grows() {
    for seed in 0..3 {
        let filter = TelescopingFilter::builder().capacity(10).growable().false_positive_rate(0.1).seed(seed);
        run(play(filter.build().unwrap(), seed, 400));
    }
}

#[test]
fn a_store_is_a_map_with_an_extension_filter() {
    let filter = ExtensionFilter::builder().capacity(400).false_positive_rate(0.1).seed(7_u64);
    run(play(filter.build().unwrap(), 7, 400));
}

#[test]
fn a_store_is_a_map_with_a_broom_filter_that_grows() {
    let filter = BroomFilter::builder().capacity(40).growable().false_positive_rate(0.1).seed(8_u64);
    run(play(filter.build().unwrap(), 8, 300));
}
