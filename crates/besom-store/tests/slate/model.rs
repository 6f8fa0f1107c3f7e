//! Catches: a store that differs from a map, filters that lose keys when they grow, an index that disagrees with the data after
//! any sequence of operations, snapshots and restarts.

use std::collections::BTreeMap;
use std::sync::Arc;

use besom::testing::Random;
use besom::{BuildError, ExtensionFilter, Seed, TelescopingFilter};
use besom_store::slate::slatedb::object_store::memory::InMemory;
use besom_store::slate::{SlateOptions, SlateStore};
use besom_store::{Batch, Durability, Layout, Opening, Options, StoreFilter};

use super::bucket::{options, run};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Few keys, so that each is inserted and removed many times.
const KEYS: u64 = 300;

fn key(random: &mut Random) -> Vec<u8> {
    format!("key {}", random.below(KEYS)).into_bytes()
}

fn buffered(layout: Layout) -> SlateOptions {
    options().store(Options::new().layout(layout).durability(Durability::Buffered))
}

/// One random operation on both.
async fn step<F: StoreFilter>(store: &SlateStore<F>, model: &mut Model, random: &mut Random) {
    let (key, value) = (key(random), random.next().to_le_bytes().to_vec());
    match random.below(10) {
        0..3 => {
            let old = store.insert(&key, &value).await.unwrap();
            assert_eq!(old.map(|old| old.to_vec()), model.insert(key, value));
        }
        3..5 => assert_eq!(store.remove(&key).await.unwrap().map(|old| old.to_vec()), model.remove(&key)),
        5 => {
            let mut batch = Batch::new();
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
            store.write(&batch).await.unwrap();
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

async fn check<F: StoreFilter>(store: &SlateStore<F>, model: &Model) {
    store.verify().await.unwrap();
    let mut rows = store.iter().await.unwrap();
    let mut stored = Model::new();
    while let Some((key, value)) = rows.next().await.unwrap() {
        stored.insert(key.to_vec(), value.to_vec());
    }
    assert_eq!(&stored, model);
    assert_eq!(store.metrics().keys, model.len() as u64, "the filter has a key for every row");
    assert_eq!(store.len().await.unwrap(), model.len() as u64);
}

type Make<F> = fn(usize, Seed) -> Result<F, BuildError>;

async fn play<F: StoreFilter>(make: Make<F>, layout: Layout, seed: u64, steps: usize) {
    let bucket = Arc::new(InMemory::new());
    let (mut model, mut random) = (Model::new(), Random::new(seed));
    let (mut false_positives, mut adaptations) = (0, 0);
    for round in 0..4 {
        let store = SlateStore::open("db", bucket.clone(), make, buffered(layout)).await.unwrap();
        match store.opening() {
            Opening::Empty => assert_eq!(round, 0),
            Opening::Snapshot => assert_eq!(round, 2, "only the second round was closed"),
            Opening::CaughtUp { commits } => assert!(round == 3 && *commits > 0),
            Opening::Built { keys, .. } => assert_eq!((*keys, round), (model.len() as u64, 1)),
            opening => panic!("{opening:?}"),
        }
        check(&store, &model).await;
        for _ in 0..steps {
            step(&store, &mut model, &mut random).await;
        }
        check(&store, &model).await;
        assert!(store.take_fault().is_none());
        let stats = store.metrics();
        false_positives += stats.false_positives;
        adaptations += stats.adaptations;
        assert_eq!((stats.failed_adaptations, stats.failed_removals), (0, 0), "{stats:?}");
        if round == 1 {
            store.close().await.unwrap();
        } else {
            // All of it is there, but no snapshot of just this state is.
            store.flush().await.unwrap();
        }
    }
    // Over all rounds: the store draws its own seed, and one round alone expects as few as four false positives.
    assert!(
        false_positives > 0 && adaptations > 0,
        "{false_positives} false positives, {adaptations} repairs"
    );
}

fn telescoping(_: usize, seed: Seed) -> Result<TelescopingFilter, BuildError> {
    TelescopingFilter::builder().capacity(10).growable().false_positive_rate(0.1).seed(seed).build()
}

fn extension(_: usize, seed: Seed) -> Result<ExtensionFilter, BuildError> {
    ExtensionFilter::builder().capacity(400).false_positive_rate(0.1).seed(seed).build()
}

#[test]
fn a_store_is_a_map_with_a_telescoping_filter_that_grows() {
    for (seed, layout) in [Layout::Hashed, Layout::Ordered, Layout::Hashed].into_iter().enumerate() {
        run(play(telescoping, layout, seed as u64, 400));
    }
}

#[test]
fn a_store_is_a_map_with_an_extension_filter() {
    run(play(extension, Layout::Hashed, 7, 400));
    run(play(extension, Layout::Ordered, 8, 200));
}

/// More rows than are read at once, so that a scan that stops after its first portion is noticed.
#[test]
fn a_filter_is_built_from_all_rows() {
    run(async {
        let bucket = Arc::new(InMemory::new());
        let open = || SlateStore::open("db", bucket.clone(), telescoping, buffered(Layout::Hashed));
        let store = open().await.unwrap();
        let mut batch = Batch::new();
        (0..9_000_u32).for_each(|key| {
            batch.insert(&key.to_le_bytes(), b"");
        });
        store.write(&batch).await.unwrap();
        store.flush().await.unwrap();
        drop(store);
        let store = open().await.unwrap();
        assert!(matches!(store.opening(), Opening::Built { keys: 9_000, .. }), "{:?}", store.opening());
        assert!((0..9_000_u32).all(|key| store.may_contain_key(&key.to_le_bytes())));
        store.verify().await.unwrap();
    });
}
