//! Catches: a store that answers otherwise than a map, with any filter and layout, through growth, batches, snapshots and
//! restarts; and an index that does not agree with the data.

use crate::common::{Directory, Model, check, key, value};
use besom::testing::Random;
use besom::{BuildError, ExtensionFilter, Seed, TelescopingFilter};
use besom_store::{Batch, Durability, Layout, Opening, RedbStore, StoreFilter};

/// How the openings went.
#[derive(Debug, Default)]
struct Openings {
    matched: u32,
    caught_up: u32,
    built: u32,
}

struct Play<F> {
    directory: Directory,
    layout: Layout,
    make: fn(usize, Seed) -> Result<F, BuildError>,
    random: Random,
    model: Model,
    keys: u64,
    openings: Openings,
}

impl<F: StoreFilter> Play<F> {
    fn new(layout: Layout, keys: u64, make: fn(usize, Seed) -> Result<F, BuildError>) -> Self {
        let (directory, random) = (Directory::new(), Random::new(keys + layout as u64));
        Self { directory, layout, make, random, model: Model::new(), keys, openings: Openings::default() }
    }

    fn open(&mut self) -> RedbStore<F> {
        let store = RedbStore::builder()
            .layout(self.layout)
            .durability(Durability::Buffered)
            .open(self.directory.file("store"), self.make)
            .unwrap();
        match store.opening() {
            Opening::Snapshot => self.openings.matched += 1,
            Opening::CaughtUp { .. } => self.openings.caught_up += 1,
            Opening::Built { .. } => self.openings.built += 1,
            _ => {}
        }
        store
    }

    fn key(&mut self) -> Vec<u8> {
        key(self.random.below(self.keys))
    }

    fn step(&mut self, store: &RedbStore<F>) {
        let key = self.key();
        match self.random.below(16) {
            0..=3 => {
                let value = value(&mut self.random);
                assert_eq!(store.insert(&key, &value).unwrap(), self.model.insert(key, value));
            }
            4..=6 => assert_eq!(store.remove(&key).unwrap(), self.model.remove(&key)),
            7 => self.batch(store),
            8..=12 => assert_eq!(store.get(&key).unwrap(), self.model.get(&key).cloned()),
            _ => {
                // A stranger, twice: the second time it is no longer a false positive, or was none.
                let stranger = (1 << 40 | self.random.below(1 << 16)).to_le_bytes();
                assert_eq!(store.get(&stranger).unwrap(), None);
                assert_eq!(store.get(&stranger).unwrap(), None);
            }
        }
    }

    fn batch(&mut self, store: &RedbStore<F>) {
        let mut batch = Batch::new();
        for _ in 0..self.random.below(12) {
            let key = self.key();
            if self.random.one_in(3) {
                batch.remove(&key);
                self.model.remove(&key);
            } else {
                let value = value(&mut self.random);
                batch.insert(&key, &value);
                self.model.insert(key, value);
            }
        }
        store.write(&batch).unwrap();
    }

    fn run(mut self, rounds: u64) -> Openings {
        let mut store = self.open();
        for _ in 0..rounds {
            for _ in 0..self.random.below(120) {
                self.step(&store);
            }
            if self.random.one_in(2) {
                store.snapshot().unwrap();
            }
            for _ in 0..self.random.below(30) {
                self.step(&store);
            }
            if self.random.one_in(2) {
                match self.random.below(4) {
                    0 => store.snapshot().unwrap(),
                    1 => drop(std::fs::remove_file(self.directory.file("store.besom"))),
                    _ => {}
                }
                // Makes what was not durable last, as closing does.
                drop(store);
                store = self.open();
            }
            check(&store, &self.model);
            if self.random.one_in(8) {
                store.rebuild().unwrap();
                check(&store, &self.model);
            }
        }
        self.openings
    }
}

/// How many rounds to play; more with `BESOM_FULL`.
fn rounds(few: u64) -> u64 {
    if std::env::var_os("BESOM_FULL").is_some() { 20 * few } else { few }
}

fn telescoping(_: usize, seed: Seed) -> Result<TelescopingFilter, BuildError> {
    TelescopingFilter::builder().capacity(4).seed(seed).false_positive_rate(0.2).growable().build()
}

fn extension(_: usize, seed: Seed) -> Result<ExtensionFilter, BuildError> {
    ExtensionFilter::builder().capacity(4).seed(seed).false_positive_rate(0.2).growable().build()
}

#[test]
fn telescoping_in_both_layouts() {
    for layout in [Layout::Hashed, Layout::Ordered] {
        let openings = Play::new(layout, 150, telescoping).run(rounds(40));
        println!("{openings:?}");
        assert!(openings.matched > 0 && openings.caught_up > 0 && openings.built > 0, "{openings:?}");
    }
}

#[test]
fn extension_in_both_layouts() {
    for layout in [Layout::Hashed, Layout::Ordered] {
        let openings = Play::new(layout, 150, extension).run(rounds(40));
        assert!(openings.matched > 0 && openings.caught_up > 0 && openings.built > 0, "{openings:?}");
    }
}
