//! Catches: a store that answers otherwise than a map, with any filter and layout, through growth, batches, snapshots and
//! restarts; and an index that does not agree with the data.

use crate::common::{Directory, Model, check, key, value};
use besom::cascade::AdaptiveBloomFilter;
use besom::cuckoo::CuckooingFilter;
use besom::testing::Random;
use besom::{BroomFilter, BuildError, ExtensionFilter, Seed, TelescopingFilter};
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
            8 => {
                let value = value(&mut self.random);
                store.put(&key, &value).unwrap();
                self.model.insert(key, value);
            }
            9 => {
                store.delete(&key).unwrap();
                self.model.remove(&key);
            }
            10..=11 => assert_eq!(store.get(&key).unwrap(), self.model.get(&key).cloned()),
            12 => {
                let same =
                    store.get_with(&key, |found| self.model.get(&key).is_some_and(|value| found == value));
                assert_eq!(same.unwrap(), self.model.contains_key(&key).then_some(true));
                assert_eq!(store.contains_key(&key).unwrap(), self.model.contains_key(&key));
            }
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

#[test]
fn cuckooing_with_addresses_of_its_own() {
    let make = |_, seed| CuckooingFilter::builder().capacity(300).false_positive_rate(0.1).seed(seed).build();
    for layout in [Layout::Hashed, Layout::Ordered] {
        Play::new(layout, 150, make).run(rounds(15));
    }
}

#[test]
fn cascades_in_both_layouts() {
    let make =
        |_, seed| AdaptiveBloomFilter::builder().capacity(300).false_positive_rate(0.1).seed(seed).build();
    for layout in [Layout::Hashed, Layout::Ordered] {
        Play::new(layout, 150, make).run(rounds(15));
    }
}

/// Before, a store that grew stopped taking keys at 128 times its first capacity, when values had to move with their keys.
#[test]
fn every_layout_grows_from_a_hundred_keys_to_many() {
    fn grow<F: StoreFilter>(layout: Layout, make: fn(usize, Seed) -> Result<F, BuildError>) {
        let directory = Directory::new();
        let builder = RedbStore::builder().layout(layout).durability(Durability::Buffered);
        let store = builder.open(directory.file("store"), make).unwrap();
        let keys: u64 = if std::env::var_os("BESOM_FULL").is_some() { 1_000_000 } else { 20_000 };
        let (mut model, mut random, mut next) = (Model::new(), Random::new(layout as u64), 0_u64);
        while next < keys {
            let mut batch = Batch::new();
            for _ in 0..=random.below(400) {
                let (key, value) = (next.to_le_bytes(), random.next().to_le_bytes());
                batch.insert(&key, &value);
                model.insert(key.to_vec(), value.to_vec());
                next += 1;
            }
            let (over, gone) = (random.below(next).to_le_bytes(), random.below(next).to_le_bytes());
            batch.insert(&over, b"overwritten").remove(&gone);
            model.insert(over.to_vec(), b"overwritten".to_vec());
            model.remove(&gone[..]);
            store.write(&batch).unwrap();
            let single = random.below(next).to_le_bytes();
            assert_eq!(store.remove(&single).unwrap(), model.remove(&single[..]));
            assert_eq!(store.insert(&single, b"again").unwrap(), None);
            model.insert(single.to_vec(), b"again".to_vec());
            let (put, gone) = (random.below(next).to_le_bytes(), random.below(next).to_le_bytes());
            store.put(&put, b"unread").unwrap();
            model.insert(put.to_vec(), b"unread".to_vec());
            store.delete(&gone).unwrap();
            model.remove(&gone[..]);
        }
        check(&store, &model);
    }
    for layout in [Layout::Hashed, Layout::Ordered] {
        grow(layout, |_, seed| TelescopingFilter::builder().capacity(100).seed(seed).growable().build());
        grow(layout, |_, seed| ExtensionFilter::builder().capacity(100).seed(seed).growable().build());
        grow(layout, |_, seed| BroomFilter::builder().capacity(100).seed(seed).growable().build());
    }
}

/// One way in which a file is damaged.
fn damaged(good: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = good.to_vec();
    let at = random.below(good.len() as u64) as usize;
    match random.below(8) {
        0..=2 => bytes[at] ^= 1 << random.below(8),
        3 => {
            // In a value.
            let values: Vec<usize> =
                (0..good.len() - 8).filter(|&at| good[at..].starts_with(b"a value ")).collect();
            bytes[values[random.below(values.len() as u64) as usize] + 2] ^= 1;
        }
        4 | 5 => {
            let page = at / 4096 * 4096;
            let end = (page + 4096).min(good.len());
            bytes[page..end].fill(0);
        }
        6 => bytes.truncate(at),
        _ => {
            let (from, len) = (random.below(good.len() as u64 - 512) as usize, 512.min(good.len() - at));
            bytes.copy_within(from..from + len, at);
        }
    }
    bytes
}

/// Whatever is damaged in a file: a wrong value is found by `verify`, which runs redb's own check first, and redb's panics are
/// errors. Before, it looked at keys alone.
#[test]
fn verify_notices_wrong_values_in_damaged_files() {
    // redb's panics here are no news.
    let (here, hook) = (std::thread::current().id(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().id() != here
            || !info.location().is_some_and(|at| at.file().contains("redb-"))
        {
            hook(info);
        }
    }));
    let files = if std::env::var_os("BESOM_FULL").is_some() { 1_000 } else { 60 };
    for layout in [Layout::Hashed, Layout::Ordered] {
        let directory = Directory::new();
        let path = directory.file("store");
        let open = || RedbStore::builder().layout(layout).open(&path, telescoping);
        let store = open().unwrap();
        let mut batch = Batch::new();
        for key in 0..200_u64 {
            batch.insert(&key.to_le_bytes(), format!("a value to be found again {key}").as_bytes());
        }
        store.write(&batch).unwrap();
        store.verify().unwrap();
        drop(store);
        let good = std::fs::read(&path).unwrap();
        let (mut random, mut wrong, mut refused) = (Random::new(5), 0, 0);
        for _ in 0..files {
            std::fs::write(&path, damaged(&good, &mut random)).unwrap();
            let Ok(store) = open() else {
                refused += 1;
                continue;
            };
            let is_wrong = |key: u64| {
                let value = format!("a value to be found again {key}").into_bytes();
                !matches!(store.get(&key.to_le_bytes()), Ok(Some(found)) if found == value)
            };
            let some_wrong = (0..200).any(is_wrong);
            assert!(!some_wrong || store.verify().is_err(), "{layout:?}: a wrong value is not noticed");
            wrong += usize::from(some_wrong);
        }
        println!("{layout:?}: {files} damaged files, {refused} refused, {wrong} with wrong values");
        assert!(wrong > files / 20 && refused > 0, "{layout:?}: {wrong} wrong, {refused} refused");
    }
}
