//! Catches: a store that answers otherwise than a map, through growth, batches, snapshots and restarts.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use besom::cuckoo::CuckooingFilter;
use besom::testing::Random;
use besom::{BuildError, ExtensionFilter, Seed, TelescopingFilter};
use besom_fjall::Fjall;
use besom_store::{Batch, Layout, Opening, Store, StoreError, StoreFilter, wait};

use crate::{Directory, open};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn step<F: StoreFilter>(store: &Store<F, Fjall>, model: &mut Model, random: &mut Random) {
    let (key, value) = (random.below(150).to_string().into_bytes(), random.next().to_le_bytes());
    let old = match random.below(4) {
        0 => (wait(store.insert(&key, &value)).unwrap(), model.insert(key, value.to_vec())),
        1 => (wait(store.remove(&key)).unwrap(), model.remove(&key)),
        2 => {
            let (mut batch, gone) = (Batch::new(), random.below(150).to_string().into_bytes());
            wait(store.write(batch.insert(&key, &value).remove(&gone))).unwrap();
            model.insert(key, value.to_vec());
            model.remove(&gone);
            return;
        }
        _ => {
            assert_eq!(wait(store.contains_key(&key)).unwrap(), model.contains_key(&key));
            (wait(store.get(&key)).unwrap(), model.get(&key).cloned())
        }
    };
    assert_eq!(old.0.as_deref(), old.1.as_deref());
}

fn check<F: StoreFilter>(store: &Store<F, Fjall>, model: &Model) {
    wait(store.verify()).unwrap();
    assert_eq!(wait(store.len()).unwrap(), model.len() as u64);
    let mut found = Model::new();
    let visit = &mut |key: &[u8], value: &[u8]| {
        found.insert(key.to_vec(), value.to_vec());
        ControlFlow::Continue(())
    };
    wait(store.for_each(visit)).unwrap();
    assert_eq!(&found, model);
    assert!(model.keys().all(|key| store.may_contain_key(key)));
}

fn play<F: StoreFilter>(layout: Layout, make: fn(usize, Seed) -> Result<F, BuildError>) {
    let directory = Directory::new();
    let folder = directory.0.join("store");
    let (mut random, mut model, mut openings) = (Random::new(layout as u64), Model::new(), [0; 2]);
    for round in 0..12 {
        let store = open(&folder, layout, make);
        match store.opening() {
            Opening::Snapshot => openings[0] += 1,
            Opening::CaughtUp { .. } => openings[1] += 1,
            _ => {}
        }
        check(&store, &model);
        (0..100).for_each(|_| step(&store, &mut model, &mut random));
        wait(store.snapshot()).unwrap();
        if round % 2 == 0 {
            (0..20).for_each(|_| step(&store, &mut model, &mut random));
        }
        check(&store, &model);
    }
    assert!(openings[0] > 3, "{openings:?}");
    assert!(openings[1] > 3 || !F::HASH_ADDRESSED, "{openings:?}");
}

#[test]
fn a_store_is_a_map_in_both_layouts() {
    for layout in [Layout::Hashed, Layout::Ordered] {
        play(layout, |_, seed| TelescopingFilter::builder().capacity(4).seed(seed).growable().build());
        play(layout, |_, seed| ExtensionFilter::builder().capacity(4).seed(seed).growable().build());
        play(layout, |_, seed| CuckooingFilter::builder().capacity(300).seed(seed).build());
    }
}

#[test]
fn the_longest_key_fits_and_a_longer_one_is_refused() {
    let directory = Directory::new();
    let make = |_, seed| TelescopingFilter::builder().capacity(100).seed(seed).build();
    let store = open(&directory.0.join("store"), Layout::Hashed, make);
    let Err(StoreError::KeyTooLong { max, .. }) = wait(store.insert(&[0; 1 << 16], b"")) else {
        panic!("it is too long")
    };
    for length in [0, max] {
        wait(store.insert(&vec![7; length], b"value")).unwrap();
        assert_eq!(wait(store.get(&vec![7; length])).unwrap().as_deref(), Some(&b"value"[..]));
    }
    wait(store.verify()).unwrap();
}
